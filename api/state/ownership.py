"""What owners do with their jobs and datasets: share them, take that back, delete them."""

from __future__ import annotations

from sqlalchemy import Connection, Table, delete, exists, select, update

from iojoule.api.state import audit, datasets, idempotency, jobs, tables
from iojoule.api.state.callers import Caller
from iojoule.api.state.datasets import StoredDataset
from iojoule.api.state.errors import ConflictError
from iojoule.api.state.jobs import Job
from iojoule.api.state.retention import named_by_calibrations


def share_job(connection: Connection, id_: str, shared: bool, caller: Caller) -> Job:
    """Let everybody read a job and its result, or only its owner.

    Raises:
        NotFoundError: There is no such job.
        ForbiddenError: It belongs to somebody else.
        ConflictError: It belongs to nobody, so it is everybody's to read.
    """
    job = jobs.find(connection, id_, caller)
    if _share(connection, tables.jobs, "job", job, shared, caller):
        changed = {"revision": tables.jobs.c.revision + 1}
        connection.execute(update(tables.jobs).where(tables.jobs.c.id == id_).values(changed))
    return jobs.find(connection, id_)


def share_dataset(connection: Connection, id_: str, shared: bool, caller: Caller) -> StoredDataset:
    """Let everybody read a dataset, or only its owner; raises as `share_job`."""
    dataset = datasets.find(connection, id_, caller)
    _share(connection, tables.datasets, "dataset", dataset, shared, caller)
    return datasets.find(connection, id_)


def _share(
    connection: Connection,
    table: Table,
    kind: str,
    kept: Job | StoredDataset,
    shared: bool,
    caller: Caller,
) -> bool:
    """Whether that changed anything."""
    caller.refuse_change(kept.owner, f"{kind} {kept.id}")
    if kept.owner is None and not shared:
        raise ConflictError(
            f"{kind} {kept.id} belongs to nobody, so everybody may read it; delete it instead"
        )
    changed = connection.execute(
        update(table).where(table.c.id == kept.id, table.c.shared != shared).values(shared=shared)
    )
    if changed.rowcount:
        audit.add(connection, caller, f"{kind}.share", f"{kind}/{kept.id}", shared=shared)
    return bool(changed.rowcount)


def delete_job(connection: Connection, id_: str, caller: Caller) -> None:
    """Delete a job that has ended; its result goes with the next sweep.

    Raises:
        NotFoundError: There is no such job.
        ForbiddenError: It belongs to somebody else.
        ConflictError: It has not ended, or a version of a profile rests on it.
    """
    job = jobs.find(connection, id_, caller)
    caller.refuse_change(job.owner, f"job {id_}")
    if not job.ended:
        raise ConflictError(f"job {id_} is {job.state}; cancel it first")
    rows = tables.jobs
    made = exists().where(tables.profile_versions.c.job_id == rows.c.id)
    if connection.scalar(select(rows.c.id).where(rows.c.id == id_, made)) is not None:
        raise ConflictError(f"job {id_} made a version of a profile, which is kept with it")
    _delete(connection, rows, "job", id_, caller)


def delete_dataset(connection: Connection, id_: str, caller: Caller) -> None:
    """Delete a dataset; its files go with the next sweep.

    Raises:
        NotFoundError: There is no such dataset.
        ForbiddenError: It belongs to somebody else.
        ConflictError: A calibration names it.
    """
    caller.refuse_change(datasets.find(connection, id_, caller).owner, f"dataset {id_}")
    # locked first: who names it from now on waits, and finds nothing
    rows = tables.datasets
    connection.execute(select(rows.c.id).where(rows.c.id == id_).with_for_update())
    if id_ in named_by_calibrations(connection):
        raise ConflictError(
            f"dataset {id_} is named by a calibration, which is kept with it; it can be deleted "
            "when that job is"
        )
    _delete(connection, rows, "dataset", id_, caller)


def _delete(connection: Connection, table: Table, kind: str, id_: str, caller: Caller) -> None:
    if connection.execute(delete(table).where(table.c.id == id_)).rowcount:
        idempotency.forget(connection, [id_])
        audit.add(connection, caller, f"{kind}.delete", f"{kind}/{id_}")
