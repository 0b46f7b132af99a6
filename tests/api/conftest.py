"""Runs the command line inside the test's own process, and makes states of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iojoule.api.cli.app import run
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


@pytest.fixture
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


@pytest.fixture
def state(place: Place) -> Iterator[State]:
    """An opened state, in either database."""
    made = State(place)
    made.open()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service in a process of its own, with one worker."""
    process = ServiceProcess(tmp_path_factory.mktemp("served"))
    yield process
    process.stop()
