"""POST /recommend."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.application.recommend import RecommendationAnswer, answer
from iojoule.api.http import metrics
from iojoule.api.http.negotiation import JSON_OR_HTML, json_or_report
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import StrictRoute
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.reports.recommendation import report
from iojoule.datasets.errors import within
from iojoule.datasets.schema import AskedConditions
from iojoule.recommender.workloads.presets import ProfileOrPreset

EXAMPLE: dict[str, Any] = {
    "device": "samsung-980-pro-1tb",
    "workload_profile": {
        "name": "kv-reads",
        "workload": {
            "operation": "read",
            "pattern": "random",
            "useful_request_bytes": 4096,
            "demand_operations_per_second": 100000,
            "arrival_process": "poisson",
        },
        "current": {
            "engine": "io_uring",
            "completion": "polled",
            "queue_depth": 8,
            "jobs": 8,
        },
        "free": {
            "completion": "all",
            "queue_depth": "all",
            "jobs": [1, 2, 4, 8],
            "power_state": [0, 1],
        },
        "sla": {"latency_p99_ns_max": 2000000, "confidence": 0.9},
        "scope": "device_cpu",
        "objective": "watts",
    },
}


class RecommendRequest(BaseModel):
    """A workload profile, the drive it runs on, and the known conditions of that drive."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    workload_profile: ProfileOrPreset
    conditions: AskedConditions = Field(
        default=AskedConditions(),
        description="Firmware, link, temperature ... of the drive. Unknown conditions widen the "
        "intervals, conditions that differ from the measured ones widen them more, and impossible "
        "ones are rejected. interval_for says what the intervals are about.",
    )
    settings: str | None = Field(
        default=None,
        max_length=40,
        examples=["postgresql=17"],
        description="An application and its version: `settings` of the response states the "
        "recommended configuration in its settings. Of postgresql, mysql, mariadb, rocksdb, ceph, "
        "qemu, libvirt and fio; without a version the newest that is known.",
    )


router = APIRouter(tags=["recommend"], responses=RESPONSES, route_class=StrictRoute)

RecommendBody = Annotated[
    RecommendRequest,
    Body(openapi_examples={"worked": {"summary": "Reads of a key-value store", "value": EXAMPLE}}),
]


@router.post(
    "/recommend",
    summary="Which configurations to use?",
    response_model=RecommendationAnswer,
    responses=JSON_OR_HTML,
)
async def recommend(workers: Workers, request: RecommendBody, http: Request) -> Response:
    """Rank the configurations that meet the SLA for the least energy, against today's."""
    name = f"{request.workload_profile.name}-on-{request.device}"
    return await json_or_report(
        http, workers, recommendation, report, request, request.device, name=name
    )


def recommendation(profiles: ServedProfiles, request: RecommendRequest) -> RecommendationAnswer:
    """The recommendation; where no candidate meets the SLA it holds the nearest misses.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for the drive.
        InputError: The drive or its profile lacks what the workload or the conditions name.
    """
    with within("device"):
        device = profiles.device_id(request.device)
    with within("conditions"):
        recommender = profiles.recommender_under(device, request.conditions)
    with within("workload_profile"):
        response = answer(recommender, request.workload_profile, request.settings)
    metrics.count_recommendation(response.evidence.values())
    return response
