"""The service killed at random moments under load: nothing that it accepted is lost.

A backup that is made meanwhile, restored elsewhere, holds what was accepted before it began.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.state.files import ContentStore
from iojoule.api.state.place import Place, State
from tests.postgresql import PostgresqlServer, programs
from tests.service import ServiceProcess

KILLS = int(os.environ.get("IOJOULE_KILLS", "25"))
JOBS_LEAST = 10
SIMULATE = {
    "drive": "samsung-980-pro-1tb",
    "scenario": {"flows": [{"queue_depth": 4, "total_requests": 20_000}]},
}
TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]


class Service(ServiceProcess):
    """A service with two workers and two processes that compute, some of which are killed."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.folder, "--workers", "2", "--database", place.database)

    def restart(self) -> None:
        self.kill()
        self.start()


class Client(threading.Thread):
    """Asks for jobs and answers and uploads datasets, and remembers what was promised."""

    def __init__(self, service: Service, number: int) -> None:
        super().__init__()
        self._service, self._number = service, number
        self.enough = threading.Event()
        self.jobs: dict[str, str] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.answers = 0
        self.refused: list[str] = []

    def run(self) -> None:
        count = 0
        while not self.enough.is_set():
            key = f"{self._number}-{count}"
            try:
                base = f"http://127.0.0.1:{self._service.port}"
                with httpx.Client(base_url=base, timeout=30, trust_env=False) as client:
                    self._ask(
                        client, key, ("upload", "simulate", "recommend", "simulate")[count % 4]
                    )
            except httpx.TransportError:
                time.sleep(0.1)  # it was killed; the same request comes again
                continue
            count += 1
            self.enough.wait(0.2)

    def _ask(self, client: httpx.Client, key: str, what: str) -> None:
        headers = {"Idempotency-Key": key}
        if what == "upload":
            headers["Content-Type"] = "text/csv"
            answer = client.post("/datasets", content=TABLE, headers=headers)
        elif what == "simulate":
            answer = client.post("/simulations", json=SIMULATE, headers=headers)
        else:
            answer = client.post("/recommend", json=RECOMMEND)
        if answer.status_code == 503:  # what read the upload was killed, or twice what computes
            raise httpx.ReadError(answer.text)
        if not answer.is_success or (what == "recommend" and not answer.json()["recommended"]):
            self.refused.append(answer.text)
        elif what == "upload":
            self.datasets[key] = answer.json()
        elif what == "simulate":
            self.jobs[key] = answer.json()["id"]
        else:
            self.answers += 1


NewPlace = Callable[[str], Place]
"""An empty place of that name, in a database of its own."""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewPlace]:
    if request.param == "sqlite":
        yield lambda name: Place.of(tmp_path / name)
        return
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresqlServer()
    yield lambda name: Place.of(tmp_path / name, server.new_database())
    server.delete()


class Backup:
    """A backup in a process of its own, begun while requests come and the service is killed."""

    def __init__(self, place: Place, file: Path, clients: list[Client]) -> None:
        self.file = file
        self.jobs = [id_ for client in clients for id_ in list(client.jobs.values())]
        self.datasets = [kept for client in clients for kept in list(client.datasets.values())]
        self._process = command("backup", str(file), place)

    def restore(self, place: Place) -> None:
        """Once it is whole, put it there."""
        assert self._process.wait() == 0
        assert command("restore", str(self.file), place).wait() == 0


def command(name: str, file: str, place: Place) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", "from iojoule.api.cli import main; main()", name, file]
    return subprocess.Popen([*program, "--state", str(place.folder), "--database", place.database])


def test_what_was_accepted_is_done_whoever_is_killed(new_place: NewPlace, tmp_path: Path) -> None:
    place, elsewhere = new_place("state"), new_place("elsewhere")
    service, chosen = Service(place), random.Random(7)
    clients = [Client(service, number) for number in range(3)]
    backup: Backup | None = None
    for client in clients:
        client.start()
    try:
        for kill in range(KILLS):
            time.sleep(chosen.uniform(0.3, 1.5))
            if backup is None and kill >= KILLS // 2 and asked_enough(clients, jobs_least=1):
                backup = Backup(place, tmp_path / "backup.iojoule", clients)
            children = psutil.Process(service.process.pid).children()
            if children and chosen.random() < 0.6:
                with suppress(psutil.NoSuchProcess):
                    chosen.choice(children).kill()
            else:
                service.restart()
        # a slow machine gets as long as it takes
        while not asked_enough(clients) and not any(client.refused for client in clients):
            time.sleep(0.2)
        backup = backup or Backup(place, tmp_path / "backup.iojoule", clients)
        for client in clients:
            client.enough.set()
            client.join()
        check(service, place, clients)
    finally:
        for client in clients:
            client.enough.set()
        service.kill()
    backup.restore(elsewhere)
    restored = Service(elsewhere)
    try:
        check_kept(restored, backup.jobs, backup.datasets)
    finally:
        restored.kill()


def asked_enough(clients: list[Client], jobs_least: int = JOBS_LEAST) -> bool:
    """Whether there is something to check of every kind."""
    jobs = sum(len(client.jobs) for client in clients)
    datasets = any(client.datasets for client in clients)
    return jobs > jobs_least and datasets and all(client.answers for client in clients)


def check(service: Service, place: Place, clients: list[Client]) -> None:
    refused = [text for client in clients for text in client.refused]
    accepted = [id_ for client in clients for id_ in client.jobs.values()]
    datasets = [kept for client in clients for kept in client.datasets.values()]

    assert not refused
    assert len(set(accepted)) == len(accepted) > JOBS_LEAST
    assert datasets
    assert all(client.answers for client in clients)
    check_kept(service, accepted, datasets)
    state = State(place)
    with state.files.sweeping() as alone:
        assert alone
    assert not damaged(state.files, place.folder)
    state.close()


def check_kept(service: Service, jobs: list[str], datasets: list[dict[str, Any]]) -> None:
    """Every one of these jobs ends done, and every dataset is there whole."""
    base = f"http://127.0.0.1:{service.port}"
    with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
        for id_ in jobs:
            end = time.monotonic() + 300
            while (job := client.get(f"/jobs/{id_}").json())["state"] in ("queued", "running"):
                assert time.monotonic() < end, job
                time.sleep(0.1)
            assert job["state"] == "done", job
            assert client.get(job["result_url"]).json()["scenarios"]
        for kept in datasets:
            assert client.get(kept["url"]).json() == kept
            assert client.get(kept["data_url"]).is_success


def damaged(files: ContentStore, folder: Path) -> list[Path]:
    """Kept files whose content is not what their name says."""
    kept = list((folder / "content").glob("??/*"))
    assert kept
    return [path for path in kept if not files.read(path.name) and path.stat().st_size]
