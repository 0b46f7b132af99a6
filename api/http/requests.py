"""Parts of all requests: strict bodies, store access, cursors, ETags, idempotency keys."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.to_thread
import orjson
from anyio.lowlevel import RunVar
from fastapi import Body, Depends, Header, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from iojoule.api.state.errors import (
    ChangedError,
    TooLargeError,
    UnconditionalError,
    UnsupportedKindError,
)
from iojoule.api.state.idempotency import Key
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Of a JSON body; a larger one is rejected before it is held in memory."""

THREADS = 8
"""Threads that wait for the store, beside those that compute."""

CHECKS = 2
"""Uploads checked at the same time; each may take as much memory as `uploads` allows."""

PAGE_MAX = 200

_P = ParamSpec("_P")
_R = TypeVar("_R")


def refuse_unread(request: Request, limit: int) -> None:
    """Reject a body by its header fields, before any of it is read.

    Raises:
        TooLargeError: Content-Length exceeds `limit` bytes.
        UnsupportedKindError: It is compressed: what it decompresses to would have no limit.
    """
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        raise TooLargeError(f"the body is larger than {limit} bytes; send less at a time")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedKindError("send the body uncompressed", field="Content-Encoding")


class StrictRequest(Request):
    """A request whose JSON follows RFC 8259 (no NaN, no Infinity) and whose body has a limit."""

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


def text_body(example: str) -> dict[str, Any]:
    """What OpenAPI says of an operation whose body is a text."""
    content = {"text/plain": {"schema": {"type": "string"}, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


async def body_text(request: Request) -> str:
    """The body as text; raises InputError where it is not UTF-8."""
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the body is no UTF-8 text: byte {error.start} is not") from None


class StrictRoute(APIRoute):
    """A route whose requests are `StrictRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own handler, given a strict request."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            refuse_unread(request, BODY_BYTES_MAX)
            return await handler(StrictRequest(request.scope, request.receive))

        return strict


_limiters: RunVar[dict[int, anyio.CapacityLimiter]] = RunVar("iojoule-limiters")


async def off_loop(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call what waits for disk or database in one of `THREADS` threads."""
    return await off_loop_within(THREADS, partial(function, *args, **kwargs))


async def off_loop_within(
    threads: int, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
) -> _R:
    """Call a function in one of so many threads; calls with the same number share them."""
    try:
        limiters = _limiters.get()
    except LookupError:
        limiters = {}
        _limiters.set(limiters)
    limiter = limiters.setdefault(threads, anyio.CapacityLimiter(threads))
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=limiter)


async def read_store(
    store: State,
    function: Callable[Concatenate[Connection, _P], _R],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R:
    """Call a function of the state in a transaction that only reads, off the event loop."""

    def reading() -> _R:
        with store.database.read() as connection:
            return function(connection, *args, **kwargs)

    return await off_loop(reading)


async def write_store(
    store: State,
    function: Callable[Concatenate[Connection, _P], _R],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R:
    """Call a function of the state in a transaction that writes, off the event loop."""

    def writing() -> _R:
        with store.database.write() as connection:
            return function(connection, *args, **kwargs)

    return await off_loop(writing)


async def _store_of(request: Request) -> State:
    store: State = request.app.state.store
    return store


Store = Annotated[State, Depends(_store_of)]

_NEXT = "`next_cursor` of the page before."
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="At most so many.", examples=[50])]
Cursor = Annotated[str | None, Query(max_length=64, pattern="^[0-9a-f]+$", description=_NEXT)]
NumberCursor = Annotated[
    str | None,
    Query(max_length=64, description=_NEXT, json_schema_extra={"pattern": "^[0-9]{1,9}$"}),
]


def cursor_number(cursor: str | None) -> int | None:
    """A cursor that is a number; raises InputError where it is none."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InputError("cursor: not a `next_cursor` of this list; omit it", field="cursor")
    return int(cursor)


class IdempotencyKey:
    """The idempotency key of a request, if it has one; `of` binds it to the request's content."""

    def __init__(self, operation: str, key: str | None, owner: str) -> None:
        self._operation, self._key, self._owner = operation, key, owner

    def of(self, document: object) -> Key | None:
        """The key of a request for these plain values."""
        return self.of_hash(hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)))

    def of_hash(self, digest: hashlib._Hash) -> Key | None:
        """The key of a request with this hash."""
        if self._key is None:
            return None
        return Key(self._operation, self._key, digest.hexdigest(), self._owner)


_KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        examples=["b3c1f6"],
        description="Your own name for this request: sent again, it gives what it gave first.",
    ),
]


async def _idempotency_key(request: Request, key: _KeyHeader = None) -> IdempotencyKey:
    owner = getattr(request.state, "key_id", "")
    return IdempotencyKey(f"{request.method} {request.url.path}"[:200], key, owner)


Idempotency = Annotated[IdempotencyKey, Depends(_idempotency_key)]


class Sharing(BaseModel):
    """Who may read something that is kept."""

    model_config = ConfigDict(extra="forbid")

    shared: bool = Field(description="Whether others than its owner may read it.")


SharingBody = Annotated[
    Sharing,
    Body(openapi_examples={"worked": {"summary": "For everybody", "value": {"shared": True}}}),
]

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The ETag that the decision rests on.",
        max_length=200,
        json_schema_extra={"pattern": '^"[0-9]{1,9}"$'},
    ),
]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="An ETag that is known.", max_length=2000)
]


def etag_of(value: object) -> str:
    """An entity tag."""
    return f'"{value}"'


def unchanged(known: str | None, etag: str) -> Response | None:
    """304 where the client has this version already."""
    if known is None:
        return None
    tags = {tag.strip().removeprefix("W/") for tag in known.split(",")}
    return Response(status_code=304, headers={"ETag": etag}) if {etag, "*"} & tags else None


def revision_of(if_match: str | None) -> int:
    """The revision in an If-Match header.

    Raises:
        UnconditionalError: There is no such header.
        ChangedError: It is no ETag of ours.
    """
    if if_match is None:
        raise UnconditionalError("send the ETag of a GET as If-Match", field="If-Match")
    plain = if_match.strip().removeprefix('"').removesuffix('"')
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10):
        raise ChangedError("If-Match is no ETag of this resource; GET it", field="If-Match")
    return int(plain)
