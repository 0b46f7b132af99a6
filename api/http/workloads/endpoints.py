"""GET /workloads/presets and POST /workloads."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from iojoule.api.http.computing import Computed
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.http.workloads import service
from iojoule.api.http.workloads.schemas import EXAMPLE, PresetList
from iojoule.datasets.errors import InputError
from iojoule.recommender.workload import WorkloadProfile
from iojoule.recommender.workloads.sources import SourceKind

router = APIRouter(
    prefix="/workloads", tags=["workloads"], responses=RESPONSES, route_class=StrictRoute
)

_TEXT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"text/plain": {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}


@router.get("/presets", summary="Which benchmarks are known as workloads?")
def presets() -> PresetList:
    """List workload profiles of well-known benchmarks, with where their figures come from."""
    return service.list_presets()


@router.post(
    "",
    summary="Which workload does a file describe?",
    response_model=WorkloadProfile,
    response_model_exclude_unset=True,
    openapi_extra=_TEXT,
)
async def read(
    request: Request,
    computed: Computed,
    kind: Annotated[
        SourceKind | None, Query(description="What the text is; else its first line tells.")
    ] = None,
    job: Annotated[str | None, Query(description="Section of a fio job file.")] = None,
) -> Response:
    """Turn a fio job file, fio iolog, blkparse text or MQSim trace into a workload profile."""
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the body is no UTF-8 text: byte {error.start} is not") from None
    found = await computed(service.answer, text, kind, job)
    return Response(found, media_type="application/json")
