"""POST /fleet/plan and POST /fleet/frontier."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.http import reports
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
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.reports.fleet import frontier_report, plan_report

router = APIRouter(prefix="/fleet", tags=["fleet"], responses=RESPONSES, route_class=StrictRoute)

PlanBody = Annotated[
    PlanRequest,
    Body(openapi_examples={"worked": {"summary": "A rack of twenty drives", "value": EXAMPLE}}),
]

FrontierBody = Annotated[
    FrontierRequest,
    Body(openapi_examples={"worked": {"summary": "Six budgets", "value": FRONTIER_EXAMPLE}}),
]


@router.post(
    "/plan",
    summary="What should every drive of a fleet do?",
    response_model=FleetAnswer,
    responses=reports.EITHER,
)
async def plan(computed: Computed, request: PlanBody, http: Request) -> Response:
    """Plan who serves what, in which configuration, and who rests; a plan for each budget."""
    return await reports.either(
        http, computed, service.plan, plan_report, request, *_devices(request),
        name=f"{request.fleet.name}-plan",
    )  # fmt: skip


@router.post(
    "/frontier",
    summary="How much demand does each budget buy?",
    response_model=FrontierAnswer,
    responses=reports.EITHER,
)
async def frontier(computed: Computed, request: FrontierBody, http: Request) -> Response:
    """Sweep the budget; read from right to left it is the demand-response curve."""
    return await reports.either(
        http, computed, service.frontier, frontier_report, request, *_devices(request),
        name=f"{request.fleet.name}-frontier",
    )  # fmt: skip


def _devices(request: PlanRequest | FrontierRequest) -> list[str]:
    return [group.device for group in request.fleet.drives]
