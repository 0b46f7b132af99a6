"""HTTP as it comes in: the head of a request has a limit and must come in time.

The server that all this runs in waits for ever for a head and holds as much of it as is sent. What
is refused here never was a request to the application, and is answered as a problem all the same.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from iojoule.api.problem_document import MEDIA_TYPE

HEAD_SECONDS = 15.0
"""How long request line and header fields may take, from the first byte or the connection on."""

HEAD_BYTES_MAX = 256 * 1024
"""More than any client sends; read in pieces, so that some more may come before it is refused."""


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    _waiting: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._waiting is not None and self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"path and header fields may have {HEAD_BYTES_MAX} bytes",
            )

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        if self._waiting is None:
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Hand the request on."""
        self._head_came()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, f"this is no HTTP/1.1 request ({msg})")

    def _wait_for_head(self) -> None:
        self._head_bytes = 0
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._late)

    def _head_came(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _late(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the head of the request did not come within {HEAD_SECONDS:.0f} s",
        )

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        self._head_came()
        if self.transport.is_closing():
            return
        problem: dict[str, Any] = {
            "type": "about:blank", "title": status.phrase, "status": status, "detail": detail,
            "instance": "",
        }  # fmt: skip
        body = orjson.dumps(problem)
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
