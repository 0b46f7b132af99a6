"""Keys of the programs and people who may use a service: who they are for and what they may do.

A key is `iojoule_ID_SECRET`. Its secret is 256 random bits, so the table holds their SHA-256 and
no slow hash: what makes passwords guessable, that people choose them, is missing here, and nobody
finds 256 bits by trying. A slow hash would only let strangers spend the service's time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, insert, select, update

from iojoule.api.state.database import now
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.tables import api_keys

_FORM = re.compile(r"iojoule_([0-9a-f]{12})_([0-9A-Za-z_-]{43})")


class Scope(StrEnum):
    """What a key allows; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Scope) -> bool:
        """Whether what needs `other` is allowed."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class ApiKey:
    """A row of the table."""

    id: str
    name: str
    scope: Scope
    secret_sha256: str
    created_at: float
    revoked_at: float | None


def _key(row: RowMapping) -> ApiKey:
    return ApiKey(**{**row, "scope": Scope(row["scope"])})


def create(connection: Connection, name: str, scope: Scope) -> tuple[ApiKey, str]:
    """Make a key; its text is nowhere but in what this returns."""
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    connection.execute(
        insert(api_keys).values(
            id=id_, name=name, scope=scope.value, secret_sha256=_digest(secret), created_at=now()
        )
    )
    return find(connection, id_), f"iojoule_{id_}_{secret}"


def find(connection: Connection, id_: str) -> ApiKey:
    """The key of an id.

    Raises:
        NotFoundError: There is none.
    """
    row = connection.execute(select(api_keys).where(api_keys.c.id == id_)).mappings().first()
    if row is None:
        raise NotFoundError(f"there is no key {id_}; `iojoule key list` lists them")
    return _key(row)


def listed(connection: Connection) -> list[ApiKey]:
    """All keys, the oldest first, revoked ones too."""
    query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
    return [_key(row) for row in connection.execute(query).mappings()]


def valid(connection: Connection) -> dict[str, ApiKey]:
    """Those that open something, by their id."""
    return {one.id: one for one in listed(connection) if one.revoked_at is None}


def revoke(connection: Connection, id_: str) -> ApiKey:
    """Let a key open nothing any more; one that is revoked stays so.

    Raises:
        NotFoundError: There is none.
    """
    connection.execute(
        update(api_keys)
        .where(api_keys.c.id == id_, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    return find(connection, id_)


def opened_by(keys: Mapping[str, ApiKey], text: str) -> ApiKey | None:
    """The key that somebody shows, if it is one of these; compared in constant time."""
    form = _FORM.fullmatch(text)
    known = keys.get(form[1]) if form else None
    if form is None or known is None:
        return None
    return known if hmac.compare_digest(_digest(form[2]), known.secret_sha256) else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
