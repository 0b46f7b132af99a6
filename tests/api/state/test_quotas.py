"""Quotas hold for an owner, whatever asks at the same time and with which key."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from iojoule.api.state import datasets, jobs, ownership, quotas, tables
from iojoule.api.state.callers import Caller, Limits, Origin
from iojoule.api.state.datasets import Checked
from iojoule.api.state.errors import QuotaError, StorageQuotaError
from iojoule.api.state.ids import new_id
from iojoule.api.state.place import Place, State

DAY = 86400.0
FILE = b"x" * 100


def ann(key: str = "a" * 12, **limits: Any) -> Caller:
    return Caller(Origin.KEY, "ann", key, sees_all=False, limits=Limits(**limits))


def uploaded(state: State, folder: Path, caller: Caller) -> str:
    """A dataset of 200 bytes."""
    id_ = new_id()
    paths = [folder / f"{id_}.parquet", folder / f"{id_}.json"]
    for path in paths:
        path.write_bytes(FILE)
    checked = Checked(*paths, "csv", None, 1, ["iops"], 0, "0" * 64)
    with state.files.keeping(), state.database.write() as connection:
        datasets.add(connection, state, id_, checked, caller)
    return id_


def submitted(state: State, caller: Caller) -> str:
    with state.database.write() as connection:
        return jobs.submit(connection, "simulation", {}, caller=caller).id


def _race(place: Place, folder: Path, number: int, begin: Any, admitted: Any) -> None:
    state = State(place)
    caller = ann(f"{number:012x}", jobs_waiting_max=7, stored_bytes_max=1500)
    begin.wait()
    for _ in range(10):
        for ask in (lambda: submitted(state, caller), lambda: uploaded(state, folder, caller)):
            try:
                ask()
            except (QuotaError, StorageQuotaError):
                continue
            with admitted.get_lock():
                admitted.value += 1
    state.close()


def test_requests_of_several_processes_at_once_exceed_no_quota(
    state: State, tmp_path: Path
) -> None:
    # a fork of a process with threads may wait for ever for a lock that one of them held
    spawn = multiprocessing.get_context("spawn")
    begin, admitted = spawn.Barrier(3), spawn.Value("i", 0)
    processes = [
        spawn.Process(target=_race, args=(state.place, tmp_path, number, begin, admitted))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    with state.database.read() as connection:
        use = quotas.used(connection, "ann")
    assert (use.jobs_waiting, use.stored_bytes) == (7, 1400)
    assert admitted.value == 14


def test_use_is_the_owners_and_the_limit_the_keys(state: State, tmp_path: Path) -> None:
    submitted(state, ann())
    with pytest.raises(QuotaError) as caught:
        submitted(state, ann("b" * 12, jobs_waiting_max=1))
    assert caught.value.exceeded is not None
    assert (caught.value.exceeded.used, caught.value.exceeded.limit) == (1, 1)
    submitted(state, ann("b" * 12, jobs_waiting_max=2))
    other = Caller(Origin.KEY, "ben", "c" * 12, sees_all=False, limits=Limits(jobs_waiting_max=1))
    submitted(state, other)


def test_what_is_deleted_or_begun_frees_what_it_used(state: State, tmp_path: Path) -> None:
    caller = ann(jobs_waiting_max=1, stored_bytes_max=205)
    first = uploaded(state, tmp_path, caller)
    with pytest.raises(StorageQuotaError):
        uploaded(state, tmp_path, caller)
    with state.database.write() as connection:
        ownership.delete_dataset(connection, first, caller)
    uploaded(state, tmp_path, caller)
    submitted(state, caller)
    with pytest.raises(QuotaError):
        submitted(state, caller)
    job = jobs.take(state.database, "one", ["simulation"])
    assert job is not None
    submitted(state, caller)
    # a result of what was accepted is kept, and counts
    digest = state.files.keep_bytes(FILE)
    jobs.end(state.database, job, "done", result_sha256=digest, result_bytes=len(FILE))
    with state.database.read() as connection:
        assert quotas.used(connection, "ann").stored_bytes == 300
    assert jobs.take(state.database, "one", ["simulation"]) is not None
    with pytest.raises(StorageQuotaError):
        submitted(state, caller)


def charged(state: State, seconds: float, job: jobs.Job) -> None:
    """As if the job had run for so long since it was charged last."""
    with state.database.write() as connection:
        table = tables.jobs
        at = table.c.charged_at - seconds
        connection.execute(update(table).where(table.c.id == job.id).values(charged_at=at))


def test_compute_seconds_are_what_workers_ran_today(state: State) -> None:
    caller = ann(compute_seconds_max=100.0)
    waits = [submitted(state, caller) for _ in range(2)]
    job = jobs.take(state.database, "one", ["simulation"])
    assert job is not None
    charged(state, 30.0, job)
    jobs.beat(state.database, job, 0.5, None)
    charged(state, 30.0, job)
    jobs.give_back(state.database, job)
    with state.database.read() as connection:
        assert quotas.used(connection, "ann").compute_seconds == pytest.approx(60.0, abs=5.0)
    job = jobs.take(state.database, "two", ["simulation"])
    assert job is not None
    charged(state, 50.0, job)
    jobs.end(state.database, job, "done", result_sha256=state.files.keep_bytes(FILE))
    with pytest.raises(QuotaError) as caught:
        submitted(state, caller)
    exceeded = caught.value.exceeded
    assert exceeded is not None
    assert exceeded.frees_in_seconds == pytest.approx(DAY - time.time() % DAY, abs=60.0)
    # what was accepted before waits for the next day, and holds up nobody else
    other = submitted(state, Caller(Origin.KEY, "ben", "b" * 12, sees_all=False))
    job = jobs.take(state.database, "two", ["simulation"])
    assert job is not None
    assert job.id == other
    assert jobs.take(state.database, "two", ["simulation"]) is None
    with state.database.write() as connection:
        use = tables.compute_use
        connection.execute(update(use).where(use.c.owner == "ann").values(day=use.c.day - 1))
    job = jobs.take(state.database, "two", ["simulation"])
    assert job is not None
    assert job.id in waits


def test_a_job_that_lost_its_worker_is_ended_when_it_is_called_off_without_compute_seconds(
    state: State,
) -> None:
    caller = ann(compute_seconds_max=10.0)
    id_ = submitted(state, caller)
    assert jobs.take(state.database, "one", ["simulation"]) is not None
    with state.database.write() as connection:
        quotas.charge(connection, "ann", 20.0)
    jobs.abandon(state.database, "one")
    assert jobs.take(state.database, "two", ["simulation"]) is None
    with state.database.write() as connection:
        jobs.cancel(connection, id_, caller)
    assert jobs.take(state.database, "two", ["simulation"]) is None
    with state.database.read() as connection:
        assert jobs.find(connection, id_).state == "cancelled"


def test_use_of_days_that_are_over_goes(state: State) -> None:
    with state.database.write() as connection:
        quotas.charge(connection, "ann", 1.0)
        today = connection.scalar(select(tables.compute_use.c.day)) or 0
        assert today == int(time.time() // DAY)
        rows = [{"owner": "ann", "day": today - days, "seconds": 1.0} for days in (1, 2, 3)]
        connection.execute(tables.compute_use.insert(), rows)
    state.sweep()
    with state.database.read() as connection:
        assert set(connection.scalars(select(tables.compute_use.c.day))) == {today, today - 1}


def test_nobody_is_charged_where_there_are_no_keys(state: State) -> None:
    submitted(state, Caller(Origin.OPEN))
    job = jobs.take(state.database, "one", ["simulation"])
    assert job is not None
    jobs.beat(state.database, job, 0.5, None)
    with state.database.read() as connection:
        assert connection.execute(select(tables.compute_use)).all() == []
