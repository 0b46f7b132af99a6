"""POST /predict."""

from __future__ import annotations

import re
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Response

from iojoule.api.application.fields import FIELDS
from iojoule.api.application.predict import ask
from iojoule.api.http import metrics
from iojoule.api.http.computed_schemas import PredictRequest, PredictResponse
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import StrictRoute
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.datasets.errors import InputError, within

EXAMPLE: dict[str, Any] = {
    "device": "samsung-980-pro-1tb",
    "configurations": [
        {"operation": "read", "pattern": "random", "request_bytes": 4096, "queue_depth": 16},
        {
            "operation": "mixed",
            "read_fraction": 0.7,
            "request_bytes": 16384,
            "queue_depth": 8,
            "jobs": 4,
            "engine": "libaio",
            "power_state": 1,
        },
    ],
}
_SUMMARY = "Two configurations, the second with defaults taken"

_ROW = re.compile(r"configurations\[(\d+)\]: ")

router = APIRouter(tags=["predict"], responses=RESPONSES, route_class=StrictRoute)

PredictBody = Annotated[
    PredictRequest, Body(openapi_examples={"worked": {"summary": _SUMMARY, "value": EXAMPLE}})
]


@router.post("/predict", summary="What do configurations do?", response_model=PredictResponse)
async def predict(workers: Workers, request: PredictBody) -> Response:
    """Predict throughput, latency and power of each configuration, with 90 % intervals."""
    stated = [row.model_dump(exclude_none=True) for row in request.configurations]
    content = await workers(predictions, request.device, stated)
    return Response(content, media_type="application/json")


def predictions(profiles: ServedProfiles, device: str, stated: list[dict[str, Any]]) -> bytes:
    """The predictions as JSON.

    Args:
        profiles: The profiles to predict with.
        device: Id, model or alias of a drive.
        stated: Configurations, each the fields that it states.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for the drive.
        InputError: A configuration cannot exist; names its field.
    """
    with within("device"):
        predictors = profiles.predictors_for(device)
    named = {name for row in stated for name in row}
    names = [name for name in FIELDS if name in named]
    rows = [[row.get(name) for name in names] for row in stated]
    try:
        answers = ask(
            predictors, names, rows, where=lambda row: f"configurations[{row}]", place="the body"
        )
    except InputError as error:
        match = _ROW.match(error.message)
        if match is None or error.field is None:
            raise
        field = f"configurations.{match[1]}.{error.field}"
        raise type(error)(error.message, field=field) from None
    metrics.count_predictions(answers.evidence)
    return orjson.dumps(answers.document())
