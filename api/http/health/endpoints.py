"""GET /healthz."""

from __future__ import annotations

from fastapi import APIRouter

from iojoule.api.http.health import service
from iojoule.api.http.health.schemas import Health
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES

router = APIRouter(tags=["service"], responses=RESPONSES)


@router.get("/healthz", summary="Is the service up?")
async def healthz(profiles: Profiles) -> Health:
    """Say that the service is up, and which profiles it holds."""
    return service.health(profiles)
