"""Access control of every request: host, origin, API key, rate, lane and time for the body."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

import anyio
from fastapi import Depends
from sqlalchemy import select
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule.api.http import metrics, problems
from iojoule.api.http.operations import COMPUTE, Lane, Operation, needed, route_of
from iojoule.api.state import api_keys
from iojoule.api.state.api_keys import ApiKey
from iojoule.api.state.api_keys import Scope as ApiScope
from iojoule.api.state.callers import Caller, Origin
from iojoule.api.state.database import now
from iojoule.api.state.errors import (
    Exceeded,
    ExpiredKeyError,
    ForbiddenError,
    NoKeyError,
    RateError,
    StrangerError,
    TooManyError,
    WrongHostError,
)
from iojoule.api.state.place import State
from iojoule.datasets.errors import IojouleError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that write nothing (RFC 9110, 9.2.1)."""


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Check the Host header; raises WrongHostError."""
    if host_of(headers.get("host", "")) not in hosts:
        raise WrongHostError(
            "the service does not use this host name; start it with `iojoule serve "
            "--allow-host NAME`, or without keys use localhost"
        )


def check_origin(
    method: str, operation: Operation, headers: Headers, hosts: Collection[str]
) -> None:
    """Check that no page of another host sent a request that computes or writes.

    Browsers set the headers Sec-Fetch-Site and Origin, whatever the page does; other programs
    send neither and pass.

    Raises:
        StrangerError: It computes or writes, and comes from another host.
    """
    if method in SAFE and operation.lane is not COMPUTE:
        return
    site = headers.get("sec-fetch-site", "none").strip().lower()
    origins = headers.getlist("origin")
    same_host = all(_host_of_origin(origin) in hosts for origin in origins)
    if site == "cross-site" or not same_host or (site == "same-site" and not origins):
        raise StrangerError(
            "a page of another host sent this request; open the service's own page, or allow "
            "the host with `iojoule serve --allow-host NAME`"
        )


def host_of(host: str) -> str:
    """The name of a Host header field, without its port."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.lower()


def _host_of_origin(origin: str) -> str | None:
    try:
        parts = urlsplit(origin.strip())
    except ValueError:
        return None
    return host_of(parts.netloc) if parts.scheme in ("http", "https") else None


