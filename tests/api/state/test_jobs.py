import threading
from collections import Counter

import pytest
from sqlalchemy import Connection, update

from iojoule.api.state import jobs, tables
from iojoule.api.state.errors import ConflictError, NotFoundError
from iojoule.api.state.idempotency import Key
from iojoule.api.state.jobs import ATTEMPTS_MAX, Job
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError
from tests.errors import having

KINDS = ["simulation"]
RESULT = "a" * 64


def submitted(state: State, exclusive: str | None = None, key: Key | None = None) -> Job:
    with state.database.write() as connection:
        return jobs.submit(connection, "simulation", {"drive": "x"}, exclusive, key)


def taken(state: State, worker: str = "one") -> Job:
    job = jobs.take(state.database, worker, KINDS)
    assert job is not None
    return job


def found(state: State, job: Job) -> Job:
    with state.database.read() as connection:
        return jobs.find(connection, job.id)


def run_out(state: State, job: Job) -> None:
    """Let the lease of a job be over, as after a long silence of its worker."""
    with state.database.write() as connection:
        connection.execute(
            update(tables.jobs).where(tables.jobs.c.id == job.id).values(lease_until=1.0)
        )


def test_a_job_is_queued_run_and_done(state: State) -> None:
    asked = submitted(state)
    assert (asked.state, asked.progress, asked.attempt) == ("queued", 0.0, 0)
    job = taken(state)
    assert (job.id, job.state, job.attempt, job.worker) == (asked.id, "running", 1, "one")
    assert jobs.beat(state.database, job, 0.5, "half") == jobs.Beat(mine=True, cancel=False)
    assert (found(state, job).progress, found(state, job).stage) == (0.5, "half")
    assert jobs.end(state.database, job, "done", result_sha256=RESULT)
    done = found(state, job)
    assert (done.state, done.progress, done.result_sha256) == ("done", 1.0, RESULT)
    assert done.created_at <= (done.started_at or 0) <= (done.finished_at or 0)
    assert jobs.take(state.database, "two", KINDS) is None


def test_jobs_are_taken_in_the_order_in_which_they_came(state: State) -> None:
    asked = [submitted(state).id for _ in range(5)]
    assert [taken(state).id for _ in asked] == sorted(asked)


def test_a_worker_takes_only_the_kinds_that_it_knows(state: State) -> None:
    submitted(state)
    assert jobs.take(state.database, "one", ["calibration"]) is None


