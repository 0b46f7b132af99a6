"""`iojoule serve` as a process of its own, watched from outside."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.http_client import Connection, request

COMMAND = [sys.executable, "-c", "from iojoule.api.cli import main; main()", "serve"]
READY = request("GET", "/readyz")


@dataclass(frozen=True)
class Use:
    """What the service's processes hold in all; memory shared by several counts once."""

    memory_bytes: int
    descriptors: int
    threads: int
    processes: int


class Service:
    """Runs until the block ends.

    Args:
        state: Folder of what it keeps.
        options: Of `iojoule serve`.
        environment: None: that of the tests.

    Attributes:
        ready_seconds: From its start until GET /readyz was answered with 200.
        ready_processor_seconds: Processor time of all its processes until then.
    """

    def __init__(
        self, state: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._begun = time.perf_counter()
        self._process = subprocess.Popen(
            [*COMMAND, "--port", "0", "--state", str(state), *options],
            stderr=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        assert self._process.stderr is not None
        said = re.search(r"http://127\.0\.0\.1:(\d+)", self._process.stderr.readline())
        assert said, "the service did not start"
        self.port = int(said[1])
        self.ready_seconds, self.ready_processor_seconds = 0.0, 0.0

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Service:
        with self.connection() as connection:  # waits in the backlog until somebody answers
            assert connection.ask(READY).status == 200
        self.ready_seconds = time.perf_counter() - self._begun
        self.ready_processor_seconds = self.processor_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def connection(self) -> Connection:
        """A connection to it."""
        return Connection(self.port)

    def processes(self) -> list[psutil.Process]:
        """The service and all that it started."""
        here = psutil.Process(self._process.pid)
        return [here, *here.children(recursive=True)]

    def processor_seconds(self) -> float:
        """Processor time that its processes have spent, those that ended included."""
        times = [one.cpu_times() for one in self.processes()]
        return sum(each.user + each.system for each in times)

    def use(self) -> Use:
        """What it holds now."""
        memory = descriptors = threads = count = 0
        for one in self.processes():
            try:
                memory += one.memory_full_info().pss
                descriptors += one.num_fds()
                threads += one.num_threads()
            except psutil.NoSuchProcess:  # a job's process that has just ended
                continue
            count += 1
        return Use(memory, descriptors, threads, count)
