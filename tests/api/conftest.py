"""Runs the command line inside the test's own process, and makes states of the service."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import update

from iojoule.api.cli.app import run
from iojoule.api.state import tables
from iojoule.api.state.place import Place, State
from tests.postgresql import PostgresqlServer, programs
from tests.service import ServiceProcess

DEVICE = "samsung-980-pro-1tb"


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


Iojoule = Callable[..., Outcome]


@pytest.fixture
def iojoule(capsys: pytest.CaptureFixture[str]) -> Iojoule:
    """Run `iojoule ARGUMENTS...`."""

    def call(*arguments: str | Path) -> Outcome:
        code = run([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def device() -> str:
    """A drive whose profile ships with performance and power."""
    return DEVICE


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A server that all tests of the session share."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresqlServer()
    try:
        yield server
    finally:
        server.delete()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for a state, in either database."""
    if request.param == "sqlite":
        return Place.of(tmp_path / "state")
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    return Place.of(tmp_path / "state", server.new_database())


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite with all tables: to copy it is quicker than to run the migrations again."""
    made = State(Place.of(tmp_path_factory.mktemp("migrated")))
    made.open()
    made.close()
    return Path(made.database.url.database or "")


@pytest.fixture
def state(place: Place, migrated: Path) -> Iterator[State]:
    """An opened state, in either database."""
    made = State(place)
    if made.database.is_sqlite:
        place.folder.mkdir(mode=0o700)
        shutil.copy(migrated, place.folder / migrated.name)
        with made.database.write() as connection:  # each has a name of its own
            connection.execute(update(tables.identity).values(id=secrets.token_hex(16)))
    made.open()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service in a process of its own, with one worker.

    Of a module, for its worker looks for jobs five times a second as long as it is there.
    """
    process = ServiceProcess(tmp_path_factory.mktemp("served"))
    yield process
    process.stop()
