"""POST /predict."""

from __future__ import annotations

from typing import Annotated

import orjson
from fastapi import APIRouter, Body, Response

from iojoule.api.http.predict import service
from iojoule.api.http.predict.schemas import EXAMPLE, PredictRequest, PredictResponse
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute

router = APIRouter(tags=["predict"], responses=RESPONSES, route_class=StrictRoute)

PredictBody = Annotated[
    PredictRequest,
    Body(
        openapi_examples={
            "worked": {
                "summary": "Two configurations, the second with defaults taken",
                "value": EXAMPLE,
            }
        }
    ),
]


@router.post("/predict", summary="What do configurations do?", response_model=PredictResponse)
def predict(profiles: Profiles, request: PredictBody) -> Response:
    """Predict throughput, latency and power of each configuration, with 90 % intervals."""
    return Response(orjson.dumps(service.predict(profiles, request)), media_type="application/json")
