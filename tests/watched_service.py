"""`iojoule serve` as a process of its own, watched from outside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.http_client import Connection, request
from tests.service import ServiceProcess

READY = request("GET", "/readyz")


@dataclass(frozen=True)
class Use:
    """What the service's processes hold in all; memory shared by several counts once."""

    memory_bytes: int
    descriptors: int
    threads: int
    processes: int


class Service(ServiceProcess):
    """Runs until the block ends.

    Attributes:
        ready_seconds: From its start until GET /readyz was answered with 200.
        ready_processor_seconds: Processor time of all its processes until then.
    """

    def __init__(
        self, folder: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._begun = time.perf_counter()
        super().__init__(folder, *options, environment=environment)
        self.ready_seconds, self.ready_processor_seconds = 0.0, 0.0

    def __enter__(self) -> Service:
        with self.connection() as connection:  # waits in the backlog until somebody answers
            assert connection.ask(READY).status == 200
        self.ready_seconds = time.perf_counter() - self._begun
        self.ready_processor_seconds = self.processor_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connection(self) -> Connection:
        """A connection to it."""
        return Connection(self.port)

    def processes(self) -> list[psutil.Process]:
        """The service and all that it started."""
        here = psutil.Process(self.process.pid)
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
