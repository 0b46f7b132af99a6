"""POST /fleet/plan and POST /fleet/frontier."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.documents.html import to_html
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
from iojoule.api.http.predictors import ServedProfiles
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
    if reports.wanted(http):
        return reports.page(await computed(_plan_page, request), f"{request.fleet.name}-plan")
    return Response(
        await computed(_planned, request), media_type="application/json", headers=reports.VARY
    )


@router.post(
    "/frontier",
    summary="How much demand does each budget buy?",
    response_model=FrontierAnswer,
    responses=reports.EITHER,
)
async def frontier(computed: Computed, request: FrontierBody, http: Request) -> Response:
    """Sweep the budget; read from right to left it is the demand-response curve."""
    if reports.wanted(http):
        name = f"{request.fleet.name}-frontier"
        return reports.page(await computed(_frontier_page, request), name)
    return Response(
        await computed(_swept, request), media_type="application/json", headers=reports.VARY
    )


def _planned(profiles: ServedProfiles, request: PlanRequest) -> bytes:
    return service.plan(profiles, request).model_dump_json().encode()


def _swept(profiles: ServedProfiles, request: FrontierRequest) -> bytes:
    return service.frontier(profiles, request).model_dump_json().encode()


def _plan_page(profiles: ServedProfiles, request: PlanRequest) -> bytes:
    asked = reports.asked(profiles, "/fleet/plan", request, *_devices(request))
    return to_html(plan_report(service.plan(profiles, request), asked)).encode()


def _frontier_page(profiles: ServedProfiles, request: FrontierRequest) -> bytes:
    asked = reports.asked(profiles, "/fleet/frontier", request, *_devices(request))
    return to_html(frontier_report(service.frontier(profiles, request), asked)).encode()


def _devices(request: PlanRequest | FrontierRequest) -> list[str]:
    return [group.device for group in request.fleet.drives]
