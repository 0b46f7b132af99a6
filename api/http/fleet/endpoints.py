"""POST /fleet/plan and POST /fleet/frontier."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from iojoule.api.http.computing import Computed
from iojoule.api.http.fleet import service
from iojoule.api.http.fleet.schemas import (
    EXAMPLE,
    FRONTIER_EXAMPLE,
    FleetAnswer,
    FrontierAnswer,
    FrontierRequest,
    PlanRequest,
)
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute

router = APIRouter(prefix="/fleet", tags=["fleet"], responses=RESPONSES, route_class=StrictRoute)

PlanBody = Annotated[
    PlanRequest,
    Body(openapi_examples={"worked": {"summary": "A rack of twenty drives", "value": EXAMPLE}}),
]

FrontierBody = Annotated[
    FrontierRequest,
    Body(openapi_examples={"worked": {"summary": "Six budgets", "value": FRONTIER_EXAMPLE}}),
]


@router.post("/plan", summary="What should every drive of a fleet do?", response_model=FleetAnswer)
async def plan(computed: Computed, request: PlanBody) -> Response:
    """Plan who serves what, in which configuration, and who rests; a plan for each budget."""
    return Response(await computed(_planned, request), media_type="application/json")


@router.post(
    "/frontier", summary="How much demand does each budget buy?", response_model=FrontierAnswer
)
async def frontier(computed: Computed, request: FrontierBody) -> Response:
    """Sweep the budget; read from right to left it is the demand-response curve."""
    return Response(await computed(_swept, request), media_type="application/json")


def _planned(profiles: ServedProfiles, request: PlanRequest) -> bytes:
    return service.plan(profiles, request).model_dump_json().encode()


def _swept(profiles: ServedProfiles, request: FrontierRequest) -> bytes:
    return service.frontier(profiles, request).model_dump_json().encode()
