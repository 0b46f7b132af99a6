"""A place between client and service where connections break and servers are busy."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "date", "server"}


@dataclass
class Between:
    """What happens to the next requests, and what came.

    Attributes:
        faults: One a request, in turn: `lose` has the service do it and loses the answer, `break`
            closes the connection at once, a number of bytes passes so much of the answer, and a
            triple of status, headers and body is answered instead. None, and none left: it passes.
        seen: Method and path of what came, and its headers.
    """

    url: str = ""
    faults: deque[Any] = field(default_factory=deque)
    seen: list[tuple[str, httpx.Headers]] = field(default_factory=list)

    def next(self, *faults: Any) -> None:
        """What happens to the next requests."""
        self.faults.extend(faults)
        self.seen.clear()

    @property
    def asked(self) -> list[str]:
        """Method and path of what came."""
        return [one for one, _ in self.seen]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Between
    service: Callable[[], str]

    def handle_one_request(self) -> None:
        """One request, after which the connection is closed."""
        with suppress(ConnectionError):
            super().handle_one_request()
        self.close_connection = True

    def do_GET(self) -> None:
        """Pass it on, or let happen what is due."""
        self.told.seen.append((f"{self.command} {self.path}", httpx.Headers(dict(self.headers))))
        fault = self.told.faults.popleft() if self.told.faults else None
        if fault == "break":
            return
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if isinstance(fault, tuple):
            status, headers, content = fault
            self._begin(status, {**headers, "Content-Length": str(len(content))})
            self.wfile.write(content)
        else:
            self._pass(body, fault)

    do_POST = do_PUT = do_GET  # noqa: N815

    def _pass(self, body: bytes, fault: Any) -> None:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP | {"host"}}
        with (
            httpx.Client(base_url=self.service(), trust_env=False, timeout=60) as client,
            client.stream(self.command, self.path, content=body, headers=headers) as answer,
        ):
            if fault == "lose":
                answer.read()
                return
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in HOP}
            self._begin(answer.status_code, kept)
            left = fault if isinstance(fault, int) else math.inf
            for piece in answer.iter_raw():
                self.wfile.write(piece[: int(min(left, len(piece)))])
                left -= len(piece)
                if left <= 0:
                    return

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *said: Any) -> None:
        """Nobody reads it."""


@contextmanager
def between(service: Callable[[], str]) -> Iterator[Between]:
    """A server that passes on to a service what it does not spoil."""
    told = Between()
    handler = type("Handler", (_Handler,), {"told": told, "service": staticmethod(service)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