class RateLimiter:
    """A token bucket for each key, in this process; each replica has its own."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def admit(self, key: ApiKey, at: float | None = None) -> None:
        """Count a request of a key.

        Args:
            key: The key.
            at: Seconds of the monotonic clock; None: now.

        Raises:
            RateError: The rate of the key is exceeded; says when the next request is allowed.
        """
        rate = key.limits.requests_per_second
        if rate is None:
            return
        at = time.monotonic() if at is None else at
        size = float(key.limits.burst or max(1, math.ceil(rate)))
        tokens, since = self._buckets.get(key.id, (size, at))
        tokens = min(size, tokens + (at - since) * rate)
        if tokens < 1.0:
            self._buckets[key.id] = tokens, at
            raise RateError.of(
                f"key {key.id} exceeds {rate:g} requests per second (burst {size:g})",
                Exceeded("rate", rate, rate, (1.0 - tokens) / rate),
            )
        self._buckets[key.id] = tokens - 1.0, at


PIECE_SECONDS = 15.0
"""Longest pause in a body."""

BODY_SECONDS = 600.0
"""Longest time for a whole body: 64 MiB at 1 Mbit/s."""

SLOWEST_BYTES_PER_SECOND = 16e3
"""Below it on average, beyond one pause, a body is not waited for: it holds a place meanwhile, and
a byte now and then would hold it for `BODY_SECONDS`."""

CHALLENGE = 'Bearer realm="iojoule"'
"""RFC 6750, section 3; the error follows."""


@dataclass
class Access:
    """Who may use the service.

    Attributes:
        required: Whether a key is needed. Without keys, every client of the service may do
            everything, so only requests for this host are accepted: otherwise a page of another
            host could send requests through a browser on this machine (DNS rebinding).
        hosts: Host names beside those of loopback; empty: any, where keys are required.
        keys: Keys that are not revoked, by id; as of the last `refresh`.
        rates: Request rate of each key in this process.
        used: Last use of each key that is not recorded yet, s of the monotonic clock.
    """

    required: bool = False
    hosts: frozenset[str] = frozenset()
    keys: dict[str, ApiKey] = field(default_factory=dict)
    rates: RateLimiter = field(default_factory=RateLimiter)
    used: dict[str, float] = field(default_factory=dict)
    _clock_ahead: float = field(default_factory=lambda: time.time() - time.monotonic())

    def refresh(self, state: State) -> None:
        """Read the keys again.

        Raises:
            UnavailableError: The store cannot be reached; the last known keys stay valid.
        """
        with state.database.read() as connection:
            self.keys = api_keys.valid(connection)
            at = connection.scalar(select(now()))
        if at is not None:  # keys expire by the clock of the database, also while that is away
            self._clock_ahead = at - time.monotonic()

    def record_use(self, state: State) -> None:
        """Record the last use of each key; called once a minute, so that no request waits for it.

        Raises:
            UnavailableError, StorageFullError: It cannot be recorded now; the next call does.
        """
        used, self.used = self.used, {}
        if not used:
            return
        try:
            with state.database.write() as connection:
                at = time.monotonic()
                ago = {id_: at - seconds for id_, seconds in used.copy().items()}
                api_keys.record_use(connection, ago)
        except IojouleError:
            self.used = used | self.used
            raise

    def opens(self, key: ApiKey | None) -> bool:
        """Whether a key is neither revoked nor expired."""
        return key is None or (key.id in self.keys and not self._expired(self.keys[key.id]))

    def _expired(self, key: ApiKey) -> bool:
        return key.expired(time.monotonic() + self._clock_ahead)

    def check(self, method: str, headers: Headers, operation: Operation) -> ApiKey | None:
        """The key of an allowed request; None where none is needed.

        Raises:
            WrongHostError: The Host header names another host.
            StrangerError: A page of another host sent it.
            NoKeyError, ForbiddenError: A key is missing, invalid or of too small a scope.
            RateError: The key exceeds its rate.
        """
        hosts = LOOPBACK | self.hosts
        if not self.required or self.hosts:
            check_host(headers, hosts)
        else:  # the key decides, not the name; pages are those of the requested host
            hosts |= {host_of(headers.get("host", ""))}
        check_origin(method, operation, headers, hosts)
        if not self.required:
            return None
        if operation.scope is None:
            return None
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise NoKeyError("a key is required: send Authorization: Bearer KEY")
        key = api_keys.opened_by(self.keys, text.strip())
        if key is None:
            raise NoKeyError("this key is unknown or revoked")
        if self._expired(key):
            raise ExpiredKeyError(f"key {key.id} has expired")
        self.used[key.id] = time.monotonic()
        _check_scope(key, operation.scope)
        self.rates.admit(key)
        return key


def _check_scope(key: ApiKey, scope: ApiScope) -> None:
    if not key.scope.includes(scope):
        raise ForbiddenError(
            f"a key of scope {scope} is required; key {key.id} has scope {key.scope}"
        )


def require_scope(request: Request, scope: ApiScope) -> None:
    """Check the scope of a request, where an operation needs it only at times: ForbiddenError."""
    key: ApiKey | None = getattr(request.state, "key", None)
    if key is not None:
        _check_scope(key, scope)


async def _caller_of(request: Request) -> Caller:
    access: Access = request.app.state.access
    key: ApiKey | None = getattr(request.state, "key", None)
    request_id = getattr(request.state, "request_id", None)
    address = request.client.host[:64] if request.client else None
    if key is not None:
        return key.caller(request_id, address)
    if access.required:  # an open operation must not act for a caller
        raise NoKeyError("a key is required: send Authorization: Bearer KEY")
    return Caller(Origin.OPEN, request_id=request_id, remote_address=address)


CurrentCaller = Annotated[Caller, Depends(_caller_of)]
"""The caller, for all that reads or changes the state."""


async def _still_allowed(request: Request) -> Callable[[], bool]:
    access: Access = request.app.state.access
    return partial(access.opens, getattr(request.state, "key", None))


StillAllowed = Annotated[Callable[[], bool], Depends(_still_allowed)]
"""Whether the key of a long response is still valid."""


class AccessControl:
    """Checks host, origin, key and lane of each request before its body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._in_progress: Counter[Lane] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        operation = needed(scope["method"], route_of(scope["method"], scope["path"]))
        try:
            key = self._access.check(scope["method"], Headers(scope=scope), operation)
            if key is not None:
                scope["state"] |= {"key": key, "key_id": key.id}
            self._check_lane(operation.lane)
        except IojouleError as error:
            metrics.REFUSED.labels(str(error.http_status)).inc()
            response = problems.response_of(Request(scope), error, _challenge(error, operation))
            await response(scope, receive, send)
            return
        await self._forward(operation.lane, scope, _with_timeout(receive), send)

    def _check_lane(self, lane: Lane | None) -> None:
        if lane is not None and self._in_progress[lane] >= lane.requests_max:
            raise TooManyError(
                f"{lane.requests_max} requests of this kind are in progress; retry later"
            )

    async def _forward(self, lane: Lane | None, scope: Scope, receive: Receive, send: Send) -> None:
        if lane is None:
            await self._app(scope, receive, send)
            return
        self._in_progress[lane] += 1
        try:
            with metrics.IN_PROGRESS.labels(lane.name).track_inprogress():
                await self._app(scope, receive, send)
        finally:
            self._in_progress[lane] -= 1


def _challenge(error: IojouleError, operation: Operation) -> dict[str, str] | None:
    """The WWW-Authenticate header of an error (RFC 6750, section 3)."""
    if isinstance(error, ForbiddenError):
        challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{operation.scope}"'
        return {"WWW-Authenticate": challenge}
    if isinstance(error, ExpiredKeyError):
        return {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'}
    return {"WWW-Authenticate": CHALLENGE} if isinstance(error, NoKeyError) else None


def _with_timeout(receive: Receive) -> Receive:
    """A receive that limits the time for a body; raises HTTPException 408."""
    until = time.monotonic() + BODY_SECONDS
    patience = PIECE_SECONDS
    whole = False

    async def received() -> Message:
        nonlocal whole, patience
        if whole:  # what follows is only the disconnect
            return await receive()
        began = time.monotonic()
        with anyio.move_on_after(min(PIECE_SECONDS, patience, until - began)):
            message = await receive()
            whole = not message.get("more_body", False)
            patience -= time.monotonic() - began
            patience += len(message.get("body", b"")) / SLOWEST_BYTES_PER_SECOND
            return message
        raise HTTPException(
            408,
            f"the body did not arrive in time: at most {PIECE_SECONDS:.0f} s between pieces, "
            f"{SLOWEST_BYTES_PER_SECOND / 1e3:.0f} kB/s on average, and {BODY_SECONDS:.0f} s in "
            "total",
        )

    return received
