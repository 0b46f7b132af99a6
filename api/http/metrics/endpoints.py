"""GET /metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from iojoule.api.http import figures
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import Store, off_loop
from iojoule.api.state import jobs
from iojoule.api.state.errors import UnavailableError
from iojoule.api.state.place import State

router = APIRouter(tags=["service"], responses=RESPONSES)


@router.get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
async def metrics(store: Store) -> Response:
    """Give latencies, jobs, predictions and the use of caches; without jobs where they are away."""
    return Response(await off_loop(_exposed, store), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _exposed(store: State) -> bytes:
    try:
        with store.database.read() as connection:
            counted = jobs.counted_by_kind(connection)
    except UnavailableError:
        return figures.exposed(None)
    return figures.exposed(counted)
