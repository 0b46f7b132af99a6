"""Answers from processes of their own are those of the service itself, whatever befalls them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import anyio
import httpx
import psutil
import pytest
from pydantic import PlainSerializer, TypeAdapter

from iojoule.api.http import workers
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.what_if import EXAMPLE as WHAT_IF
from iojoule.api.state import profiles
from iojoule.api.state.errors import TooLongError
from iojoule.api.state.place import Place, State
from iojoule.datasets.profile import load_shipped_profile
from tests.watched_service import Service

DEVICE = "samsung-980-pro-1tb"
ASKED = {"/recommend": RECOMMEND, "/predict": PREDICT, "/what-if": WHAT_IF}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Service]:
    """With two processes that compute and no others."""
    with Service(folder, "--workers", "0", "--processes", "2") as found:
        yield found


@pytest.fixture
def client(running: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running.url, timeout=60, trust_env=False) as found:
        yield found


def answered(client: httpx.Client, path: str, body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", ASKED)
def test_the_answers_are_the_same(client: httpx.Client, service: httpx.Client, path: str) -> None:
    assert answered(client, path, ASKED[path]) == answered(service, path, ASKED[path])


def test_errors_name_their_field(client: httpx.Client) -> None:
    problem = client.post("/recommend", json={**RECOMMEND, "device": "samsung-980-prp"}).json()
    assert (problem["status"], problem["field"]) == (404, "/device")
    assert "samsung-980-pro" in problem["detail"]


def test_what_is_computed_elsewhere_is_counted_here(client: httpx.Client) -> None:
    def counted() -> float:
        lines = client.get("/metrics").text.splitlines()
        return sum(
            float(line.split()[-1])
            for line in lines
            if line.startswith("iojoule_predictions_total")
        )

    before = counted()
    answered(client, "/predict", PREDICT)
    assert counted() == before + len(PREDICT["configurations"])


def test_a_profile_that_becomes_current_answers_within_seconds(
    client: httpx.Client, folder: Path
) -> None:
    state = State(Place.of(folder))
    with state.files.keeping(), state.database.write() as connection:
        profiles.publish(connection, state, load_shipped_profile(DEVICE), None)
    state.close()
    until = time.monotonic() + 30
    while answered(client, "/recommend", RECOMMEND)["profile_version"] != "calibration-1":
        assert time.monotonic() < until
        time.sleep(0.1)


def test_who_is_killed_is_replaced(client: httpx.Client, running: Service) -> None:
    here, *processes = running.processes()
    assert len(processes) == 2
    for process in processes:
        process.kill()
    assert answered(client, "/recommend", RECOMMEND)["device"] == DEVICE
    replaced = {one.pid for one in here.children(recursive=True)}
    assert replaced
    assert not replaced & {one.pid for one in processes}


def test_none_outlives_the_service(tmp_path: Path) -> None:
    with Service(tmp_path, "--workers", "0") as killed:
        here, *processes = killed.processes()
        os.kill(here.pid, signal.SIGKILL)
        gone, alive = psutil.wait_procs(processes, timeout=10)
    assert len(gone) == 2
    assert not alive


def test_what_takes_too_long_is_broken_off_and_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "REQUEST_SECONDS", 0.2)

    async def ask() -> bytes:
        with workers.WorkerPool(Place.of(tmp_path), 1) as asked:
            for endless in (never_done, never_serialized):
                with pytest.raises(TooLongError):
                    await asked(endless)
            return await asked(done)

    assert anyio.run(ask) == b"done"


def never_done(_: object) -> bytes:
    while True:
        pass


def never_serialized(_: object) -> bytes:
    """Within pydantic, which makes an error of its own of every exception."""
    return TypeAdapter(Annotated[int, PlainSerializer(never_done)]).dump_json(1)


def done(_: object) -> bytes:
    return b"done"
