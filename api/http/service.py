"""GET /healthz, /readyz, /metrics and /audit: the service about itself."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from iojoule import __version__
from iojoule.api.http.metrics import exposition
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import Cursor, Limit, Store, off_loop, read_store
from iojoule.api.http.schemas import AuditEntry, AuditList, Health, Readiness
from iojoule.api.http.served_profiles import Profiles
from iojoule.api.state import audit, jobs
from iojoule.api.state.errors import UnavailableError
from iojoule.api.state.place import State

router = APIRouter(tags=["service"], responses=RESPONSES)


@router.get("/healthz", summary="Is the service up?")
async def healthz(profiles: Profiles) -> Health:
    """Say that the service is up, and which profiles it holds."""
    return Health(status="ok", iojoule_version=__version__, profiles=profiles.load_all())


@router.get("/readyz", summary="Can the service do everything?")
async def readyz(store: Store) -> Readiness:
    """Say whether the state can be read and written; 503 or 507 where it cannot."""
    return await off_loop(readiness, store)


def readiness(store: State) -> Readiness:
    """That the state can be read and written; raises UnavailableError, StorageFullError."""
    store.files.probe()
    with store.database.write() as connection:
        counts = jobs.counted(connection)
    return Readiness(
        status="ready",
        database=store.database.url.get_backend_name(),
        jobs_queued=counts.get("queued", 0),
        jobs_running=counts.get("running", 0),
    )


@router.get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
async def metrics(store: Store) -> Response:
    """Give latencies, jobs, predictions and cache use; no jobs while the database is away."""
    try:
        counts = await read_store(store, jobs.counted_by_kind)
    except UnavailableError:
        counts = None
    content = await off_loop(exposition, counts)
    return Response(content, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/audit", summary="Who changed what?")
async def list_changes(store: Store, limit: Limit = 50, cursor: Cursor = None) -> AuditList:
    """List changes of the state and of keys, the newest first."""
    page = await read_store(store, audit.page, limit, cursor)
    entries = [AuditEntry.model_validate(row) for row in page.items]
    return AuditList(entries=entries, next_cursor=page.next_cursor)
