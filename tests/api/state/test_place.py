import os
from pathlib import Path

import pytest

from iojoule.api.state import jobs
from iojoule.api.state.ids import is_id, new_id
from iojoule.api.state.place import DATABASE_VARIABLE, Place, State
from iojoule.datasets.errors import InputError


def test_the_place_is_what_is_said_else_the_environment_else_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOJOULE_STATE", str(tmp_path / "stated"))
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)
    assert Place.of().folder == tmp_path / "stated"
    assert Place.of().database == f"sqlite:///{tmp_path / 'stated' / 'service.sqlite'}"
    assert Place.of(tmp_path / "said").folder == tmp_path / "said"
    monkeypatch.delenv("IOJOULE_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(DATABASE_VARIABLE, "postgresql://me@there/it")
    assert Place.of() == Place(tmp_path / "iojoule", "postgresql://me@there/it")


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    state = State(Place.of(tmp_path / "state"))
    state.open()
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    state.close()


def test_a_sweep_spares_what_rows_name_and_what_jobs_compute(state: State) -> None:
    with state.database.write() as connection:
        done, waiting = (jobs.submit(connection, "simulation", {}) for _ in range(2))
    job = jobs.take(state.database, "one", ["simulation"])
    assert job is not None
    assert job.id == done.id
    result, orphan = state.files.keep_bytes(b"result"), state.files.keep_bytes(b"orphan")
    jobs.end(state.database, job, "done", result_sha256=result)
    for digest in (result, orphan):
        os.utime(state.files.path(digest), (1.0, 1.0))
    for id_ in (done.id, waiting.id):
        state.work_folder(id_).mkdir(parents=True)
    assert state.sweep() == 2
    assert state.files.read(result) == b"result"
    assert not state.files.path(orphan).exists()
    assert state.work_folder(waiting.id).is_dir()
    assert not state.work_folder(done.id).exists()


def test_ids_come_in_order_and_are_safe_as_names() -> None:
    first, second = new_id(), new_id()
    assert first[:12] <= second[:12]
    assert is_id(first)
    assert not any(map(is_id, ("..", "", f"{first}/", first[1:], first.upper() + "A")))


def test_a_folder_that_belongs_to_another_database_is_refused(
    place: Place, state: State, tmp_path: Path
) -> None:
    again = State(place)
    again.open()
    again.close()
    other = State(Place.of(place.folder, f"sqlite:///{tmp_path / 'other.sqlite'}"))
    with pytest.raises(InputError, match="another database"):
        other.open()
    other.close()
