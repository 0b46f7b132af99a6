"""POST /recommend."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.http import reports
from iojoule.api.http.computing import Computed
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.recommend import service
from iojoule.api.http.recommend.schemas import EXAMPLE, RecommendationAnswer, RecommendRequest
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.reports import recommendation

router = APIRouter(tags=["recommend"], responses=RESPONSES, route_class=StrictRoute)

RecommendBody = Annotated[
    RecommendRequest,
    Body(openapi_examples={"worked": {"summary": "Reads of a key-value store", "value": EXAMPLE}}),
]


@router.post(
    "/recommend",
    summary="Which configurations to use?",
    response_model=RecommendationAnswer,
    responses=reports.EITHER,
)
async def recommend(computed: Computed, request: RecommendBody, http: Request) -> Response:
    """Rank the configurations that meet the SLA for the least energy, against today's."""
    return await reports.either(
        http, computed, service.recommend, recommendation.report, request, request.device,
        name=f"{request.workload_profile.name}-on-{request.device}",
    )  # fmt: skip
