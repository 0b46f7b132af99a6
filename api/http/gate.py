"""The gate that every request passes: the right host, a key that allows it, room, and in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import anyio
from fastapi import Depends
from sqlalchemy import select
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule.api.http import figures, problems
from iojoule.api.http.operations import Lane, Operation, needed, route_of
from iojoule.api.http.origins import LOOPBACK, host_of, refuse_strangers, refuse_wrong_host
from iojoule.api.http.rates import Rates
from iojoule.api.state import api_keys
from iojoule.api.state.api_keys import ApiKey
from iojoule.api.state.api_keys import Scope as ApiScope
from iojoule.api.state.callers import Caller, Origin
from iojoule.api.state.database import now
from iojoule.api.state.errors import (
    ExpiredKeyError,
    ForbiddenError,
    NoKeyError,
    TooManyError,
)
from iojoule.api.state.place import State
from iojoule.datasets.errors import IojouleError

PIECE_SECONDS = 15.0
"""How long the next piece of a body may keep the service waiting."""

BODY_SECONDS = 600.0
"""How long a whole body may take: 64 MiB at a megabit a second."""

CHALLENGE = 'Bearer realm="iojoule"'
"""Of RFC 6750, section 3; what is wrong follows."""


@dataclass
class Access:
    """Who may use the service.

    Attributes:
        required: Whether a key is needed. Where it is not, whoever reaches the service may do
            everything, and so only requests for this very host are taken: else the page of a
            stranger could ask by way of a browser on this machine (DNS rebinding).
        hosts: Names under which it answers beside those of loopback; none: any, where keys are
            required.
        keys: Those that are not revoked, by their id; as of the last `refresh`.
        rates: How often each has asked here.
        used: When each was used last, since that was recorded; s of the monotonic clock.
    """

    required: bool = False
    hosts: frozenset[str] = frozenset()
    keys: dict[str, ApiKey] = field(default_factory=dict)
    rates: Rates = field(default_factory=Rates)
    used: dict[str, float] = field(default_factory=dict)
    _clock_ahead: float = field(default_factory=lambda: time.time() - time.monotonic())

    def refresh(self, state: State) -> None:
        """Take over what was made and revoked since.

        Raises:
            UnavailableError: The store cannot be reached; the keys known last stay valid.
        """
        with state.database.read() as connection:
            self.keys = api_keys.valid(connection)
            at = connection.scalar(select(now()))
        if at is not None:  # keys expire by the clock of the database, also while that is away
            self._clock_ahead = at - time.monotonic()

    def record_use(self, state: State) -> None:
        """Keep when keys were used last; called once a minute, so that no request waits for it.

        Raises:
            UnavailableError, StorageFullError: It cannot be kept now; the next call does.
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
        """Whether what a key opened may go on: it was neither revoked nor has it expired."""
        return key is None or (key.id in self.keys and not self._expired(self.keys[key.id]))

    def _expired(self, key: ApiKey) -> bool:
        return key.expired(time.monotonic() + self._clock_ahead)

    def check(self, method: str, headers: Headers, operation: Operation) -> ApiKey | None:
        """Return where the request may go on, with the key it showed.

        Raises:
            WrongHostError: It is for another host.
            StrangerError: It is sent for a page of another host.
            NoKeyError, ForbiddenError: It needs a key, or another one.
            RateError: The key asks too often.
        """
        hosts = LOOPBACK | self.hosts
        if not self.required or self.hosts:
            refuse_wrong_host(headers, hosts)
        else:  # a key opens, not a name; pages are then those of the host that is asked
            hosts |= {host_of(headers.get("host", ""))}
        refuse_strangers(method, operation, headers, hosts)
        if not self.required:
            return None
        if operation.scope is None:
            return None
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise NoKeyError("this needs a key: send Authorization: Bearer KEY")
        key = api_keys.opened_by(self.keys, text.strip())
        if key is None:
            raise NoKeyError("this key opens nothing: it was never made, or it was revoked")
        if self._expired(key):
            raise ExpiredKeyError(f"key {key.id} has expired; ask for another one")
        self.used[key.id] = time.monotonic()
        _refuse_less(key, operation.scope)
        self.rates.admit(key)
        return key


