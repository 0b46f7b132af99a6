"""The queue of jobs: exactly one worker has a job, and only who has it may end it.

A worker takes a job for a while (its lease) and renews that as long as it works. When the lease
runs out, because the worker was killed or cut off, another one takes the job. Each taking counts
up `attempt`, which a worker names whenever it says something of the job: what a worker says that
came back too late is not heard.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    and_,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from iojoule.api.state import audit, quotas
from iojoule.api.state.callers import SERVICE, Caller
from iojoule.api.state.database import Database, now, today
from iojoule.api.state.errors import ConflictError, NotFoundError, TooManyError
from iojoule.api.state.idempotency import Key, first_time
from iojoule.api.state.ids import is_id, new_id
from iojoule.api.state.pages import Page, page_of
from iojoule.api.state.tables import compute_use, jobs

LEASE_SECONDS = 15.0
"""How long a job waits for a worker that fell silent."""

ATTEMPTS_MAX = 20
"""A job that has ended so many workers is not given another one."""

WAITING_MAX = 1000
"""Jobs that may wait; a queue that nobody works off must not grow for ever."""

ENDED = frozenset({"done", "failed", "cancelled"})

DIED = {
    "type": "urn:iojoule:problem:worker-died",
    "title": "Worker died",
    "status": 500,
    "detail": f"{ATTEMPTS_MAX} workers ended while they ran this job, maybe for want of memory; "
    "ask for less, or look into the logs of the workers",
}


@dataclass(frozen=True)
class Job:
    """A row of the table, as it was when it was read."""

    id: str
    kind: str
    exclusive: str | None
    request: dict[str, Any]
    state: str
    progress: float
    stage: str | None
    attempt: int
    worker: str | None
    lease_until: float | None
    cancel_requested: bool
    result_sha256: str | None
    error: dict[str, Any] | None
    created_at: float
    started_at: float | None
    finished_at: float | None
    revision: int
    owner: str | None
    shared: bool
    compute_seconds_max: float | None
    charged_at: float | None
    result_bytes: int | None

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ENDED


def _job(row: RowMapping) -> Job:
    return Job(**row)


def submit(
    connection: Connection,
    kind: str,
    request: Mapping[str, Any],
    exclusive: str | None = None,
    key: Key | None = None,
    caller: Caller = SERVICE,
) -> Job:
    """Put a job into the queue. It is durable when the transaction is.

    Args:
        connection: The transaction.
        kind: Names what runs it.
        request: What is asked for, as plain values.
        exclusive: Of jobs with the same word one runs at a time.
        key: The client's name for the request; the same one gives the same job.
        caller: Who asks for it.

    Raises:
        InputError: The key came with another request.
        TooManyError: WAITING_MAX jobs wait already.
        QuotaError, StorageQuotaError: The caller's limits allow no further job.
    """
    id_ = new_id()
    made = first_time(connection, key, id_)
    if made is not None:
        return find(connection, made, caller)
    quotas.admit_job(connection, caller)
    if counted(connection).get("queued", 0) >= WAITING_MAX:
        raise TooManyError(f"{WAITING_MAX} jobs wait already; ask again when some are done")
    connection.execute(
        insert(jobs).values(
            id=id_,
            kind=kind,
            exclusive=exclusive,
            request=dict(request),
            state="queued",
            progress=0.0,
            attempt=0,
            cancel_requested=False,
            created_at=now(),
            revision=1,
            owner=caller.owner,
            shared=caller.owner is None,
            compute_seconds_max=caller.limits.compute_seconds_max,
        )
    )
    audit.add(connection, caller, "job.submit", f"job/{id_}", kind=kind)
    return find(connection, id_)


def find(connection: Connection, id_: str, caller: Caller = SERVICE) -> Job:
    """The job of an id.

    Raises:
        NotFoundError: There is none that the caller may read.
    """
    query = select(jobs).where(jobs.c.id == id_, caller.may_read(jobs))
    row = connection.execute(query).mappings().first() if is_id(id_) else None
    if row is None:
        raise NotFoundError(f"there is no job {id_}; GET /jobs lists them")
    return _job(row)


def listed(
    connection: Connection,
    /,
    limit: int,
    after: str | None,
    caller: Caller = SERVICE,
    **equal: str | None,
) -> Page[Job]:
    """Jobs that the caller may read, the newest first.

    Args:
        connection: The transaction.
        limit: At most so many.
        after: The cursor of the page before.
        caller: Who asks.
        equal: Columns and what they must be; None: anything.
    """
    query = select(jobs).where(
        caller.may_read(jobs),
        *(jobs.c[name] == value for name, value in equal.items() if value is not None),
    )
    return page_of(connection, query, jobs.c.id, limit, after, _job)


def counted(connection: Connection) -> dict[str, int]:
    """How many jobs wait and run."""
    active = jobs.c.state.in_(["queued", "running"])
    query = select(jobs.c.state, func.count()).where(active).group_by(jobs.c.state)
    return {str(state): int(count) for state, count in connection.execute(query)}


def counted_by_kind(connection: Connection) -> dict[tuple[str, str], int]:
    """How many jobs there are, by kind and state, those that have ended too."""
    query = select(jobs.c.kind, jobs.c.state, func.count()).group_by(jobs.c.kind, jobs.c.state)
    return {(str(kind), str(state)): int(n) for kind, state, n in connection.execute(query)}


def active_of(connection: Connection, ids: Collection[str]) -> set[str]:
    """Those of these jobs that have not ended."""
    query = select(jobs.c.id).where(jobs.c.id.in_(list(ids)), jobs.c.state.not_in(list(ENDED)))
    return set(connection.scalars(query))


def readable(connection: Connection, ids: Collection[str], caller: Caller) -> set[str]:
    """Those of these jobs that a caller may read."""
    query = select(jobs.c.id).where(jobs.c.id.in_(list(ids)), caller.may_read(jobs))
    return set(connection.scalars(query))


def take(
    database: Database, worker: str, kinds: Collection[str], lease_seconds: float = LEASE_SECONDS
) -> Job | None:
    """The oldest job that waits, now this worker's; None where there is none."""
    with database.read() as connection:
        if connection.execute(_first_free(tuple(kinds))).first() is None:
            return None
    try:
        with database.write() as connection:
            _give_up(connection)
            return _take(connection, worker, kinds, lease_seconds)
    except IntegrityError:
        return None  # another worker was quicker with a job of the same `exclusive`


