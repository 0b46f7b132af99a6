"""Puts the service together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI

from iojoule import __version__
from iojoule.api.http import predictors, problems
from iojoule.api.http.devices.endpoints import router as devices
from iojoule.api.http.headers import SecurityHeaders
from iojoule.api.http.health.endpoints import router as health
from iojoule.api.http.openapi import describe
from iojoule.api.http.page import endpoints as page
from iojoule.api.http.predict.endpoints import router as predict
from iojoule.api.http.recommend.endpoints import router as recommend
from iojoule.api.http.workloads.endpoints import router as workloads

WORKERS = 2
"""Requests computed at the same time; each holds the arrays of all its candidates."""


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
    predictors.load_all()
    yield


def create_app() -> FastAPI:
    """The service, ready to be served; loads the shipped profiles when it starts."""
    app = FastAPI(
        title="iojoule",
        version=__version__,
        summary="Recommends the NVMe SSD and host I/O settings that meet an SLA for least energy",
        lifespan=_lifespan,
        docs_url=None,  # theirs loads scripts from elsewhere; the page describes the interface
        redoc_url=None,
    )
    for router in (recommend, predict, workloads, devices, health):
        app.include_router(router)
    page.install(app)
    problems.install(app)
    app.add_middleware(SecurityHeaders)
    describe(app)
    return app
