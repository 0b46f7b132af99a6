"""Who changed what and when: rows that are added in the transaction of the change.

What was accepted is therefore recorded exactly once, whatever is killed. No file is rotated away:
rows leave only by `forget`, and a backup holds them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, inspect, select

from iojoule.api.state.callers import SERVICE, Caller
from iojoule.api.state.database import insert_new, now
from iojoule.api.state.pages import Page, page_of
from iojoule.api.state.tables import audit

DONE = "done"


def add(
    connection: Connection,
    caller: Caller,
    action: str,
    object_: str,
    outcome: str = DONE,
    **details: Any,
) -> None:
    """Record a change in the transaction that makes it.

    Args:
        connection: The transaction.
        caller: Who makes the change.
        action: What is done, such as `dataset.upload`.
        object_: What is changed, such as `dataset/ID`.
        outcome: What came of it.
        details: More of it, as plain values; never a secret.
    """
    _insert(connection, [_row(caller, action, object_, outcome, details)])


def add_all(connection: Connection, action: str, objects: Iterable[str]) -> None:
    """Record that the service by itself did the same to each of these."""
    _insert(connection, [_row(SERVICE, action, one, DONE, {}) for one in objects])


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(audit).values(at=now()), rows)


def _id() -> str:
    """Orders the lines that a process adds, also those of one transaction: nanoseconds first."""
    return f"{time.time_ns():016x}{secrets.token_hex(6)}"


def _row(
    caller: Caller, action: str, object_: str, outcome: str, details: dict[str, Any]
) -> dict[str, Any]:
    return {
        "id": _id(),
        "origin": caller.origin.value,
        "key_id": caller.key_id,
        "owner": caller.owner,
        "os_user": caller.os_user,
        "action": action,
        "object": object_,
        "outcome": outcome,
        "details": details,
        "request_id": caller.request_id,
        "remote_address": caller.remote_address,
    }


def lines(
    connection: Connection, since: float | None = None, limit: int | None = None
) -> Iterator[dict[str, Any]]:
    """What was recorded, the oldest first.

    Args:
        connection: The transaction.
        since: Seconds since 1970; None: from the first one on.
        limit: Only the newest so many; None: all.
    """
    query = select(audit).order_by(audit.c.at.desc(), audit.c.id.desc()).limit(limit)
    if since is not None:
        query = query.where(audit.c.at >= since)
    if limit is None:  # read as they are taken: there may be many
        query = query.order_by(None).order_by(audit.c.at, audit.c.id)
        found: Iterable[RowMapping] = (
            connection.execution_options(yield_per=1000).execute(query).mappings()
        )
    else:
        found = reversed(connection.execute(query).mappings().all())
    yield from map(line, found)


def page(connection: Connection, limit: int, after: str | None) -> Page[dict[str, Any]]:
    """What was recorded, the newest first."""
    return page_of(connection, select(audit), audit.c.id, limit, after, line)


def line(row: RowMapping) -> dict[str, Any]:
    """A row as one plain object, its time as text in UTC."""
    at = datetime.fromtimestamp(row["at"], UTC).isoformat(timespec="microseconds")
    return {**row, "at": at}


def forget(connection: Connection, after_seconds: float) -> int:
    """Delete what is older, and record that; how many rows went."""
    old = audit.c.at < now() - after_seconds
    count = connection.execute(delete(audit).where(old)).rowcount
    if count:
        add(connection, SERVICE, "audit.forget", "audit", rows=count)
    return count


def kept(connection: Connection) -> list[dict[str, Any]]:
    """The rows as they are; none where there is no such table yet."""
    if not inspect(connection).has_table(audit.name):
        return []
    return [dict(row) for row in connection.execute(select(audit)).mappings()]


def add_restore(connection: Connection, before: Iterable[dict[str, Any]], file: str) -> None:
    """Record a restore in the database that it brought back, beside what was recorded before it.

    Args:
        connection: The transaction.
        before: `kept` of the database that is replaced; the log goes on through a restore.
        file: Name of the backup.
    """
    for row in before:
        insert_new(connection, audit, **row)
    add(connection, Caller.local(), "backup.restore", "state", file=file)