@cache
def _first_free(kinds: tuple[str, ...]) -> Select[Any]:
    """Kept, for each idle worker asks it several times a second: to build it takes most of that."""
    return select(jobs.c.id).where(_free(kinds)).limit(1)


def _expired() -> Any:
    return and_(jobs.c.state == "running", jobs.c.lease_until < now())


def _free(kinds: Collection[str]) -> Any:
    """Waits, or was left by its worker, nothing that excludes it runs, and it has compute time."""
    other = jobs.alias()
    excluded = exists().where(
        other.c.exclusive == jobs.c.exclusive, other.c.state == "running", other.c.id != jobs.c.id
    )
    waits = or_(jobs.c.state == "queued", _expired())
    return and_(jobs.c.kind.in_(list(kinds)), waits, ~excluded, _has_compute_seconds())


def _has_compute_seconds() -> Any:
    used = (
        select(compute_use.c.seconds)
        .where(compute_use.c.owner == jobs.c.owner, compute_use.c.day == today())
        .correlate(jobs)
        .scalar_subquery()
    )
    return or_(
        jobs.c.compute_seconds_max.is_(None),
        jobs.c.cancel_requested,  # to be ended, and not run
        func.coalesce(used, 0.0) < jobs.c.compute_seconds_max,
    )


def _give_up(connection: Connection) -> None:
    """End the jobs whose worker is gone and that nobody should begin again."""
    ended = {"lease_until": None, "finished_at": now(), "revision": jobs.c.revision + 1}
    connection.execute(
        update(jobs).where(_expired(), jobs.c.cancel_requested).values(state="cancelled", **ended)
    )
    connection.execute(
        update(jobs)
        .where(_expired(), jobs.c.attempt >= ATTEMPTS_MAX)
        .values(state="failed", error=DIED, **ended)
    )


