import hashlib
import os
import threading
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from iojoule.api.application.profiles import profile_of
from iojoule.api.state import datasets, jobs, profiles, retention, tables
from iojoule.api.state.datasets import Checked
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.idempotency import Key
from iojoule.api.state.ids import new_id
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State

DAY = 86400.0
DEVICE = "samsung-980-pro-1tb"


def aged(state: State, id_: str, days: float) -> None:
    """Let a job have ended, or a dataset have been uploaded, so many days ago."""
    with state.database.write() as connection:
        for table, name in ((tables.jobs, "finished_at"), (tables.datasets, "created_at")):
            column = table.c[name]
            older = {name: column - days * DAY}
            connection.execute(update(table).where(table.c.id == id_).values(older))


def done(state: State, days: float, key: Key | None = None, content: bytes = b"result") -> Job:
    """A simulation that was done so many days ago."""
    with state.database.write() as connection:
        jobs.submit(connection, "simulation", {}, key=key)
    job = jobs.take(state.database, "one", ["simulation"])
    assert job is not None
    digest = state.files.keep_bytes(content)
    os.utime(state.files.path(digest), (1.0, 1.0))
    jobs.end(state.database, job, "done", result_sha256=digest)
    aged(state, job.id, days)
    return job


def uploaded(state: State, folder: Path, days: float) -> str:
    """A dataset that was uploaded so many days ago."""
    id_ = new_id()
    paths = [folder / f"{id_}.parquet", folder / f"{id_}.json"]
    for path in paths:
        path.write_text(f"{id_}{path.suffix}")
        os.utime(path, (1.0, 1.0))
    checked = Checked(*paths, "csv", DEVICE, 1, ["iops"], 0, hashlib.sha256().hexdigest())
    with state.files.keeping(), state.database.write() as connection:
        datasets.add(connection, state, id_, checked)
    aged(state, id_, days)
    return id_


def calibrated(state: State, of: list[str], days: float, *, published: bool = True) -> Job:
    """A calibration that ended so many days ago, with a profile or without one."""
    with state.database.write() as connection:
        jobs.submit(connection, "calibration", {"datasets": of})
    job = jobs.take(state.database, "one", ["calibration"])
    assert job is not None
    digest = state.files.keep_bytes(job.id.encode())
    if published:
        jobs.end(
            state.database, job, "done", result_sha256=digest,
            publish=lambda connection: profiles.publish(
                connection, state, profile_of(DEVICE), job.id
            ) and None,
        )  # fmt: skip
    else:
        jobs.end(state.database, job, "failed", error={"title": "no"})
    aged(state, job.id, days)
    return job


def there(state: State) -> set[str]:
    """Ids of the jobs and datasets that are there."""
    with state.database.read() as connection:
        return {
            id_
            for table in (tables.jobs, tables.datasets)
            for id_ in connection.scalars(select(table.c.id))
        }


def test_what_ended_long_ago_goes_with_its_result_and_its_key(state: State) -> None:
    key = Key("POST /simulations", "mine", "0" * 64)
    old, young = done(state, 31, key, b"old"), done(state, 29, content=b"young")
    state.work_folder(old.id).mkdir(parents=True)
    with state.database.write() as connection:
        waiting = jobs.submit(connection, "simulation", {})
    aged(state, waiting.id, 100)
    state.sweep(30 * DAY)
    assert there(state) == {young.id, waiting.id}
    files = {path.read_bytes() for path in state.place.folder.glob("content/??/*")}
    assert files == {b"young"}
    assert not state.work_folder(old.id).exists()
    with state.database.write() as connection:  # the key is free: it named what is no more
        again = jobs.submit(connection, "simulation", {}, key=key)
    assert again.id != old.id


def test_nothing_goes_where_nobody_says_for_how_long(state: State, tmp_path: Path) -> None:
    kept = {done(state, 10_000).id, uploaded(state, tmp_path, 10_000)}
    state.sweep()
    assert there(state) == kept


def test_what_a_version_of_a_profile_rests_on_stays(state: State, tmp_path: Path) -> None:
    first, second, unused, young = (uploaded(state, tmp_path, days) for days in (90, 90, 90, 1))
    by = [calibrated(state, [id_], 80) for id_ in (first, second)]
    with state.database.write() as connection:  # the first may be made current again
        profiles.show(connection, DEVICE, 1, profiles.shown(connection, DEVICE).revision)
    state.sweep(30 * DAY)
    assert there(state) == {first, second, young} | {job.id for job in by}
    with state.database.read() as connection:
        for number in (1, 2):
            kept = profiles.version(connection, DEVICE, number)
            assert profiles.read(state, kept).profile_version == f"calibration-{number}"
        with pytest.raises(NotFoundError):
            datasets.find(connection, unused)


def test_a_dataset_outlives_the_jobs_that_name_it_and_no_longer(
    state: State, tmp_path: Path
) -> None:
    waits_for, failed_on = (uploaded(state, tmp_path, 90) for _ in range(2))
    failed = calibrated(state, [failed_on], 1, published=False)
    with state.database.write() as connection:
        waiting = jobs.submit(connection, "calibration", {"datasets": [waits_for]})
    state.sweep(30 * DAY)
    assert there(state) == {waits_for, failed_on, failed.id, waiting.id}
    aged(state, failed.id, 90)
    state.sweep(30 * DAY)
    assert there(state) == {waits_for, waiting.id}


def test_replicas_that_forget_at_the_same_time_forget_each_thing_once(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    kept = [done(state, 40) for _ in range(20)]
    young = done(state, 1)
    gone: list[int] = []

    def forget() -> None:
        replica = State(state.place)
        gone.append(retention.forget(replica.database, 30 * DAY))
        replica.close()

    threads = [threading.Thread(target=forget) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(gone) == 3
    assert sum(gone) == len(kept)
    assert there(state) == {young.id}


def test_a_dataset_that_is_just_being_asked_for_is_not_deleted(
    state: State, tmp_path: Path
) -> None:
    wanted = uploaded(state, tmp_path, 90)
    asking, asked = threading.Event(), threading.Event()

    def ask() -> None:
        with state.database.write() as connection:
            datasets.find(connection, wanted, hold=True)
            asking.set()
            asked.wait(0.5)
            jobs.submit(connection, "calibration", {"datasets": [wanted]})

    thread = threading.Thread(target=ask)
    thread.start()
    asking.wait()
    retention.forget(state.database, DAY)
    asked.set()
    thread.join()
    assert wanted in there(state)


def test_old_keys_go_without_being_asked(state: State) -> None:
    done(state, 0, Key("POST /simulations", "mine", "0" * 64))
    table = tables.idempotency_keys
    with state.database.write() as connection:
        connection.execute(update(table).values(created_at=table.c.created_at - 8 * DAY))
    state.sweep()
    with state.database.read() as connection:
        assert connection.scalar(select(func.count()).select_from(table)) == 0
