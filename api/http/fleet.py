"""POST /fleet, POST /fleet/plan and POST /fleet/frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.application.fleet import FleetAnswer, FrontierAnswer, answer
from iojoule.api.http.negotiation import JSON_OR_HTML, json_or_report
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import StrictRoute, body_text, text_body
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.reports.fleet import frontier_report, plan_report
from iojoule.datasets.errors import InputError, within
from iojoule.datasets.schema import Positive, number
from iojoule.recommender.fleet.document import Aim, Fleet, parse_fleet

if TYPE_CHECKING:
    from iojoule.recommender.fleet.planner import Planner

LIMITS = {"drives": 100, "classes": 20, "budgets": 24}
"""Entries of each list that one request may plan; `iojoule fleet plan` takes any number."""

EXAMPLE: dict[str, Any] = {
    "fleet": {
        "name": "rack",
        "domains": [{"name": "rack", "limit_watts": 400, "base_watts": 100}],
        "drives": [
            {
                "name": "shared",
                "device": "samsung-980-pro-1tb",
                "count": 20,
                "domain": "rack",
                "classes": ["kv"],
            }
        ],
        "classes": [
            {
                "name": "kv",
                "demand_bytes_per_second": 5e9,
                "redirectable": True,
                "workload": {
                    "workload": {"operation": "read", "useful_request_bytes": 4096},
                    "sla": {"latency_p99_ns_max": 2000000},
                },
            }
        ],
    },
    "aim": "least_watts",
}
FRONTIER_EXAMPLE: dict[str, Any] = {"fleet": EXAMPLE["fleet"], "points": 6}

FILE_EXAMPLE = """\
[[domain]]
name = "rack"
limit_watts = 400

[[drives]]
name = "shared"
device = "samsung-980-pro-1tb"
count = 20
domain = "rack"
classes = ["kv"]

[[class]]
name = "kv"
demand_bytes_per_second = 5e9
redirectable = true
workload.workload = { operation = "read", useful_request_bytes = 4096 }
"""

FLEET_SCHEMA = {"$ref": "#/components/schemas/Fleet"}
"""By name: a response model would be a second schema beside that of the requests."""

_GAP = "Relative gap to the best plan to stop at."
Gap = Annotated[float, Field(ge=0.0001, le=0.5, description=_GAP), number]


class PlanRequest(BaseModel):
    """A fleet with its budgets, and the objective of the plan."""

    model_config = ConfigDict(extra="forbid")

    fleet: Fleet
    aim: Aim = Field(
        default="least_watts",
        description="Least watts for the demand, or most demand within the watts.",
    )
    gap: Gap = 0.001


class FrontierRequest(BaseModel):
    """A fleet and a range of budgets; default: from all drives idle to all demand served."""

    model_config = ConfigDict(extra="forbid")

    fleet: Fleet
    points: Annotated[int, Field(ge=2, le=LIMITS["budgets"]), number] = 12
    least_watts: Positive | None = None
    most_watts: Positive | None = None
    gap: Gap = 0.001


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
    "",
    summary="Which fleet does a file describe?",
    response_model=None,
    responses={200: {"content": {"application/json": {"schema": FLEET_SCHEMA}}}},
    openapi_extra=text_body(FILE_EXAMPLE),
)
async def read(request: Request, workers: Workers) -> Response:
    """Read a fleet file; its workloads must stand in it."""
    content = await workers(fleet_json, await body_text(request))
    return Response(content, media_type="application/json")


def fleet_json(_: ServedProfiles, text: str) -> bytes:
    """The fleet that the text of a file describes, as JSON; raises InputError."""
    return parse_fleet(text, "uploaded").model_dump_json(exclude_unset=True).encode()


@router.post(
    "/plan",
    summary="What should every drive of a fleet do?",
    response_model=FleetAnswer,
    responses=JSON_OR_HTML,
)
async def plan(workers: Workers, request: PlanBody, http: Request) -> Response:
    """Plan which drive serves what, in which configuration, and which idle; a plan per budget."""
    devices, name = _devices(request.fleet), f"{request.fleet.name}-plan"
    return await json_or_report(
        http, workers, plan_fleet, plan_report, request, *devices, name=name
    )


@router.post(
    "/frontier",
    summary="How much demand does each budget buy?",
    response_model=FrontierAnswer,
    responses=JSON_OR_HTML,
)
async def frontier(workers: Workers, request: FrontierBody, http: Request) -> Response:
    """Sweep the budget; read from right to left it is the demand-response curve."""
    devices, name = _devices(request.fleet), f"{request.fleet.name}-frontier"
    return await json_or_report(
        http, workers, fleet_frontier, frontier_report, request, *devices, name=name
    )


def _devices(fleet: Fleet) -> list[str]:
    return [group.device for group in fleet.drives]


def plan_fleet(profiles: ServedProfiles, request: PlanRequest) -> FleetAnswer:
    """A plan for each budget in turn, with the stages from one to the next.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive; names its group.
        InputError: The fleet exceeds `LIMITS`.
        InfeasibleError: A demand or a limit cannot be kept; says by how much.
    """
    planner = _planner(profiles, request.fleet)
    with within("fleet"):
        return answer(planner.plans(request.aim, gap=request.gap))


def fleet_frontier(profiles: ServedProfiles, request: FrontierRequest) -> FrontierAnswer:
    """The demand that each budget serves; raises as `plan_fleet`."""
    planner = _planner(profiles, request.fleet)
    budgets = planner.budgets_between(request.least_watts, request.most_watts, request.points)
    return FrontierAnswer(
        fleet=request.fleet.name, points=planner.frontier(budgets, gap=request.gap)
    )


def _planner(served: ServedProfiles, fleet: Fleet) -> Planner:
    from iojoule.recommender.fleet.planner import Planner  # a solver, slow to import

    for field, limit in LIMITS.items():
        count = len(getattr(fleet, field))
        if count > limit:
            raise InputError(
                f"{count} {field}; the service plans at most {limit}, `iojoule fleet plan` any "
                "number",
                field=f"fleet.{field}",
            )
    profiles = {}
    for index, group in enumerate(fleet.drives):
        with within(f"fleet.drives.{index}.device"):
            profiles[group.device] = served.profile_of(group.device)
    with within("fleet"):
        return Planner(fleet, profiles)
