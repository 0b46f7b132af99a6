"""Reads request bodies strictly: JSON as RFC 8259 has it, and not more of it than is sensible."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import orjson
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from iojoule.api.state.errors import TooLargeError, UnsupportedKindError

BODY_BYTES_MAX = 4 * 1024 * 1024
"""More than any sensible question; what is larger is refused before it is held in memory."""


def refuse_unread(request: Request, most: int) -> None:
    """Refuse a body by what its header fields say of it, before any of it is read.

    Raises:
        TooLargeError: It is said to have more than `most` bytes.
        UnsupportedKindError: It is packed: what it unpacks to would have no limit.
    """
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise TooLargeError(f"the body is larger than {most} bytes; send less at a time")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedKindError("send the body as it is, not packed", field="Content-Encoding")


class StrictRequest(Request):
    """A request whose JSON may hold neither NaN nor Infinity and whose body has a limit."""

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The body piece by piece; raises HTTPException 413 once it is too long."""
        seen = 0
        async for piece in super().stream():
            seen += len(piece)
            if seen > BODY_BYTES_MAX:
                raise HTTPException(
                    413, f"the body is larger than {BODY_BYTES_MAX} bytes; ask in smaller parts"
                )
            yield piece

    async def json(self) -> Any:
        """The body as values; raises JSONDecodeError, which becomes a problem."""
        return orjson.loads(await self.body())


class StrictRoute(APIRoute):
    """A route that reads its requests strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own handler, given a strict request."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            refuse_unread(request, BODY_BYTES_MAX)
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
