"""What the resources that are kept have in common: their store, tags, cursors and keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, ParamSpec, TypeVar

import anyio
import anyio.to_thread
import orjson
from anyio.lowlevel import RunVar
from fastapi import Body, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.state.errors import ChangedError, UnconditionalError
from iojoule.api.state.idempotency import Key
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError

THREADS = 8
"""Waiting for the store at the same time, beside the threads that compute answers."""

CHECKS = 2
"""Uploads read at the same time; each may take as much memory as `uploads` grants."""

PAGE_MAX = 200

_P = ParamSpec("_P")
_R = TypeVar("_R")

_limiters: RunVar[dict[int, anyio.CapacityLimiter]] = RunVar("iojoule-limiters")


async def off_loop(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call what waits for disk or database, without waiting for those that compute."""
    return await off_loop_within(THREADS, partial(function, *args, **kwargs))


async def off_loop_within(
    threads: int, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
) -> _R:
    """Likewise, so many at the same time; those who name the same number share it."""
    try:
        limiters = _limiters.get()
    except LookupError:
        limiters = {}
        _limiters.set(limiters)
    limiter = limiters.setdefault(threads, anyio.CapacityLimiter(threads))
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=limiter)


async def _state_of(request: Request) -> State:
    state: State = request.app.state.store
    return state


Store = Annotated[State, Depends(_state_of)]

Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="At most so many.", examples=[50])]
Cursor = Annotated[
    str | None,
    Query(
        max_length=64, pattern="^[0-9a-f]+$", description="`next_cursor` of the page before."
    ),
]  # fmt: skip

_KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, examples=["b3c1f6"],
        description="Your own name for this request: sent again, it gives what it gave first.",
    ),
]  # fmt: skip


class Named:
    """The key of a request, if it bears one; `of` binds it to what is asked for."""

    def __init__(self, operation: str, key: str | None, owner: str) -> None:
        self._operation, self._key, self._owner = operation, key, owner

    def of(self, asked: object) -> Key | None:
        """The key of a request for these plain values."""
        return self.of_hash(hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)))

    def of_hash(self, digest: hashlib._Hash) -> Key | None:
        """The key of a request with this hash."""
        if self._key is None:
            return None
        return Key(self._operation, self._key, digest.hexdigest(), self._owner)


async def _named(request: Request, key: _KeyHeader = None) -> Named:
    owner = getattr(request.state, "key_id", "")
    return Named(f"{request.method} {request.url.path}"[:200], key, owner)


Idempotency = Annotated[Named, Depends(_named)]


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
        alias="If-Match", description="The ETag that the decision rests on.", max_length=200,
        json_schema_extra={"pattern": '^"[0-9]{1,9}"$'},
    ),
]  # fmt: skip
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="An ETag that is known.", max_length=2000)
]


def tag(value: object) -> str:
    """An entity tag."""
    return f'"{value}"'


def unchanged(known: str | None, etag: str) -> Response | None:
    """304 where the client has this version already."""
    if known is None:
        return None
    tags = {one.strip().removeprefix("W/") for one in known.split(",")}
    return Response(status_code=304, headers={"ETag": etag}) if {etag, "*"} & tags else None


def revision_of(if_match: str | None) -> int:
    """The revision that a change was decided on.

    Raises:
        UnconditionalError: The request does not say.
        ChangedError: It says what never was.
    """
    if if_match is None:
        raise UnconditionalError(
            "say which state this was decided on: send the ETag of a GET as If-Match",
            field="If-Match",
        )
    plain = if_match.strip().removeprefix('"').removesuffix('"')
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10):
        raise ChangedError("If-Match is no ETag of this resource; GET it", field="If-Match")
    return int(plain)


NumberCursor = Annotated[
    str | None,
    Query(
        max_length=64, description="`next_cursor` of the page before.",
        json_schema_extra={"pattern": "^[0-9]{1,9}$"},
    ),
]  # fmt: skip


def number_of(cursor: str | None) -> int | None:
    """A cursor that is a number.

    Raises:
        InputError: It is none.
    """
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise InputError("cursor: not one that this list gave; begin without", field="cursor")
    return int(cursor)
