"""POST /recommend."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.http import reports
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.recommend import service
from iojoule.api.http.recommend.schemas import EXAMPLE, RecommendationAnswer, RecommendRequest
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.reports import recommendation

router = APIRouter(tags=["recommend"], responses=RESPONSES, route_class=StrictRoute)

RecommendBody = Annotated[
    RecommendRequest,
    Body(openapi_examples={"worked": {"summary": "A transactional database", "value": EXAMPLE}}),
]


@router.post(
    "/recommend",
    summary="Which configurations to use?",
    response_model=RecommendationAnswer,
    responses=reports.EITHER,
)
def recommend(profiles: Profiles, request: RecommendBody, http: Request) -> Response:
    """Rank the configurations that meet the SLA for the least energy, against today's."""
    found = service.recommend(profiles, request)
    if reports.wanted(http):
        asked = reports.asked(profiles, "/recommend", request, request.device)
        return reports.page(recommendation.report(found, asked))
    return Response(found.model_dump_json(), media_type="application/json", headers=reports.VARY)