def _take(
    connection: Connection, worker: str, kinds: Collection[str], lease_seconds: float
) -> Job | None:
    # FOR UPDATE is not written for SQLite, where the whole transaction is the only writer
    oldest = (
        select(jobs.c.id)
        .where(_free(kinds))
        .order_by(jobs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = (
        connection.execute(
            update(jobs)
            .where(jobs.c.id == oldest.scalar_subquery())
            .values(
                state="running",
                worker=worker,
                attempt=jobs.c.attempt + 1,
                progress=0.0,
                stage=None,
                lease_until=now() + lease_seconds,
                revision=jobs.c.revision + 1,
                charged_at=now(),
                started_at=case((jobs.c.started_at.is_(None), now()), else_=jobs.c.started_at),
            )
            .returning(jobs)
        )
        .mappings()
        .first()
    )
    return None if row is None else _job(row)


def _mine(job: Job) -> Any:
    return and_(jobs.c.id == job.id, jobs.c.attempt == job.attempt, jobs.c.state == "running")


def _charge(connection: Connection, job: Job) -> None:
    """Add the time since this attempt was charged last to the use of the job's owner."""
    if job.owner is None:
        return
    since = select(now() - jobs.c.charged_at).where(_mine(job)).with_for_update()
    seconds = connection.scalar(since)
    if seconds is not None and seconds > 0:
        quotas.charge(connection, job.owner, seconds)


@dataclass(frozen=True)
class Beat:
    """What a worker hears when it renews its lease.

    Attributes:
        mine: Whether the job is still its own.
        cancel: Whether somebody called the job off.
    """

    mine: bool
    cancel: bool


def beat(
    database: Database,
    job: Job,
    progress: float,
    stage: str | None,
    lease_seconds: float = LEASE_SECONDS,
) -> Beat:
    """Renew the lease and say how far the job is."""
    changed = or_(jobs.c.progress != progress, jobs.c.stage.is_distinct_from(stage))
    with database.write() as connection:
        _charge(connection, job)
        row = connection.execute(
            update(jobs)
            .where(_mine(job))
            .values(
                charged_at=now(),
                lease_until=now() + lease_seconds,
                progress=progress,
                stage=stage,
                revision=jobs.c.revision + case((changed, 1), else_=0),
            )
            .returning(jobs.c.cancel_requested)
        ).first()
    return Beat(row is not None, row is not None and bool(row[0]))


def end(
    database: Database,
    job: Job,
    state: str,
    *,
    result_sha256: str | None = None,
    result_bytes: int | None = None,
    error: Mapping[str, Any] | None = None,
    publish: Callable[[Connection], None] | None = None,
) -> bool:
    """End a job; whether it was still this worker's to end.

    Args:
        database: Where.
        job: As it was taken.
        state: done, failed or cancelled.
        result_sha256: The file of its result, which is durable already.
        result_bytes: How large that is.
        error: What failed, as a problem.
        publish: Writes what the job brings about, in the same transaction: all of it or nothing.
    """
    with database.write() as connection:
        _charge(connection, job)
        ended = connection.execute(
            update(jobs)
            .where(_mine(job))
            .values(
                state=state,
                result_sha256=result_sha256,
                result_bytes=result_bytes,
                lease_until=None,
                finished_at=now(),
                error=None if error is None else dict(error),
                revision=jobs.c.revision + 1,
                progress=1.0 if state == "done" else jobs.c.progress,
            )
        )
        if ended.rowcount and publish is not None:
            publish(connection)
        return bool(ended.rowcount)


def give_back(database: Database, job: Job) -> None:
    """Put a job back into the queue that its worker will not go on with."""
    with database.write() as connection:
        _charge(connection, job)
        connection.execute(
            update(jobs)
            .where(_mine(job))
            .values(
                state="queued",
                lease_until=None,
                worker=None,
                revision=jobs.c.revision + 1,
            )
        )


def abandon(database: Database, worker: str) -> None:
    """Let others take the jobs of a worker that is known to be dead at once."""
    with database.write() as connection:
        connection.execute(
            update(jobs)
            .where(jobs.c.worker == worker, jobs.c.state == "running")
            .values(lease_until=0.0)
        )


def cancel(connection: Connection, id_: str, caller: Caller = SERVICE) -> Job:
    """Call a job off: at once where it waits, else as soon as its worker hears of it.

    Raises:
        NotFoundError: There is no such job.
        ForbiddenError: It belongs to somebody else.
        ConflictError: It has ended otherwise.
    """
    caller.refuse_change(find(connection, id_, caller).owner, f"job {id_}")
    waits = jobs.c.state == "queued"
    changed = connection.execute(
        update(jobs)
        .where(
            jobs.c.id == id_,
            jobs.c.state.in_(["queued", "running"]),
            jobs.c.cancel_requested.is_(False),
        )
        .values(
            cancel_requested=True,
            state=case((waits, "cancelled"), else_=jobs.c.state),
            finished_at=case((waits, now()), else_=None),
            revision=jobs.c.revision + 1,
        )
    )
    job = find(connection, id_)
    if job.state in ("done", "failed"):
        raise ConflictError(f"job {id_} is {job.state} already; there is nothing to call off")
    if changed.rowcount:
        outcome = "cancelled" if job.ended else "requested"
        audit.add(connection, caller, "job.cancel", f"job/{id_}", outcome)
    return job
