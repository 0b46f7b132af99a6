"""GET /healthz and /readyz."""

from __future__ import annotations

from fastapi import APIRouter

from iojoule.api.http.health import service
from iojoule.api.http.health.schemas import Health, Readiness
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import Store, off_loop

router = APIRouter(tags=["service"], responses=RESPONSES)


@router.get("/healthz", summary="Is the service up?")
async def healthz(profiles: Profiles) -> Health:
    """Say that the service is up, and which profiles it holds."""
    return service.health(profiles)


@router.get("/readyz", summary="Can the service do everything?")
async def readyz(store: Store) -> Readiness:
    """Say whether what is kept can be read and written; 503 or 507 where it cannot."""
    return await off_loop(service.readiness, store)