def test_every_job_is_taken_by_exactly_one_worker(state: State) -> None:
    asked = {submitted(state).id for _ in range(24)}
    seen: Counter[str] = Counter()

    def work(name: str) -> None:
        for _ in range(200):
            job = jobs.take(state.database, name, KINDS)
            if job is not None:
                seen[job.id] += 1
            elif len(seen) == len(asked):
                return

    threads = [threading.Thread(target=work, args=(f"worker {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == Counter(asked)


def test_of_jobs_that_exclude_each_other_one_runs_at_a_time(state: State) -> None:
    first, second = submitted(state, "drive"), submitted(state, "drive")
    other = submitted(state, "another drive")
    assert taken(state).id == first.id
    assert taken(state).id == other.id
    assert jobs.take(state.database, "two", KINDS) is None
    assert jobs.end(state.database, found(state, first), "done", result_sha256=RESULT)
    assert taken(state).id == second.id


def test_many_workers_never_run_two_that_exclude_each_other(state: State) -> None:
    for _ in range(12):
        submitted(state, "drive")
    under_way, most, lock = 0, 0, threading.Lock()
    left = threading.Semaphore(12)

    def work(name: str) -> None:
        nonlocal under_way, most
        while left.acquire(blocking=False):
            while (job := jobs.take(state.database, name, KINDS)) is None:
                pass
            with lock:
                under_way += 1
                most = max(most, under_way)
            with lock:
                under_way -= 1
            assert jobs.end(state.database, job, "done", result_sha256=RESULT)

    threads = [threading.Thread(target=work, args=(f"worker {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_job_whose_worker_fell_silent_is_taken_by_another(state: State) -> None:
    submitted(state)
    lost = taken(state, "one")
    assert jobs.take(state.database, "two", KINDS) is None
    run_out(state, lost)
    job = taken(state, "two")
    assert (job.id, job.attempt, job.worker) == (lost.id, 2, "two")


def test_a_worker_that_lost_its_job_is_not_heard(state: State) -> None:
    submitted(state)
    lost = taken(state, "one")
    run_out(state, lost)
    job = taken(state, "two")
    written: list[str] = []

    def publish(_: Connection) -> None:
        written.append("published")

    assert jobs.beat(state.database, lost, 0.9, None) == jobs.Beat(mine=False, cancel=False)
    assert not jobs.end(state.database, lost, "done", result_sha256=RESULT, publish=publish)
    jobs.give_back(state.database, lost)
    assert found(state, job) == job
    assert not written


def test_a_silent_worker_that_is_back_before_anybody_else_goes_on(state: State) -> None:
    submitted(state)
    job = taken(state)
    run_out(state, job)
    assert jobs.beat(state.database, job, 0.4, None).mine
    assert jobs.take(state.database, "two", KINDS) is None


def test_jobs_of_a_worker_known_to_be_dead_wait_for_no_lease(state: State) -> None:
    submitted(state)
    job = taken(state, "one")
    jobs.abandon(state.database, "two")
    assert jobs.take(state.database, "three", KINDS) is None
    jobs.abandon(state.database, "one")
    assert taken(state, "three").id == job.id


def test_a_job_given_back_is_taken_again(state: State) -> None:
    submitted(state)
    job = taken(state, "one")
    jobs.give_back(state.database, job)
    assert found(state, job).state == "queued"
    assert taken(state, "two").attempt == 2


def test_a_job_that_ends_every_worker_is_given_up(state: State) -> None:
    asked = submitted(state)
    for _ in range(ATTEMPTS_MAX):
        run_out(state, taken(state))
    assert jobs.take(state.database, "one", KINDS) is None
    failed = found(state, asked)
    assert failed.state == "failed"
    assert str(ATTEMPTS_MAX) in (failed.error or {})["detail"]


def cancelled(state: State, job: Job) -> Job:
    with state.database.write() as connection:
        return jobs.cancel(connection, job.id)


def test_a_waiting_job_is_cancelled_at_once(state: State) -> None:
    asked = submitted(state)
    assert cancelled(state, asked).state == "cancelled"
    assert jobs.take(state.database, "one", KINDS) is None
    assert cancelled(state, asked).state == "cancelled"


def test_a_running_job_hears_that_it_is_cancelled(state: State) -> None:
    submitted(state)
    job = taken(state)
    assert cancelled(state, job).state == "running"
    assert jobs.beat(state.database, job, 0.1, None).cancel
    assert jobs.end(state.database, job, "cancelled")


def test_a_cancelled_job_of_a_dead_worker_is_not_begun_again(state: State) -> None:
    submitted(state)
    job = taken(state)
    cancelled(state, job)
    run_out(state, job)
    assert jobs.take(state.database, "two", KINDS) is None
    # the next taker of any job cleans up
    assert found(state, job).state == "cancelled"


def test_what_is_over_cannot_be_cancelled(state: State) -> None:
    submitted(state)
    job = taken(state)
    jobs.end(state.database, job, "failed", error={"title": "x"})
    with pytest.raises(ConflictError, match="failed already"):
        cancelled(state, job)


def test_what_is_published_with_a_job_is_there_or_the_job_is_not_done(state: State) -> None:
    submitted(state)
    job = taken(state)

    def publish(_: Connection) -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        jobs.end(state.database, job, "done", result_sha256=RESULT, publish=publish)
    assert found(state, job) == job


def test_pages_go_through_all_jobs_and_new_ones_shift_nothing(state: State) -> None:
    asked = [submitted(state).id for _ in range(7)]
    seen: list[str] = []
    cursor = None
    while True:
        with state.database.read() as connection:
            page = jobs.listed(connection, 3, cursor, kind="simulation", state=None)
        seen += [job.id for job in page.items]
        submitted(state)
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == sorted(asked, reverse=True)


def test_the_same_key_gives_the_same_job(state: State) -> None:
    key = Key("POST /simulations", "mine", "0" * 64)
    job = submitted(state, key=key)
    assert submitted(state, key=key) == job
    assert submitted(state, key=Key("POST /other", "mine", "0" * 64)).id != job.id
    assert submitted(state, key=Key("POST /simulations", "mine", "0" * 64, "other")).id != job.id
    with pytest.raises(InputError, check=having(field="Idempotency-Key")):
        submitted(state, key=Key("POST /simulations", "mine", "1" * 64))


def test_one_key_sent_many_times_at_once_gives_one_job(state: State) -> None:
    key, made = Key("POST /simulations", "mine", "0" * 64), []
    threads = [
        threading.Thread(target=lambda: made.append(submitted(state, key=key).id)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1


def test_a_job_that_is_not_there(state: State) -> None:
    with state.database.read() as connection, pytest.raises(NotFoundError, match="no job 123"):
        jobs.find(connection, "123")