def _refuse_less(key: ApiKey, scope: ApiScope) -> None:
    if not key.scope.includes(scope):
        raise ForbiddenError(f"this needs a key of scope {scope}, and key {key.id} has {key.scope}")


def demand(request: Request, scope: ApiScope) -> None:
    """For what only some requests of an operation need; raises ForbiddenError."""
    key: ApiKey | None = getattr(request.state, "key", None)
    if key is not None:
        _refuse_less(key, scope)


async def _caller_of(request: Request) -> Caller:
    access: Access = request.app.state.access
    key: ApiKey | None = getattr(request.state, "key", None)
    request_id = getattr(request.state, "request_id", None)
    address = request.client.host[:64] if request.client else None
    if key is not None:
        return key.caller(request_id, address)
    if access.required:  # an operation that is open must not act for anybody
        raise NoKeyError("this needs a key: send Authorization: Bearer KEY")
    return Caller(Origin.OPEN, request_id=request_id, remote_address=address)


Asking = Annotated[Caller, Depends(_caller_of)]
"""Who asks, for all that reads or changes what is kept."""


async def _going_on(request: Request) -> Callable[[], bool]:
    access: Access = request.app.state.access
    return partial(access.opens, getattr(request.state, "key", None))


GoingOn = Annotated[Callable[[], bool], Depends(_going_on)]
"""Whether an answer that takes long may go on."""


class Gate:
    """Lets requests pass or answers them with a problem, before anything of their body is read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._under_way: Counter[Lane] = Counter()

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
            self._refuse_more(operation.lane)
        except IojouleError as error:
            figures.REFUSED.labels(str(error.http_status)).inc()
            response = problems.answer(Request(scope), error, _challenge(error, operation))
            await response(scope, receive, send)
            return
        await self._pass(operation.lane, scope, _in_time(receive), send)

    def _refuse_more(self, lane: Lane | None) -> None:
        if lane is not None and self._under_way[lane] >= lane.places:
            raise TooManyError(
                f"{lane.places} requests of this kind are under way already; ask again in a moment"
            )

    async def _pass(self, lane: Lane | None, scope: Scope, receive: Receive, send: Send) -> None:
        if lane is None:
            await self._app(scope, receive, send)
            return
        self._under_way[lane] += 1
        try:
            with figures.UNDER_WAY.labels(lane.name).track_inprogress():
                await self._app(scope, receive, send)
        finally:
            self._under_way[lane] -= 1


def _challenge(error: IojouleError, operation: Operation) -> dict[str, str] | None:
    """What a client has to bring (RFC 6750, section 3)."""
    if isinstance(error, ForbiddenError):
        told = f'{CHALLENGE}, error="insufficient_scope", scope="{operation.scope}"'
        return {"WWW-Authenticate": told}
    if isinstance(error, ExpiredKeyError):
        return {"WWW-Authenticate": f'{CHALLENGE}, error="invalid_token"'}
    return {"WWW-Authenticate": CHALLENGE} if isinstance(error, NoKeyError) else None


def _in_time(receive: Receive) -> Receive:
    """The same, but a body must come steadily; raises HTTPException 408 where it does not."""
    until = time.monotonic() + BODY_SECONDS
    whole = False

    async def received() -> Message:
        nonlocal whole
        if whole:  # what comes now is that the client has gone, and that may take for ever
            return await receive()
        seconds = min(PIECE_SECONDS, until - time.monotonic())
        with anyio.move_on_after(seconds):
            message = await receive()
            whole = not message.get("more_body", False)
            return message
        raise HTTPException(
            408,
            f"the rest of the body did not come: {PIECE_SECONDS:.0f} s for the next piece and "
            f"{BODY_SECONDS:.0f} s for all of it is as long as the service waits",
        )

    return received
