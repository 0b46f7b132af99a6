"""Clients that mean harm, all at once: what they do, and how the service answers meanwhile."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread

from tests.http_client import Connection, request

READERS, JOB_FILES, CLIENTS = 64, 6, 500
TRAILERS = 4
JOB_FILE_BYTES = 4 << 20
CROWD_EVERY_SECONDS = 20.0
PROBE_EVERY_SECONDS = 0.1
SECONDS_MAX = 120.0

DEVICES = request("GET", "/devices?limit=20")
ENDLESS = (
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
)
UNREAD = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16


class Siege:
    """Endless trailers, readers that do not read, large job files, crowds; and one who only asks.

    Args:
        port: Of the service on this machine.
        asked: A question that every client of a crowd sends at the same time.

    Attributes:
        devices_seconds: How long each GET /devices of the one took.
        told: Statuses of the job files' and the crowds' answers.
        failures: What should not have happened.
    """

    def __init__(self, port: int, asked: Callable[[], bytes]) -> None:
        self._port, self._asked = port, asked
        self._enough = Event()
        self.devices_seconds: list[float] = []
        self.told: Counter[str] = Counter()
        self.failures: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of it, until the block ends."""
        kinds = (self._trailers,) * TRAILERS + (self._unread,) * READERS
        kinds += (self._job_file,) * JOB_FILES + (self._crowd, self._probe)
        threads = [Thread(target=self._again, args=(one,)) for one in kinds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._enough.set()
            for thread in threads:
                thread.join()

    def _again(self, once: Callable[[], None]) -> None:
        while not self._enough.is_set():
            try:
                once()
            except ConnectionError:
                self._enough.wait(0.1)  # cut off, as they should be
            except OSError as error:
                self.failures.append(f"{once.__name__}: {error!r}")
                self._enough.wait(1.0)

    def _open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), SECONDS_MAX)

    def _trailers(self) -> None:
        """Send trailers until hung up on."""
        with self._open() as connection:
            connection.sendall(ENDLESS)
            line = b"X-Trailer: " + b"x" * 8000 + b"\r\n"
            while not self._enough.is_set():
                connection.sendall(line)
                time.sleep(0.005)

    def _unread(self) -> None:
        """Ask for much and read nothing until hung up on."""
        with self._open() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(UNREAD)
            until = time.monotonic() + 60.0
            while not self._enough.is_set() and time.monotonic() < until:
                # sent, the first time after it was hung up on, or soon after
                with suppress(BlockingIOError):
                    connection.sendall(b" ")
                self._enough.wait(1.0)

    def _job_file(self) -> None:
        """A fio job file of many sections, again and again."""
        section = b"[job%d]\nrw=randread\nbs=4k\n"
        text = b"".join(section % n for n in range(JOB_FILE_BYTES // len(section)))[:JOB_FILE_BYTES]
        sent = request("POST", "/workloads?kind=fio-job", text, "text/plain")
        with Connection(self._port, seconds=SECONDS_MAX) as connection:
            self._answered("job file", connection.ask(sent).status, (200, 422, 429, 503, 504))
        self._enough.wait(5.0)

    def _crowd(self) -> None:
        """Many clients with a question each, none of which reads before all have asked."""
        with ExitStack() as stack:
            there = [stack.enter_context(self._open()) for _ in range(CLIENTS)]
            for one in there:
                one.sendall(self._asked())
            for one in there:
                self._answered("crowd", int(one.recv(1 << 16)[9:12] or 0), (200, 429))
        self._enough.wait(CROWD_EVERY_SECONDS)

    def _answered(self, who: str, status: int, allowed: tuple[int, ...]) -> None:
        self.told[f"{who} {status}"] += 1
        if status not in allowed and not self._enough.is_set():
            self.failures.append(f"{who}: {status}")

    def _probe(self) -> None:
        """Ask for the devices, as anybody does."""
        with Connection(self._port, seconds=SECONDS_MAX) as connection:
            while not self._enough.is_set():
                start = time.perf_counter()
                status = connection.ask(DEVICES).status
                self.devices_seconds.append(time.perf_counter() - start)
                self._answered("devices", status, (200,))
                self._enough.wait(PROBE_EVERY_SECONDS)
