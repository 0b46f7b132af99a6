"""A backup made while others write, and what it brings back elsewhere, in either database."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from iojoule.api.application.profiles import profile_of
from iojoule.api.http.simulations import EXAMPLE as SIMULATION
from iojoule.api.state import archive, backup, datasets, jobs, profiles, restore, snapshots, tables
from iojoule.api.state.archive import MANIFEST
from iojoule.api.state.backup import back_up
from iojoule.api.state.database import Database, upgrade
from iojoule.api.state.errors import (
    ConflictError,
    DamagedError,
    NotFoundError,
    StorageFullError,
    UnavailableError,
)
from iojoule.api.state.place import Place, State, named_files
from iojoule.datasets.errors import InputError, IojouleError, SchemaVersionError
from tests.api.http.conftest import serving
from tests.api.http.test_datasets import CSV, EXAMPLE
from tests.api.state.test_files import files_of_at_most
from tests.api.state.test_retention import done, uploaded
from tests.postgresql import PostgresqlServer

DEVICE = "samsung-980-pro-1tb"

Elsewhere = Callable[[], Place]


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Elsewhere:
    """Makes empty places in a database of the same kind."""
    count = 0

    def new() -> Place:
        nonlocal count
        count += 1
        folder = tmp_path / "elsewhere" / str(count)
        if Database(place.database).is_sqlite:
            return Place.of(folder)
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        return Place.of(folder, server.new_database())

    return new


@contextmanager
def opened(place: Place) -> Iterator[State]:
    state = State(place)
    state.open()
    try:
        yield state
    finally:
        state.close()


def everything(state: State) -> tuple[dict[str, Any], dict[str, bytes]]:
    """All rows but those of the audit log, and the content of all files that they name."""
    with state.database.snapshot() as connection:
        rows = {
            name: sorted(map(repr, connection.execute(select(table)).mappings()))
            for name, table in tables.metadata.tables.items()
            if name != "audit"
        }
        named = named_files(connection)
    return rows, {digest: state.files.read(digest) for digest in named}


def filled(state: State, tmp_path: Path) -> None:
    """One of everything that is kept."""
    done(state, 0, content=b'{"a": 1}\n' * 1000)
    folder = tmp_path / "uploads"
    folder.mkdir(exist_ok=True)
    uploaded(state, folder, 1)
    with state.files.keeping(), state.database.write() as connection:
        profiles.publish(connection, state, profile_of(DEVICE), None)
        jobs.submit(
            connection, "simulation", {"text": "tab\tline\n\\N 'ä' \U0001f600", "n": 1e-300}
        )


def there(folder: Path) -> dict[str, str]:
    """All files below a folder with their hashes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_what_was_accepted_before_a_backup_is_in_it_though_others_write_on(
    place: Place, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    accepted: list[tuple[str, dict[str, Any]]] = []
    over = threading.Event()
    failed: list[object] = []

    def write(url: httpx.URL, number: int) -> None:
        # each is another upload, so that each brings files of its own
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            while not over.is_set():
                number += 3
                text = EXAMPLE + EXAMPLE.splitlines()[-1] + "\n"
                rows = text.replace("4096", str(512 * (1 + number % 4000)), 1)
                made = client.post("/datasets", content=rows, headers={"Content-Type": CSV})
                job = client.post("/simulations", json=SIMULATION)
                if (made.status_code, job.status_code) != (201, 202):
                    failed.append((made.text, job.text))
                    return
                accepted.append((made.json()["url"], made.json()))
                accepted.append((job.json()["url"], job.json()))

    def wait_for(more: int) -> None:
        goal = len(accepted) + more
        while len(accepted) < goal and not failed:
            time.sleep(0.01)
        assert not failed

    file = tmp_path / "one.iojoule"
    store = State(place)
    with serving(store) as service:
        threads = [threading.Thread(target=write, args=(service.base_url, n)) for n in range(3)]
        for thread in threads:
            thread.start()
        try:
            wait_for(8)
            before = list(accepted)
            other = State(place)
            manifest = back_up(other, file)
            other.close()
            wait_for(4)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        target = elsewhere()
        assert restore.restore(target, file) == manifest
        with serving(State(target)) as restored:
            for url, said in before:
                assert restored.get(url).json() == said
                if "data_url" in said:
                    for part in ("data_url", "sidecar_url"):
                        assert restored.get(said[part]).content == service.get(said[part]).content
        assert len(accepted) > len(before)
    with opened(target) as state:
        everything(state)  # what rows name is there and whole, that of writes under way too


def test_a_backup_brings_back_every_row_and_file(
    state: State, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    filled(state, tmp_path)
    before = everything(state)
    file = tmp_path / "one.iojoule"
    back_up(state, file)
    assert file.stat().st_mode & 0o077 == 0
    assert not list(tmp_path.glob(".*"))
    target = elsewhere()
    restore.restore(target, file)
    with opened(target) as restored:
        assert everything(restored) == before
        with restored.files.keeping(), restored.database.write() as connection:
            assert profiles.publish(connection, restored, profile_of(DEVICE), None).number == 2
    assert (target.folder.stat().st_mode & 0o077) == 0
    assert not [path for path in target.folder.rglob("*") if path.name.startswith(".")]
    assert everything(state) == before


def test_what_is_kept_is_replaced_only_where_that_is_said(
    state: State, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    filled(state, tmp_path)
    file, target = tmp_path / "one.iojoule", elsewhere()
    back_up(state, file)
    with opened(target) as other:
        kept = done(other, 0, content=b"other")
        other.work_folder(kept.id).mkdir(parents=True)
        before = everything(other)
    with pytest.raises(ConflictError):
        restore.restore(target, file)
    with opened(target) as other:
        assert everything(other) == before
    restore.restore(target, file, replace=True)
    with opened(target) as other:
        assert everything(other) == everything(state)
        assert not (target.folder / "work").exists()
        digest = hashlib.sha256(b"other").hexdigest()
        assert other.files.sweep(set(everything(other)[1]), after_seconds=-60) == 1
        assert not other.files.path(digest).exists()


def test_a_state_that_is_in_use_is_not_replaced(
    state: State, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    file, target = tmp_path / "one.iojoule", elsewhere()
    back_up(state, file)
    with opened(target) as other:
        done(other, 0)
        before = everything(other)
        with pytest.raises(ConflictError):
            restore.restore(target, file, replace=True)
        assert everything(other) == before


def test_a_restore_that_fails_leaves_nothing(
    state: State, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(state, tmp_path)
    file, target = tmp_path / "one.iojoule", elsewhere()
    back_up(state, file)

    def fail(*_: object) -> None:
        raise StorageFullError("no room")

    for place_, name in (
        (restore, "_unpack"), (restore, "_keep_content"), (restore.ContentStore, "keep"),
        (snapshots, "upgrade" if not state.database.is_sqlite else "alone"),
    ):  # fmt: skip
        with monkeypatch.context() as broken:
            broken.setattr(place_, name, fail)
            with pytest.raises(StorageFullError):
                restore.restore(target, file)
        assert not target.folder.exists()
    with files_of_at_most(3000), pytest.raises(StorageFullError):
        restore.restore(target, file)
    assert not target.folder.exists()
    with opened(target) as other:
        done(other, 0, content=b"other")
        before = everything(other)
    for place_, name in ((restore, "_unpack"), (restore.ContentStore, "keep")):
        with monkeypatch.context() as broken:
            broken.setattr(place_, name, fail)
            with pytest.raises(StorageFullError):
                restore.restore(target, file, replace=True)
        with opened(target) as other:
            assert everything(other) == before
    restore.restore(target, file, replace=True)
    with opened(target) as other:
        assert everything(other) == everything(state)


def changed(source: Path, target: Path, harm: Callable[[dict[str, bytes]], None]) -> None:
    """An archive as somebody else packs it, whose own checksums fit."""
    with zipfile.ZipFile(source) as one:
        members = {name: one.read(name) for name in one.namelist()}
    harm(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as other:
        for name, content in members.items():
            other.writestr(name, content)


def refusal(path: Path, manifest: archive.Manifest) -> IojouleError | None:
    """Why an archive is not taken; one that is taken holds what it should."""
    try:
        with archive.opened(path) as one:
            one.check()
            found = one.manifest
    except IojouleError as error:
        return error
    assert found == manifest
    return None


def first(members: dict[str, bytes], start: str) -> str:
    return next(name for name in members if name.startswith(start))


HARMS: list[Callable[[dict[str, bytes]], object]] = [
    lambda m: m.update({first(m, "content/"): b"something else"}),
    lambda m: m.update({first(m, "database" if "database.sqlite" in m else "tables/"): b"x"}),
    lambda m: m.pop(first(m, "content/")),
    lambda m: m.pop(MANIFEST),
    lambda m: m.update({MANIFEST: b"{}"}),
    lambda m: m.update({MANIFEST: b"[1"}),
    lambda m: m.update({"../elsewhere": b"x"}),
    lambda m: m.update(
        {MANIFEST: m[MANIFEST].replace(first(m, "content/").encode(), b"../../elsewhere", 1),
         "../../elsewhere": m.pop(first(m, "content/"))}
    ),
]  # fmt: skip


def test_a_damaged_backup_is_refused_by_name_and_writes_nothing(
    state: State, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    filled(state, tmp_path)
    file, bad, target = tmp_path / "one.iojoule", tmp_path / "bad.iojoule", elsewhere()
    back_up(state, file)

    def assert_refused() -> None:
        with pytest.raises(DamagedError) as caught:
            restore.restore(target, bad)
        assert str(bad) in caught.value.message
        assert not target.folder.exists()

    for harm in HARMS:
        changed(file, bad, harm)  # type: ignore[arg-type]
        assert_refused()
    whole = file.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:length])
        assert_refused()
    # wherever one bit is wrong it is refused, or it meant nothing, as in the time of a member or
    # in where a run of zeros is copied from
    refused = 0
    with archive.opened(file) as one:
        manifest = one.manifest
    for place_ in range(7, len(whole), max(1, len(whole) // 150)):
        bad.write_bytes(whole[:place_] + bytes([whole[place_] ^ 4]) + whole[place_ + 1 :])
        error = refusal(bad, manifest)
        if error is not None:
            assert str(bad) in error.message
            refused += 1
    assert refused > 20
    restore.restore(target, file)


def test_a_backup_of_another_version_or_database_is_refused(
    state: State, elsewhere: Elsewhere, tmp_path: Path, postgresql: PostgresqlServer
) -> None:
    file, newer, target = tmp_path / "one.iojoule", tmp_path / "newer", elsewhere()
    back_up(state, file)
    changed(
        file,
        newer,
        lambda m: m.update({MANIFEST: m[MANIFEST].replace(b'"version": 1', b'"version": 2')}),
    )
    with pytest.raises(SchemaVersionError):
        restore.restore(target, newer)
    folder = tmp_path / "other kind"
    other = Place.of(folder, postgresql.new_database() if state.database.is_sqlite else None)
    with pytest.raises(InputError) as caught:
        restore.restore(other, file)
    assert type(caught.value) is InputError
    assert not folder.exists()
    with pytest.raises(InputError):
        restore.restore(target, tmp_path / "nothing")
    assert not target.folder.exists()


@pytest.mark.parametrize("revision", ["0002", "9999"])
def test_an_older_backup_is_brought_up_to_date_and_a_newer_one_refused(
    place: Place,
    elsewhere: Elsewhere,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    revision: str,
) -> None:
    database, file, target = Database(place.database), tmp_path / "old.iojoule", elsewhere()
    place.folder.mkdir()
    with database.write() as connection:
        upgrade(connection, "0002")
        connection.exec_driver_sql(
            "INSERT INTO idempotency_keys VALUES ('POST /x', 'mine', 'hash', 'job', 1.0)"
        )
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    database.close()
    state = State(place)
    state.files.prepare()
    with pytest.raises(SchemaVersionError):
        back_up(state, file)
    monkeypatch.setattr(backup.tables, "REVISION", revision)  # as that iojoule had it
    back_up(state, file)
    state.close()
    monkeypatch.undo()
    if revision == "9999":
        with pytest.raises(SchemaVersionError):
            restore.restore(target, file)
        assert not target.folder.exists()
        return
    restore.restore(target, file)
    with opened(target) as restored, restored.database.read() as connection:
        (row,) = connection.execute(select(tables.idempotency_keys)).mappings()
        assert (row["key"], row["owner"]) == ("mine", "")


def test_no_backup_is_made_of_what_is_damaged(state: State, tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    lost, broken = (uploaded(state, tmp_path / "uploads", 1) for _ in range(2))
    with state.database.read() as connection:
        paths = [
            state.files.path(datasets.find(connection, id_).data_sha256) for id_ in (lost, broken)
        ]
    paths[0].unlink()
    paths[1].write_bytes(b"something else")
    file = tmp_path / "one.iojoule"
    with pytest.raises(DamagedError) as caught:
        back_up(state, file)
    assert lost in caught.value.message
    assert broken in caught.value.message
    assert not file.exists()
    assert not list(tmp_path.glob(".*"))


def test_a_backup_overwrites_nothing_and_of_nothing_there_is_none(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "one.iojoule"
    state = State(place)
    with pytest.raises(NotFoundError):
        back_up(state, file)
    assert not place.folder.exists()
    state.open()
    file.write_text("mine")
    with pytest.raises(ConflictError):
        back_up(state, file)
    assert file.read_text() == "mine"
    with pytest.raises(InputError):
        back_up(state, tmp_path / "no folder" / "x")
    done(state, 0, content=bytes(range(256)) * 400)
    with files_of_at_most(1000), pytest.raises((StorageFullError, UnavailableError)):
        back_up(state, tmp_path / "large")
    assert not (tmp_path / "large").exists()
    state.close()


def test_a_database_that_is_damaged_is_told_and_can_be_replaced(tmp_path: Path) -> None:
    place = Place.of(tmp_path / "state")
    file = tmp_path / "one.iojoule"
    with opened(place) as state:
        filled(state, tmp_path)
        before = everything(state)
        back_up(state, file)
    database = place.folder / "service.sqlite"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"\xff" * 4096 * 2 + whole[4096 * 3 :])
    state = State(place)
    with pytest.raises(DamagedError):
        back_up(state, tmp_path / "two.iojoule")
    state.close()
    assert not (tmp_path / "two.iojoule").exists()
    restore.restore(place, file, replace=True)
    with opened(place) as state:
        assert everything(state) == before


def test_what_only_the_log_of_sqlite_holds_is_in_a_backup(tmp_path: Path) -> None:
    place, file = Place.of(tmp_path / "state"), tmp_path / "one.iojoule"
    with opened(place) as state:
        job = done(state, 0)
        with sqlite3.connect(f"file:{place.folder}/service.sqlite?immutable=1", uri=True) as raw:
            assert not raw.execute("SELECT name FROM sqlite_master WHERE name = 'jobs'").fetchall()
        back_up(state, file)
        shutil.copytree(place.folder, tmp_path / "copy")
        target = Place.of(tmp_path / "other")
        restore.restore(target, file)
    with opened(target) as restored, restored.database.read() as connection:
        assert jobs.find(connection, job.id).state == "done"
