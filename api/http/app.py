"""The FastAPI application: routers, middleware, security headers and background tasks."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule import __version__
from iojoule.api.http import (
    calibrations,
    datasets,
    devices,
    fleet,
    jobs,
    page,
    predict,
    problems,
    profiles,
    recommend,
    service,
    simulations,
    telemetry,
    what_if,
    workloads,
)
from iojoule.api.http.access import Access, AccessControl
from iojoule.api.http.openapi import describe
from iojoule.api.http.operations import knows_head
from iojoule.api.http.protocol import PacedResponses
from iojoule.api.http.requests import off_loop
from iojoule.api.http.workers import PROCESSES, WorkerPool
from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.place import Place, State

RESOURCES = (
    recommend,
    predict,
    what_if,
    fleet,
    workloads,
    profiles,
    calibrations,
    devices,
    datasets,
    simulations,
    jobs,
    service,
)

_log = logging.getLogger(__name__)

REFRESH_SECONDS = 1.0
"""Interval of reading keys and current profiles, which other processes may change."""

SWEEP_SECONDS = 600.0

KEY_USE_SECONDS = 60.0
"""Interval of recording the last use of keys."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content Security Policy level 3 (W3C): no inline script or style, nothing built from strings."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Adds `HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class HeadAsGet:
    """Answers HEAD as GET; the server leaves the body out (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and knows_head(scope["path"]):
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = PROCESSES
    store: State = app.state.store
    await off_loop(store.open)
    await off_loop(app.state.profiles.refresh, store)
    await off_loop(app.state.access.refresh, store)
    app.state.profiles.load_all()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_repeat, REFRESH_SECONDS, app.state.profiles.refresh, store)
        tasks.start_soon(_repeat, REFRESH_SECONDS, app.state.access.refresh, store)
        tasks.start_soon(_repeat, KEY_USE_SECONDS, app.state.access.record_use, store)
        tasks.start_soon(
            _repeat, SWEEP_SECONDS, store.sweep, app.state.keep_seconds, app.state.audit_seconds
        )
        yield
        tasks.cancel_scope.cancel()
    with suppress(UnavailableError, StorageFullError):
        await off_loop(app.state.access.record_use, store)
    if app.state.traces is not None:
        await off_loop(app.state.traces.shutdown)  # sends pending spans
    store.close()


async def _repeat(seconds: float, function: Callable[..., Any], *args: Any) -> None:
    """Call a function at an interval, for ever; an unavailable store is only logged."""
    while True:
        await anyio.sleep(seconds)
        try:
            await off_loop(function, *args)
        except (UnavailableError, StorageFullError) as error:
            _log.warning("%s", error.message)
        except Exception:  # noqa: BLE001 - a fault here must not end the service
            _log.exception("%s", function.__name__)


def create_app(
    store: State | None = None,
    *,
    require_key: bool = False,
    hosts: Iterable[str] = (),
    workers: WorkerPool | None = None,
    keep_days: float | None = None,
    audit_days: float | None = None,
) -> FastAPI:
    """The service; it loads the profiles when it starts.

    Args:
        store: The state; None: at the location that the environment names.
        require_key: Whether requests need an API key (`iojoule key create`).
        hosts: Host names that are accepted beside those of loopback.
        workers: Worker processes; None: threads of this process.
        keep_days: Maximum age of ended jobs and unused datasets; None: no limit.
        audit_days: Maximum age of rows of the audit log; None: no limit.
    """
    app = FastAPI(
        title="iojoule",
        version=__version__,
        summary="Recommends the NVMe SSD and host I/O settings that meet an SLA for least energy",
        lifespan=_lifespan,
        docs_url=None,  # FastAPI's loads scripts of other hosts; the page describes the interface
        redoc_url=None,
    )
    app.state.store = store or State(Place.of())
    app.state.keep_seconds = None if keep_days is None else keep_days * 86400.0
    app.state.audit_seconds = None if audit_days is None else audit_days * 86400.0
    app.state.workers = workers or WorkerPool(app.state.store.place)
    app.state.profiles = app.state.workers.profiles
    app.state.access = Access(require_key, frozenset(name.lower() for name in hosts))
    for resource in RESOURCES:
        app.include_router(resource.router)
    page.install(app)
    problems.install(app)
    app.add_middleware(HeadAsGet)
    app.add_middleware(AccessControl, access=app.state.access)
    # outside access control, so that a request counts towards its lane until its response is sent
    app.add_middleware(PacedResponses)
    app.add_middleware(SecurityHeaders)
    app.state.traces = telemetry.trace_provider() if telemetry.traces_configured() else None
    if app.state.traces is not None:
        app.add_middleware(telemetry.RequestTraces, provider=app.state.traces)
    app.add_middleware(telemetry.RequestLog)
    describe(app)
    return app
