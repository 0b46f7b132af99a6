"""What an owner uses, and whether a key's limits allow more.

Use is counted for an owner, over all keys; the limits are those of the key that is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from iojoule.api.state.callers import Caller
from iojoule.api.state.database import now, today
from iojoule.api.state.errors import Exceeded, QuotaError, StorageQuotaError
from iojoule.api.state.tables import compute_use, datasets, jobs

DAY_SECONDS = 86400.0


@dataclass(frozen=True)
class Use:
    """What an owner uses; names and units are those of `Limits`."""

    jobs_waiting: int
    stored_bytes: int
    compute_seconds: float


def used(connection: Connection, owner: str) -> Use:
    """What an owner uses now, and today (UTC)."""
    return Use(
        _jobs_waiting(connection, owner),
        _stored_bytes(connection, owner),
        _compute_seconds(connection, owner),
    )


def admit_job(connection: Connection, caller: Caller) -> None:
    """Return where the caller may put one more job into the queue in this transaction.

    Raises:
        QuotaError: Too many wait, or no compute seconds are left today.
        StorageQuotaError: There is no room for a result.
    """
    limits, owner = caller.limits, caller.owner
    if owner is None:
        return
    if limits.jobs_waiting_max is not None:
        _one_at_a_time(connection, owner)
        waiting = _jobs_waiting(connection, owner)
        if waiting >= limits.jobs_waiting_max:
            raise QuotaError.of(
                f"{waiting} jobs of {owner} wait already, and this key allows "
                f"{limits.jobs_waiting_max}; ask again when one of them has begun, or cancel one",
                Exceeded("jobs-waiting", limits.jobs_waiting_max, waiting),
            )
    if limits.compute_seconds_max is not None:
        seconds = _compute_seconds(connection, owner)
        if seconds >= limits.compute_seconds_max:
            left = connection.scalar(select((today() + 1) * DAY_SECONDS - now())) or 0.0
            raise QuotaError.of(
                f"{seconds:.0f} compute seconds of {owner} are used today, and this key allows "
                f"{limits.compute_seconds_max:g}; they are free again at 00:00 UTC",
                Exceeded("compute-seconds", limits.compute_seconds_max, round(seconds, 3), left),
            )
    if limits.stored_bytes_max is not None:
        bytes_ = _stored_bytes(connection, owner)
        if bytes_ >= limits.stored_bytes_max:
            raise _no_room(owner, limits.stored_bytes_max, bytes_)


def admit_bytes(connection: Connection, caller: Caller, more: int) -> None:
    """Return where the caller may keep so many more bytes; raises StorageQuotaError."""
    most, owner = caller.limits.stored_bytes_max, caller.owner
    if owner is None or most is None:
        return
    _one_at_a_time(connection, owner)
    bytes_ = _stored_bytes(connection, owner)
    if bytes_ + more > most:
        raise _no_room(owner, most, bytes_, more)


def charge(connection: Connection, owner: str, seconds: float) -> None:
    """Add to what workers have run for an owner today."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    row = dialect.insert(compute_use).values(owner=owner, day=today(), seconds=seconds)
    connection.execute(
        row.on_conflict_do_update(
            index_elements=["owner", "day"],
            set_={"seconds": compute_use.c.seconds + row.excluded.seconds},
        )
    )


def forget_old(connection: Connection) -> None:
    """Let go of the use of days before yesterday."""
    connection.execute(delete(compute_use).where(compute_use.c.day < today() - 1))


def _one_at_a_time(connection: Connection, owner: str) -> None:
    """Wait for other transactions that count for the owner; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        key = func.hashtextextended(f"iojoule-owner:{owner}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(key)))


def _jobs_waiting(connection: Connection, owner: str) -> int:
    query = select(func.count()).where(jobs.c.owner == owner, jobs.c.state == "queued")
    return connection.scalar(query) or 0


def _stored_bytes(connection: Connection, owner: str) -> int:
    sums = (
        select(func.coalesce(func.sum(column), 0)).where(column.table.c.owner == owner)
        for column in (datasets.c.bytes, jobs.c.result_bytes)
    )
    return sum(int(connection.scalar(query) or 0) for query in sums)


def _compute_seconds(connection: Connection, owner: str) -> float:
    query = select(compute_use.c.seconds).where(
        compute_use.c.owner == owner, compute_use.c.day == today()
    )
    return connection.scalar(query) or 0.0


def _no_room(owner: str, most: int, used_: int, more: int = 0) -> StorageQuotaError:
    asked = f" and {more} more are asked for" if more else ""
    return StorageQuotaError.of(
        f"{used_} bytes of {owner} are kept{asked}, and this key allows {most}; delete datasets "
        "or jobs, or ask the operator for more",
        Exceeded("bytes", most, used_),
    )
