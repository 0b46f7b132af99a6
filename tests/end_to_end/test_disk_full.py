"""A state folder on a disk that is full: refused as documented, nothing torn, and then all well."""

import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.simulations import EXAMPLE as SIMULATION
from iojoule.api.state.place import Place, State
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset
from tests.api.http.test_problems import problem
from tests.end_to_end.served import Served
from tests.sim.calibration.hidden import HIDDEN, measured

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")

TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
MEGABYTES = 24
FEW_FILES = 120
WAIT_SECONDS = 20.0
"""Longer than what is under way computes, and than a lease."""
DEVICE = "/devices/samsung-980-pro-1tb"


@pytest.fixture(params=["bytes", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with little room: for bytes, or for files."""
    place = tmp_path / "disk"
    place.mkdir()
    room = {"bytes": "nr_inodes=0", "files": f"nr_inodes={FEW_FILES}"}[request.param]
    options = f"size={MEGABYTES}m,{room}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "iojoule-test", place], capture_output=True,
        check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


class Ballast:
    """Takes all room that is left, and gives it back."""

    def __init__(self, disk: Path) -> None:
        self._folder = disk / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Take all, but for so many pages of 4 KiB, or so many files."""
        self._folder.mkdir(exist_ok=True)
        kept = [self._folder / f"left-{number}" for number in range(leave)]
        for path in kept:
            path.write_bytes(bytes(4096))
        with suppress(OSError), (self._folder / "bytes").open("ab", buffering=0) as stream:
            while stream.write(bytes(4096)):
                pass
        with suppress(OSError):
            for number in range(10 * FEW_FILES):
                (self._folder / f"{number}").touch()
        for path in kept:
            path.unlink()

    def free(self) -> None:
        shutil.rmtree(self._folder)


def hidden_drive() -> bytes:
    """Measurements that a profile can be fitted to."""
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    stream = io.BytesIO()
    pq.write_table(Dataset.from_measurements(rows, Provenance(importer="test")).table, stream)
    return stream.getvalue()


def quick(dataset: str) -> dict[str, Any]:
    """A calibration on it that takes seconds."""
    return {"datasets": [dataset], "drive": "samsung-980-pro-1tb",
            "parameters": ["page_read_ns"], "rounds": 1, "designs": 8, "tables": False}  # fmt: skip


def upload(client: httpx.Client, body: Any = TABLE, kind: str = "text/csv") -> httpx.Response:
    return client.post("/datasets", content=body, headers={"Content-Type": kind})


def ended(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    end = time.monotonic() + 240
    while (now := client.get(job["url"]).json())["state"] in ("queued", "running"):
        assert time.monotonic() < end, now
        time.sleep(0.1)
    return dict(now)


def recommends(client: httpx.Client) -> bool:
    return (
        client.post("/recommend", json=RECOMMEND).is_success
        and client.post("/predict", json=PREDICT).is_success
        and client.get("/healthz").is_success
    )


def whole(folder: Path) -> bool:
    """Whether every kept file is what its name says, and the database what its rules say."""
    state = State(Place.of(folder))
    try:
        for path in folder.glob("content/??/*"):
            state.files.read(path.name)
        with state.database.read() as connection:
            return connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    finally:
        state.close()


def test_a_full_disk_costs_nothing_but_what_it_has_no_room_for(disk: Path) -> None:
    folder, ballast = disk / "state", Ballast(disk)
    with (
        Served(folder) as served,
        httpx.Client(base_url=served.url, timeout=120, trust_env=False) as client,
    ):
        kept = upload(client, hidden_drive(), "application/vnd.apache.parquet").json()
        assert ended(client, client.post("/simulations", json=SIMULATION).json())["state"] == "done"
        calibration = client.post(f"{DEVICE}/calibrations", json=quick(kept["id"])).json()
        before = set(served.kept())

        ballast.fill()
        for _ in range(3):
            assert problem(upload(client), 507)["type"] == "urn:iojoule:problem:storage-full"
        assert problem(client.get("/readyz"), 507)["type"] == "urn:iojoule:problem:storage-full"
        assert recommends(client)
        # there may be room for a row, in the database's log, or there is none
        asked = [client.post("/simulations", json=SIMULATION) for _ in range(3)]
        assert {answer.status_code for answer in asked} <= {202, 507}
        taken = [calibration, *(answer.json() for answer in asked if answer.status_code == 202)]
        time.sleep(WAIT_SECONDS)  # whatever is to be kept now cannot be
        for job in taken:
            now = client.get(job["url"])
            assert now.json()["state"] in ("queued", "running"), now.text
        assert client.get(f"{DEVICE}/profiles").json()["current"] == 0
        assert set(served.kept()) == before
        assert not served.left()
        assert recommends(client)

        ballast.free()
        assert [ended(client, job)["state"] for job in taken] == ["done"] * len(taken)
        assert client.get(f"{DEVICE}/profiles").json()["current"] == 1
        assert upload(client).status_code == 201
        assert client.get("/readyz").is_success
        assert recommends(client)
        for job in taken:
            assert client.get(f"{job['url']}/result").is_success
        assert not served.left()
        assert "Traceback" not in served.log()
    assert whole(folder)


@pytest.mark.parametrize("room", [1, 4, 8, 12, 20, 40])
def test_an_upload_that_almost_fits_is_kept_whole_or_not_at_all(disk: Path, room: int) -> None:
    ballast = Ballast(disk)
    with (
        Served(disk / "state", workers=0) as served,
        httpx.Client(base_url=served.url, timeout=120, trust_env=False) as client,
    ):
        ballast.fill(leave=room)
        answer = upload(client)
        if answer.status_code == 201:
            assert client.get(answer.json()["data_url"]).is_success
            assert client.get(answer.json()["sidecar_url"]).json()
        else:
            problem(answer, 507)
            assert not client.get("/datasets").json()["datasets"]
        assert not served.left()
        ballast.free()
        assert upload(client).status_code == 201
    assert whole(disk / "state")
