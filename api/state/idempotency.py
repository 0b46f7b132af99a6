"""Requests that may come twice: the key that names one makes its second coming harmless."""

from __future__ import annotations

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
    """

    operation: str
    key: str
    request_sha256: str


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
    values = {"operation": key.operation, "key": key.key, "request_sha256": key.request_sha256}
    connection.execute(delete(keys).where(keys.c.created_at < now() - KEPT_SECONDS))
    if insert_new(connection, keys, **values, resource=resource, created_at=now()):
        return None
    query = select(keys.c.request_sha256, keys.c.resource)
    sha256, made = connection.execute(
        query.where(keys.c.operation == key.operation, keys.c.key == key.key)
    ).one()
    if sha256 != key.request_sha256:
        raise InputError(
            "this idempotency key came with another request before; take a new key for a new "
            "request", field="Idempotency-Key",
        )  # fmt: skip
    return str(made)
