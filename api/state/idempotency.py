"""Requests that may come twice: the key that names one makes its second coming harmless."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from iojoule.api.state.database import insert_new, now
from iojoule.api.state.tables import idempotency_keys as keys
from iojoule.datasets.errors import InputError

KEPT_SECONDS = 7 * 86400.0


@dataclass(frozen=True)
class Key:
    """What a client named its request, and what the request was.

    Attributes:
        operation: Method and path.
        key: The client's word.
        request_sha256: Hash of what was asked for.
        owner: Id of the API key that the client showed: others may choose the same word. Empty
            where the service asks for no key.
    """

    operation: str
    key: str
    request_sha256: str
    owner: str = ""


def first_time(connection: Connection, key: Key | None, resource: str) -> str | None:
    """Claim a key for a resource that is about to be made in the same transaction.

    Args:
        connection: The transaction.
        key: None: the request bears none, so it is new.
        resource: The id of what will be made.

    Returns:
        None where it is to be made, else the id of what the first request made.

    Raises:
        InputError: The key came with another request.
    """
    if key is None:
        return None
    forget_old(connection)
    named = {"owner": key.owner, "operation": key.operation, "key": key.key}
    values = {"request_sha256": key.request_sha256, "resource": resource, "created_at": now()}
    query = select(keys.c.request_sha256, keys.c.resource).filter_by(**named)
    row = None
    while row is None:  # another replica may forget the key just when it is found to be there
        if insert_new(connection, keys, **named, **values):
            return None
        row = connection.execute(query).first()
    sha256, made = row
    if sha256 != key.request_sha256:
        raise InputError(
            "this idempotency key came with another request before; take a new key for a new "
            "request",
            field="Idempotency-Key",
        )
    return str(made)


def forget_old(connection: Connection) -> None:
    """Let go of the keys that are older than KEPT_SECONDS."""
    connection.execute(delete(keys).where(keys.c.created_at < now() - KEPT_SECONDS))


def forget(connection: Connection, resources: Collection[str]) -> None:
    """Let go of the keys of what is deleted in the same transaction."""
    connection.execute(delete(keys).where(keys.c.resource.in_(list(resources))))
