import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from iojoule.api.http.simulations import EXAMPLE
from iojoule.api.jobs import running
from iojoule.api.jobs.running import Outcome, Running
from iojoule.api.jobs.supervisor import Supervisor
from iojoule.api.jobs.worker import Worker
from iojoule.api.state import jobs
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import DATABASE_VARIABLE, State
from iojoule.datasets.errors import InputError

Run = Callable[[Running], Outcome]

LONG: dict[str, Any] = {
    "drive": "samsung-980-pro-1tb",
    "scenario": {"flows": [{"queue_depth": 4, "total_requests": 60_000_000}]},
}
"""A simulation that takes far longer than a look at its job."""


def submitted(state: State, request: dict[str, Any] | None = None, kind: str = "simulation") -> Job:
    with state.database.write() as connection:
        return jobs.submit(connection, kind, request or EXAMPLE)


def found(state: State, job: Job) -> Job:
    with state.database.read() as connection:
        return jobs.find(connection, job.id)


def waited(state: State, job: Job, until: Callable[[Job], bool], seconds: float = 180.0) -> Job:
    end = time.monotonic() + seconds
    while not until(now := found(state, job)):
        assert time.monotonic() < end, now
        time.sleep(0.05)
    return now


def quick(state: State) -> Worker:
    return Worker(state, lease_seconds=5.0, beat_seconds=0.02)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Let jobs of the kind `made_up` be run by a function."""

    def add(run: Run) -> None:
        monkeypatch.setitem(running.KINDS, "made_up", "tests:run")
        monkeypatch.setattr("iojoule.api.jobs.worker.kind_of", lambda name: run)

    return add


def test_a_simulation_is_run_and_its_result_kept(state: State) -> None:
    job = submitted(state)
    assert quick(state).run_one()
    done = found(state, job)
    assert (done.state, done.error) == ("done", None)
    assert done.result_sha256 is not None
    told = json.loads(state.files.read(done.result_sha256))
    assert told["evidence"] == "simulated"
    deep = {one["varied"]["flows.queue_depth"]: one for one in told["scenarios"]}
    assert deep[1]["flows"][0]["iops"] < deep[16]["flows"][0]["iops"]
    assert not state.work_folder(job.id).exists()
    assert not quick(state).run_one()


def test_a_job_fails_with_the_problem_that_it_met(
    state: State, kind: Callable[[Run], None]
) -> None:
    def refuse(_: Running) -> Outcome:
        raise InputError("this cannot be; do that", field="drive.name")

    kind(refuse)
    job = submitted(state, kind="made_up")
    quick(state).run_one()
    failed = found(state, job)
    assert failed.state == "failed"
    assert failed.error == {
        "type": "urn:iojoule:problem:invalid-input", "title": "Invalid input", "status": 422,
        "detail": "this cannot be; do that", "field": "/drive/name",
    }  # fmt: skip


def test_a_fault_of_our_own_tells_nothing_of_the_inside(
    state: State, kind: Callable[[Run], None]
) -> None:
    def break_(_: Running) -> Outcome:
        raise ZeroDivisionError("secret")

    kind(break_)
    job = submitted(state, kind="made_up")
    quick(state).run_one()
    assert found(state, job).state == "failed"
    assert "secret" not in json.dumps(found(state, job).error)


def endless(started: threading.Event) -> Run:
    def run(under_way: Running) -> Outcome:
        under_way.watched.say(0.25, "waiting")
        started.set()
        assert under_way.watched.stop.wait(30)
        under_way.watched.go_on()
        raise AssertionError

    return run


@pytest.fixture
def worker(state: State) -> Iterator[Worker]:
    made = quick(state)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.stopping.set()
        thread.join(timeout=30)
        assert not thread.is_alive()


def test_a_running_job_tells_progress_and_can_be_cancelled(
    state: State, kind: Callable[[Run], None], worker: Worker
) -> None:
    started = threading.Event()
    kind(endless(started))
    job = submitted(state, kind="made_up")
    assert started.wait(30)
    assert waited(state, job, lambda now: now.progress == 0.25).stage == "waiting"
    with state.database.write() as connection:
        jobs.cancel(connection, job.id)
    assert waited(state, job, lambda now: now.ended).state == "cancelled"


def test_a_worker_that_stops_gives_its_job_back(
    state: State, kind: Callable[[Run], None], worker: Worker
) -> None:
    started = threading.Event()
    kind(endless(started))
    job = submitted(state, kind="made_up")
    assert started.wait(30)
    worker.stopping.set()
    assert waited(state, job, lambda now: now.state == "queued").attempt == 1


def test_a_worker_that_lost_its_job_drops_it(
    state: State, kind: Callable[[Run], None], worker: Worker
) -> None:
    started = threading.Event()
    kind(endless(started))
    job = submitted(state, kind="made_up")
    assert started.wait(30)
    while True:  # until the moment between two beats is met
        jobs.abandon(state.database, worker.name)
        if (other := jobs.take(state.database, "other", ["made_up"])) is not None:
            break
    assert other.id == job.id
    assert not worker.stopping.wait(0.3)
    assert found(state, job) == other
    assert jobs.end(state.database, other, "cancelled")


def process(state: State) -> subprocess.Popen[bytes]:
    place = state.place
    return subprocess.Popen(
        [sys.executable, "-m", "iojoule.api.jobs", str(place.folder), f"w{time.time_ns()}"],
        stdin=subprocess.PIPE, env={**os.environ, DATABASE_VARIABLE: place.database},
    )  # fmt: skip


def test_a_worker_process_ends_with_whoever_started_it(state: State) -> None:
    job = submitted(state)
    with process(state) as made:
        assert waited(state, job, lambda now: now.ended).state == "done"
        assert made.stdin is not None
        made.stdin.close()
        assert made.wait(timeout=60) == 0


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_job_done(state: State) -> None:
    job = submitted(state, LONG)
    with Supervisor(state, 1):
        for attempt in (1, 2):
            waited(state, job, lambda now, n=attempt: now.attempt == n and now.state == "running")
            kill_workers()
        done = waited(state, job, lambda now: now.ended)
    assert (done.state, done.attempt) == ("done", 3)
    assert not workers()


def workers() -> list[psutil.Process]:
    """Worker processes of this test."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # a zombie is one
            if "iojoule.api.jobs" in child.cmdline():
                found.append(child)
    return found


def kill_workers(most: int | None = None) -> None:
    """Of this test, so many."""
    for worker in workers()[:most]:
        with suppress(psutil.NoSuchProcess):
            worker.kill()


@pytest.mark.slow
def test_jobs_are_done_once_each_however_often_workers_are_killed(state: State) -> None:
    short = EXAMPLE | {"vary": {"flows.queue_depth": [1, 4]}}
    asked = [submitted(state, short) for _ in range(12)]
    with Supervisor(state, 2):
        for _ in range(10):
            time.sleep(1.0)
            kill_workers(1)
        ended = [waited(state, job, lambda now: now.ended) for job in asked]
    assert {job.state for job in ended} == {"done"}
    for job in ended:
        assert job.result_sha256 is not None
        assert len(json.loads(state.files.read(job.result_sha256))["scenarios"]) == 2
