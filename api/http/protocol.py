"""Limits of the HTTP protocol: sizes of heads, chunk frames and trailers, and timeouts.

uvicorn waits without limit for a head, for the end of a body and for a client that does not read,
and buffers whatever is sent. What is rejected here never reaches the application; the client gets a
problem document wherever the response can still be matched to its request.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from http import HTTPStatus
from typing import Any, ClassVar

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from iojoule.api.problem_document import MEDIA_TYPE

HEAD_SECONDS = 15.0
"""How long what stands around a body may take (head, chunk extensions, trailers), and what comes
of a request after its answer."""

HEAD_BYTES_MAX = 64 * 1024
"""Of what stands around one body; read in pieces, so some more may come before it is refused."""

FIELDS_MAX = 256
"""Header fields, each of which costs many times its bytes."""

CHUNK_BYTES = 24
"""What frames a chunk without extensions: a length of up to 16 digits and two ends of line."""

PIPELINE_MAX = 64
"""Requests that wait on a connection for the answers to those before them."""

WRITE_SECONDS = 15.0
"""How long a piece of an answer may take to leave."""

PIECE_BYTES = 64 * 1024
"""What one piece of an answer has, and so what a connection holds beside the answer itself."""


def connections_max() -> int:
    """Connections at the same time; the other descriptors are for the state and for processes."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    _idle: ClassVar[dict[GuardedProtocol, None]] = {}
    """Connections without a request that was handed on, the longest first: they give way."""
    _waiting: asyncio.TimerHandle | None = None
    _leaving: asyncio.TimerHandle | None = None
    _around = 0
    """Bytes of this request that are not its body."""
    _advanced = False
    """Whether a piece brought some of a body that somebody waits for, or the end of a request."""
    _in_request = _in_body = False
    _fields = 0
    _open: deque[RequestResponseCycle]
    """Requests that were handed on and are not answered yet; the server itself knows the last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._open = deque()
        # any byte that has not left counts as waiting, so that none waits without a limit
        transport.set_write_buffer_limits(high=0)
        self._idle[self] = None
        if len(self.connections) > connections_max():
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._idle.pop(self, None)
        self._stop_waiting()
        self.resume_writing()
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        self._advanced = False
        self._around += len(data)
        super().data_received(data)
        # what framed chunks was taken off by the size of a frame, of which most are smaller
        self._around = max(self._around, 0)
        if self.transport.is_closing():
            return
        if self._around > HEAD_BYTES_MAX:
            self._refuse_long()
        elif not self._advanced:
            self._wait()

    def on_message_begin(self) -> None:
        """Wait for the head."""
        super().on_message_begin()
        self._in_request, self._in_body = True, False
        self._fields = 0
        self._stop_waiting()
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field; one that follows the body is no field of the request (RFC 9110, 6.5.1)."""
        if self._in_body:
            return
        self._fields += 1
        if self._fields <= FIELDS_MAX:
            super().on_header(name, value)
        else:
            self._refuse_long()

    def on_headers_complete(self) -> None:
        """Hand the request on."""
        self._progress()
        if self.transport.is_closing():
            return
        if len(self.pipeline) >= PIPELINE_MAX:
            self._refuse_long()
            return
        super().on_headers_complete()
        self._in_body = True
        self._open.append(self.cycle)
        self._idle.pop(self, None)

    def on_chunk_header(self) -> None:
        """The frame of a chunk is no extension."""
        self._around -= CHUNK_BYTES

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; after the answer nobody waits for it any longer."""
        self._around -= len(body)
        if self.transport.is_closing():  # nobody was handed this request
            return
        if not self.cycle.response_complete:
            self._progress()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for nothing more of this request."""
        self._in_request = False
        # not where the next begins: its head may come in the piece that was counted a moment ago
        self._around = 0
        self._progress()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Read on once no request waits, and wait for the rest of an answered one not for ever."""
        if self._open:
            self._open.popleft()
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if not self._open:
            self._idle[self] = None
        if self.pipeline:
            self.flow.pause_reading()
        elif self._in_request:
            self._wait()

    def pause_writing(self) -> None:
        """Something of an answer has not left yet."""
        super().pause_writing()
        if self._leaving is None:
            self._leaving = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """All that was written has left."""
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, f"this is no HTTP/1.1 request ({msg})")

    def _progress(self) -> None:
        self._advanced = True
        self._stop_waiting()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._late)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _late(self) -> None:
        self._waiting = None
        if self.flow.read_paused:  # what is waited for may have come: it is we who do not read
            self._wait()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the rest of the request did not come within {HEAD_SECONDS:.0f} s",
        )

    def _refuse_long(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"path, header fields, chunk extensions and trailers may have {HEAD_BYTES_MAX} bytes "
            f"together and {FIELDS_MAX} fields; send fewer and shorter ones",
        )

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if not self._is_next():
            self._forget()
            self.transport.close()
            return
        problem: dict[str, Any] = {
            "type": "about:blank",
            "title": status.phrase,
            "status": status,
            "detail": detail,
            "instance": "",
        }
        body = orjson.dumps(problem)
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self._forget()
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _forget(self) -> None:
        """What the application says from now on is not sent."""
        for cycle in self._open:
            cycle.disconnected = True
            cycle.message_event.set()

    def _is_next(self) -> bool:
        """Whether what is written now is read as the answer to the request that is wrong."""
        if not self._in_request or not self._in_body:  # of another request than those at work
            return not self._open
        return len(self._open) == 1 and not self._open[0].response_started


class PacedResponses:
    """Sends answers in pieces, and returns when the last has left: a place is kept until then."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def piecewise(message: Message) -> None:
            body = message.get("body", b"")
            if message["type"] != "http.response.body" or not body:
                await send(message)
                return
            view = memoryview(body)
            for begin in range(0, len(view), PIECE_BYTES):
                piece = bytes(view[begin : begin + PIECE_BYTES])
                await send({"type": message["type"], "body": piece, "more_body": True})
            # the server waits before each piece until the one before has left, before this one too
            if not message.get("more_body", False):
                await send({"type": message["type"], "body": b"", "more_body": False})

        await self._app(scope, receive, piecewise)
