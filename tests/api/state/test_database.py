import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, inspect, select

from iojoule.api.state import api_keys, datasets, jobs, tables
from iojoule.api.state.callers import Caller, Limits, Origin
from iojoule.api.state.database import Database, now, upgrade
from iojoule.api.state.errors import NotFoundError, StorageFullError, UnavailableError
from iojoule.api.state.place import Place, State
from iojoule.datasets.errors import InputError, SchemaVersionError
from tests.postgresql import PostgresqlServer, programs


def test_the_migrations_make_the_tables_that_the_code_knows(state: State) -> None:
    with state.database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert context.get_current_revision() == tables.REVISION
        assert not compare_metadata(context, tables.metadata)


def test_the_newest_migration_is_the_one_that_the_code_names(root: Path) -> None:
    scripts = ScriptDirectory(str(root / "api" / "state" / "migrations"))
    assert scripts.get_current_head() == tables.REVISION


def test_keys_of_requests_outlive_the_migration_that_gives_them_owners(place: Place) -> None:
    database = Database(place.database)
    place.folder.mkdir()
    with database.write() as connection:
        upgrade(connection, "0002")
        connection.exec_driver_sql(
            "INSERT INTO idempotency_keys VALUES ('POST /x', 'mine', 'hash', 'job', 1.0)"
        )
    database.migrate()
    with database.read() as connection:
        (row,) = connection.execute(select(tables.idempotency_keys)).mappings()
    assert dict(row) == {
        "owner": "", "operation": "POST /x", "key": "mine", "request_sha256": "hash",
        "resource": "job", "created_at": 1.0,
    }  # fmt: skip
    database.close()


def test_what_was_kept_before_there_were_owners_stays_everybodys(place: Place) -> None:
    database = Database(place.database)
    place.folder.mkdir()
    with database.write() as connection:
        upgrade(connection, "0003")
        connection.exec_driver_sql(
            "INSERT INTO api_keys (id, name, scope, secret_sha256, created_at) "
            "VALUES ('0123456789ab', 'grid', 'write', 'hash', 1.0)"
        )
        connection.exec_driver_sql(
            "INSERT INTO jobs (id, kind, request, state, progress, attempt, cancel_requested, "
            "created_at, revision) VALUES ('019c1d2e3f405a6b7c8d9e0f1a2b', 'simulation', '{}', "
            "'queued', 0.0, 0, false, 1.0, 1)"
        )
        connection.exec_driver_sql(
            "INSERT INTO datasets (id, format, rows, fields, warnings, upload_sha256, "
            "data_sha256, sidecar_sha256, created_at) VALUES ('019c1d2e3f405a6b7c8d9e0f1a2c', "
            "'csv', 1, '[]', 0, 'a', 'b', 'c', 1.0)"
        )
    database.migrate()
    anybody = Caller(Origin.KEY, "somebody", "b" * 12, sees_all=False)
    with database.write() as connection:
        (key,) = api_keys.listed(connection)
        assert (key.owner, key.expires_at, key.last_used_at) == ("grid", None, None)
        assert key.limits == Limits()
        assert list(api_keys.valid(connection)) == [key.id]
        (job,) = jobs.listed(connection, 10, None, anybody).items
        (dataset,) = datasets.listed(connection, 10, None, anybody).items
        assert (job.owner, job.shared) == (dataset.owner, dataset.shared) == (None, True)
    assert jobs.take(database, "one", ["simulation"]) is not None
    database.close()


def start_together(place: Place, replicas: int) -> int:
    """How many of the replicas that start at the same moment have opened their state."""
    opened: list[State] = []
    gate = threading.Barrier(replicas)

    def start() -> None:
        state = State(place)
        gate.wait()
        state.open()
        opened.append(state)
        state.close()

    threads = [threading.Thread(target=start) for _ in range(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(opened)


def test_replicas_that_start_together_migrate_one_after_the_other(place: Place) -> None:
    assert start_together(place, 4) == 4


def test_a_new_sqlite_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    """SQLite's switch to a write-ahead log is refused at once, not after the busy time."""
    for number in range(12):
        folder = tmp_path / str(number)
        place = Place(folder, f"sqlite:///{folder}/service.sqlite")
        assert start_together(place, 6) == 6


def test_a_database_of_a_newer_iojoule_is_left_alone(place: Place, state: State) -> None:
    with state.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    again = State(place)
    with pytest.raises(SchemaVersionError, match="upgrade iojoule"):
        again.open()
    again.close()


@pytest.mark.parametrize("text", ["a\0b", "long" * 100])
def test_text_that_the_database_cannot_hold_is_refused_and_not_called_an_outage(
    state: State, text: str
) -> None:
    """SQLite holds any."""
    row = dict.fromkeys(("name", "secret_sha256", "id"), "x") | {"scope": "read", "name": text}

    def keep() -> None:
        with state.database.write() as connection:
            connection.execute(insert(tables.api_keys).values(**row, created_at=1.0))

    if state.database.is_sqlite:
        keep()
    else:
        with pytest.raises(InputError, match="cannot hold this"):
            keep()
    with state.database.read() as connection, pytest.raises(NotFoundError):
        jobs.find(connection, text)


def test_a_transaction_that_fails_leaves_nothing(state: State) -> None:
    def fail() -> None:
        with state.database.write() as connection:
            connection.exec_driver_sql("CREATE TABLE half (x INTEGER)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with state.database.read() as connection:
        assert not inspect(connection).has_table("half")


def test_the_clock_is_that_of_the_database(state: State) -> None:
    with state.database.read() as connection:
        first = connection.scalar(now())
        assert first is not None
        assert first > 1.6e9
        assert isinstance(first, float)


def test_the_embedded_database_is_durable_and_keeps_its_references(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite'}")
    with database.read() as connection:
        asked = ("journal_mode", "synchronous", "foreign_keys")
        told = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked]
    assert told == ["wal", 2, 1]
    database.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://host/name", "sqlite+aiosqlite:///x"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(InputError, match="postgresql://"):
        Database(url)


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = State(Place.of(tmp_path / "file" / "state"))
    with pytest.raises(UnavailableError, match="state folder"):
        state.open()


def test_a_full_database_says_so_and_keeps_what_it_had(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite'}")
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x TEXT)")

    def fill() -> None:
        with database.write() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 4")
            connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("x" * 100_000,))

    with pytest.raises(StorageFullError, match="no room"):
        fill()
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0
    database.close()


@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
def test_a_server_that_is_gone_is_said_to_be_and_is_found_again_when_it_is_back() -> None:
    server = PostgresqlServer()
    database = Database(server.new_database())
    try:
        database.migrate()
        server.stop()
        with pytest.raises(UnavailableError, match="does not answer"), database.read():
            pass
        server.start()
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    finally:
        database.close()
        server.delete()
