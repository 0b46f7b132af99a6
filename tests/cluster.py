"""A Dask scheduler and workers as other machines would run them, on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from distributed import Client

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 60.0


@dataclass
class Cluster:
    """Processes of `dask scheduler` and `dask worker`, ended by their ids."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Begin `dask ...` with the tests' own modules at hand."""
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"],
            cwd=ROOT, stdout=log, stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
        log.close()
        self.processes.append(process)
        return process

    def scheduler(self) -> subprocess.Popen[bytes]:
        """A scheduler on a free port; its address is known when this returns."""
        file = self.folder / "scheduler.json"
        process = self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        deadline = time.monotonic() + START_SECONDS
        while not self.address:
            if time.monotonic() > deadline or process.poll() is not None:
                pytest.fail((self.folder / "0.log").read_text())
            time.sleep(0.05)
            try:
                self.address = json.loads(file.read_text())["address"]
            except (FileNotFoundError, ValueError):
                continue
        return process

    def worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """A worker of one thread; nobody starts it again when it ends."""
        return self.start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--local-directory",
            str(self.folder), **environment,
        )  # fmt: skip

    def wait_for_workers(self, count: int) -> None:
        """Return once so many have reached the scheduler."""
        with Client(self.address) as client:
            client.wait_for_workers(count, timeout=START_SECONDS)

    def end(self) -> None:
        """End all that is still there."""
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
