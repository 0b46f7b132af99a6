"""No Python that iojoule runs or starts imports a module that lies in the current folder."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from iojoule.api.http.datasets import UPLOAD
from iojoule.api.http.predict import EXAMPLE as PREDICT
from iojoule.api.http.simulations import EXAMPLE as SIMULATION

IOJOULE = Path(sys.executable).with_name("iojoule")
TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
NAMES = ("json", "numpy", "struct", "socket", "logging", "signal", "multiprocessing", "iojoule")
TRAP = """
from pathlib import Path
with Path({marks!r}).open("a") as marks:
    marks.write(__name__ + "\\n")
raise ImportError("taken from the current folder")
"""
LOCAL_POOL = """
import operator
from iojoule.sim.workers.local import LocalPool
if __name__ == "__main__":
    pool = LocalPool(2)
    assert pool.map(operator.add, [1, 2, 3], shared=1) == [2, 3, 4]
    pool.close()
"""


class Folder:
    """A folder full of modules of the names of others, and what was imported from it."""

    def __init__(self, place: Path) -> None:
        self.path, self._marks = place / "here", place / "marks"
        self.path.mkdir()
        for name in NAMES:
            (self.path / f"{name}.py").write_text(TRAP.format(marks=str(self._marks)))

    def imported(self) -> list[str]:
        return self._marks.read_text().split() if self._marks.exists() else []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_such_a_module_would_be_seen(folder: Folder) -> None:
    subprocess.run(
        [sys.executable, "-c", "import json"], cwd=folder.path, check=False, capture_output=True
    )
    assert folder.imported() == ["json"]


def test_the_command(folder: Folder) -> None:
    subprocess.run([IOJOULE, "devices", "list"], cwd=folder.path, check=True, capture_output=True)
    assert folder.imported() == []


def test_the_processes_that_simulate(folder: Folder, tmp_path: Path) -> None:
    # a script, as the installed command is one: Python searches its folder and not this one
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "pool.py").write_text(LOCAL_POOL)
    subprocess.run([sys.executable, tmp_path / "scripts" / "pool.py"], cwd=folder.path, check=False)
    assert folder.imported() == []


@contextmanager
def served(folder: Folder, state: Path) -> Iterator[tuple[str, psutil.Process]]:
    command = [IOJOULE, "serve", "--state", state, "--port", "0", "--workers", "1"]
    log = state.with_name("log")
    with log.open("w") as stream:
        process = subprocess.Popen([*command, "--processes", "1"], cwd=folder.path, stderr=stream)
    try:
        while (found := re.search(r"listening on (http://\S+)", log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield found[1], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def test_what_the_service_starts(folder: Folder, tmp_path: Path) -> None:
    with (
        served(folder, tmp_path / "state") as (url, service),
        httpx.Client(base_url=url, timeout=120, trust_env=False) as client,
    ):
        kind = {"Content-Type": "text/csv"}
        assert client.post("/datasets", content=TABLE, headers=kind).is_success
        job = client.post("/simulations", json=SIMULATION).json()
        state = "queued"
        while state in ("queued", "running") and not folder.imported():
            time.sleep(0.1)
            state = client.get(f"/jobs/{job['id']}").json()["state"]
        assert (state, folder.imported()) == ("done", [])
        for one in service.children():
            if "iojoule.api.jobs" not in one.cmdline():
                one.kill()  # so that another is spawned
        assert client.post("/predict", json=PREDICT).is_success
    assert folder.imported() == []
