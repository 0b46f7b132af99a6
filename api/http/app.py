"""Puts the service together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI

from iojoule import __version__
from iojoule.api.http import problems, tracing
from iojoule.api.http.audit.endpoints import router as audit
from iojoule.api.http.calibrations.endpoints import router as calibrations
from iojoule.api.http.computing import PROCESSES, Computing
from iojoule.api.http.datasets.endpoints import router as datasets
from iojoule.api.http.devices.endpoints import router as devices
from iojoule.api.http.fleet.endpoints import router as fleet
from iojoule.api.http.gate import Access, Gate
from iojoule.api.http.headers import SecurityHeaders
from iojoule.api.http.health.endpoints import router as health
from iojoule.api.http.jobs.endpoints import router as jobs
from iojoule.api.http.metrics.endpoints import router as metrics
from iojoule.api.http.observing import Observed
from iojoule.api.http.openapi import describe
from iojoule.api.http.page import endpoints as page
from iojoule.api.http.predict.endpoints import router as predict
from iojoule.api.http.profiles.endpoints import router as profiles
from iojoule.api.http.protocol import Unhurried
from iojoule.api.http.recommend.endpoints import router as recommend
from iojoule.api.http.simulations.endpoints import router as simulations
from iojoule.api.http.stored import off_loop
from iojoule.api.http.what_if.endpoints import router as what_if
from iojoule.api.http.workloads.endpoints import router as workloads
from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.place import Place, State

ROUTERS = (
    recommend, predict, what_if, fleet, workloads, profiles, calibrations, devices, datasets,
    simulations, jobs, audit, health, metrics,
)  # fmt: skip

REFRESH_SECONDS = 1.0
"""How soon a profile that another process made current answers here too, and a key that was made
or revoked is known."""

SWEEP_SECONDS = 600.0

USE_SECONDS = 60.0
"""How often it is kept when keys were used last."""

_log = logging.getLogger(__name__)


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
        tasks.start_soon(_repeat, USE_SECONDS, app.state.access.record_use, store)
        tasks.start_soon(
            _repeat, SWEEP_SECONDS, store.sweep, app.state.keep_seconds, app.state.audit_seconds
        )
        yield
        tasks.cancel_scope.cancel()
    with suppress(UnavailableError, StorageFullError):
        await off_loop(app.state.access.record_use, store)
    if app.state.traces is not None:
        await off_loop(app.state.traces.shutdown)  # sends what waits
    store.close()


async def _repeat(seconds: float, function: Callable[..., Any], *args: Any) -> None:
    """Call it now and then, for ever; a store that is away is waited for."""
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
    computing: Computing | None = None,
    keep_days: float | None = None,
    audit_days: float | None = None,
) -> FastAPI:
    """The service, ready to be served; loads the profiles when it starts.

    Args:
        store: What it keeps; None takes the place that the environment names.
        require_key: Whether those who ask must show a key (`iojoule key create`).
        hosts: Names under which it answers beside those of loopback.
        computing: What computes answers; None: threads of this process.
        keep_days: How old jobs that have ended and unused datasets may become; None: they stay.
        audit_days: How old lines of the audit log may become; None: they stay.
    """
    app = FastAPI(
        title="iojoule",
        version=__version__,
        summary="Recommends the NVMe SSD and host I/O settings that meet an SLA for least energy",
        lifespan=_lifespan,
        docs_url=None,  # theirs loads scripts from elsewhere; the page describes the interface
        redoc_url=None,
    )
    app.state.store = store or State(Place.of())
    app.state.keep_seconds = None if keep_days is None else keep_days * 86400.0
    app.state.audit_seconds = None if audit_days is None else audit_days * 86400.0
    app.state.computing = computing or Computing(app.state.store.place)
    app.state.profiles = app.state.computing.profiles
    app.state.access = Access(require_key, frozenset(name.lower() for name in hosts))
    for router in ROUTERS:
        app.include_router(router)
    page.install(app)
    problems.install(app)
    app.add_middleware(Gate, access=app.state.access)
    app.add_middleware(Unhurried)  # outside the gate, so that places are kept until all has left
    app.add_middleware(SecurityHeaders)
    app.state.traces = tracing.provider() if tracing.configured() else None
    if app.state.traces is not None:
        app.add_middleware(tracing.Traced, provider=app.state.traces)
    app.add_middleware(Observed)
    describe(app)
    return app
