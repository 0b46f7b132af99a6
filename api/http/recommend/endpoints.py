"""POST /recommend."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.recommend import service
from iojoule.api.http.recommend.schemas import EXAMPLE, RecommendationAnswer, RecommendRequest
from iojoule.api.http.strict_json import StrictRoute

router = APIRouter(tags=["recommend"], responses=RESPONSES, route_class=StrictRoute)

RecommendBody = Annotated[
    RecommendRequest,
    Body(openapi_examples={"worked": {"summary": "A transactional database", "value": EXAMPLE}}),
]


@router.post(
    "/recommend", summary="Which configurations to use?", response_model=RecommendationAnswer
)
def recommend(profiles: Profiles, request: RecommendBody) -> Response:
    """Rank the configurations that meet the SLA for the least energy, against today's."""
    return Response(
        service.recommend(profiles, request).model_dump_json(), media_type="application/json"
    )
