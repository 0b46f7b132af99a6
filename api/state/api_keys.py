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
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, or_, select, update

from iojoule.api.state import audit
from iojoule.api.state.callers import SERVICE, Caller, Limits, Origin
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
    """A row of the table.

    Attributes:
        owner: Who answers for it; what is made with the key belongs to this name.
        expires_at: From when on it opens nothing; None: it never expires.
        last_used_at: To the minute; None: not yet.
    """

    id: str
    name: str
    scope: Scope
    secret_sha256: str
    created_at: float
    revoked_at: float | None
    owner: str
    expires_at: float | None
    last_used_at: float | None
    limits: Limits

    def expired(self, at: float) -> bool:
        """Whether it has expired at a time, in seconds since 1970."""
        return self.expires_at is not None and self.expires_at <= at

    def caller(self, request_id: str | None, remote_address: str | None) -> Caller:
        """Who asks with it."""
        return Caller(
            Origin.KEY,
            owner=self.owner,
            key_id=self.id,
            sees_all=self.scope is Scope.ADMIN,
            limits=self.limits,
            request_id=request_id,
            remote_address=remote_address,
        )


_LIMITS = tuple(one.name for one in fields(Limits))


def _key(row: RowMapping) -> ApiKey:
    values = dict(row)
    limits = Limits(**{name: values.pop(name) for name in _LIMITS})
    return ApiKey(**{**values, "scope": Scope(row["scope"])}, limits=limits)


def create(
    connection: Connection,
    name: str,
    scope: Scope,
    *,
    owner: str | None = None,
    expires_at: float | None = None,
    limits: Limits | None = None,
    caller: Caller = SERVICE,
) -> tuple[ApiKey, str]:
    """Make a key; its text is nowhere but in what this returns.

    Args:
        connection: The transaction.
        name: What it is for.
        scope: What it allows.
        owner: Who answers for it; None: whom its name names.
        expires_at: Seconds since 1970; None: it never expires.
        limits: What it may use; None: as much as there is.
        caller: Who makes it.
    """
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    stated = {"name": name, "scope": scope.value, "owner": owner or name, "expires_at": expires_at}
    stated |= asdict(limits or Limits())
    connection.execute(
        insert(api_keys).values(id=id_, secret_sha256=_digest(secret), created_at=now(), **stated)
    )
    audit.add(connection, caller, "key.create", f"key/{id_}", key=_told(stated))
    return find(connection, id_), f"iojoule_{id_}_{secret}"


def change(
    connection: Connection, id_: str, values: Mapping[str, Any], caller: Caller = SERVICE
) -> ApiKey:
    """Give a key another owner, expiry or other limits.

    Args:
        connection: The transaction.
        id_: Its id.
        values: Names of `owner`, `expires_at` and the limits -> the new value.
        caller: Who changes it.

    Raises:
        NotFoundError: There is none.
    """
    before = find(connection, id_)
    held = {**asdict(before.limits), "owner": before.owner, "expires_at": before.expires_at}
    changed = {name: value for name, value in values.items() if held[name] != value}
    if changed:
        connection.execute(update(api_keys).where(api_keys.c.id == id_).values(**changed))
        old = {name: held[name] for name in changed}
        audit.add(
            connection, caller, "key.change", f"key/{id_}", before=_told(old), after=_told(changed)
        )
    return find(connection, id_)


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the audit log has them: times as text in UTC."""
    at = values.get("expires_at")
    text = None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    return {**values, **({"expires_at": text} if "expires_at" in values else {})}


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
    """Those that are not revoked, by their id; `expired` says which of them are past their time."""
    return {one.id: one for one in listed(connection) if one.revoked_at is None}


def revoke(connection: Connection, id_: str, caller: Caller = SERVICE) -> ApiKey:
    """Let a key open nothing any more; one that is revoked stays so.

    Raises:
        NotFoundError: There is none.
    """
    revoked = connection.execute(
        update(api_keys)
        .where(api_keys.c.id == id_, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    if revoked.rowcount:
        audit.add(connection, caller, "key.revoke", f"key/{id_}")
    return find(connection, id_)


def record_use(connection: Connection, seconds_ago: Mapping[str, float]) -> None:
    """Record when keys were last used, by their id; a later time that is known already stays."""
    for id_, seconds in sorted(seconds_ago.items()):  # in one order: replicas do so side by side
        at = now() - seconds
        last = api_keys.c.last_used_at
        connection.execute(
            update(api_keys)
            .where(api_keys.c.id == id_, or_(last.is_(None), last < at))
            .values(last_used_at=at)
        )


def opened_by(keys: Mapping[str, ApiKey], text: str) -> ApiKey | None:
    """The key that somebody shows, if it is one of these; compared in constant time."""
    form = _FORM.fullmatch(text)
    known = keys.get(form[1]) if form else None
    if form is None or known is None:
        return None
    return known if hmac.compare_digest(_digest(form[2]), known.secret_sha256) else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
