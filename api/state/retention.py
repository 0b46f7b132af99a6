"""What is let go of after some days: jobs that have ended, and datasets that nothing rests on.

A job that made a version of a profile stays for ever, and with it the datasets that it named, so
that every version can be traced to its measurements and be made current again. Several replicas may
let go at the same time: each row is locked by one of them, and the others pass it over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Table, delete, exists, select

from iojoule.api.state import audit, idempotency
from iojoule.api.state.database import Database, now
from iojoule.api.state.jobs import ENDED
from iojoule.api.state.tables import datasets, jobs, profile_versions

BATCH = 500
"""Rows of one transaction: others write in between."""


def forget(database: Database, after_seconds: float) -> int:
    """Delete what is older; its files go with the next sweep, since no row names them any more.

    Args:
        database: Where.
        after_seconds: Since a job ended, or a dataset was uploaded.

    Returns:
        How many jobs and datasets went.

    Raises:
        UnavailableError: The database cannot be reached; what went so far is gone.
    """
    over = jobs.c.finished_at < now() - after_seconds
    made = exists().where(profile_versions.c.job_id == jobs.c.id)
    ended = jobs.c.state.in_(list(ENDED)) & over & ~made
    # jobs first: a dataset that only they named is free then
    gone = _forget(database, jobs, ended, lambda connection: set())
    return gone + _forget(
        database, datasets, datasets.c.created_at < now() - after_seconds, named_by_calibrations
    )


def named_by_calibrations(connection: Connection) -> set[str]:
    """Datasets that a calibration names, one that waits or one whose profile is kept."""
    asked = connection.scalars(select(jobs.c.request).where(jobs.c.kind == "calibration"))
    return {id_ for request in asked for id_ in request["datasets"]}


def _forget(
    database: Database, table: Table, old: Any, spared: Callable[[Connection], set[str]]
) -> int:
    gone, after = 0, ""
    while True:
        with database.write() as connection:
            locked = connection.scalars(
                select(table.c.id)
                .where(old, table.c.id > after)
                .order_by(table.c.id)
                .limit(BATCH)
                .with_for_update(skip_locked=True)
            ).all()
            if not locked:
                return gone
            # read once they are locked: who names one of them from now on waits, and finds nothing
            free = sorted(set(locked) - spared(connection))
            idempotency.forget(connection, free)
            connection.execute(delete(table).where(table.c.id.in_(free)))
            kind = table.name.removesuffix("s")
            audit.add_all(connection, f"{kind}.forget", [f"{kind}/{id_}" for id_ in free])
            gone, after = gone + len(free), locked[-1]
