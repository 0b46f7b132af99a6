"""POST /predict."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Response

from iojoule.api.http.computing import Computed
from iojoule.api.http.predict import service
from iojoule.api.http.predict.schemas import EXAMPLE, PredictRequest, PredictResponse
from iojoule.api.http.predictors import ServedProfiles
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
async def predict(computed: Computed, request: PredictBody) -> Response:
    """Predict throughput, latency and power of each configuration, with 90 % intervals."""
    stated = [one.model_dump(exclude_none=True) for one in request.configurations]
    return Response(await computed(_answer, request.device, stated), media_type="application/json")


def _answer(profiles: ServedProfiles, device: str, stated: list[dict[str, Any]]) -> bytes:
    return orjson.dumps(service.predict(profiles, device, stated))
