"""POST /what-if."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.http import reports
from iojoule.api.http.computing import Computed
from iojoule.api.http.gate import Asking, demand
from iojoule.api.http.jobs.schemas import JobStatus
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import Idempotency, Store, off_loop
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.http.what_if import service
from iojoule.api.http.what_if.schemas import (
    EXAMPLE,
    SIMULATED_EXAMPLE,
    WhatIfAnswer,
    WhatIfRequest,
)
from iojoule.api.reports.what_if import report
from iojoule.api.state.api_keys import Scope

router = APIRouter(tags=["what-if"], responses=RESPONSES, route_class=StrictRoute)

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobStatus,
        "description": "The drive is built otherwise (geometry.*), which is simulated: the job to "
        "follow, whose result is the answer. It needs a key of scope write.",
    }
}

WhatIfBody = Annotated[
    WhatIfRequest,
    Body(
        openapi_examples={
            "worked": {"summary": "Half as much again, on two drives", "value": EXAMPLE},
            "simulated": {"summary": "Half the channels", "value": SIMULATED_EXAMPLE},
        }
    ),
]


@router.post(
    "/what-if",
    summary="What if something were otherwise?",
    response_model=WhatIfAnswer,
    responses=reports.EITHER | ACCEPTED,
)
async def what_if(
    http: Request,
    store: Store,
    asking: Asking,
    computed: Computed,
    request: WhatIfBody,
    named: Idempotency,
) -> Response:
    """Put the answer to a changed question beside the answer as things are."""
    if service.simulated(request):
        demand(http, Scope.WRITE)
        await computed(service.refuse_impossible, request)
        job = await off_loop(service.submit, store, asking, request, named)
        told = JobStatus.of(job).model_dump_json()
        return Response(told, 202, {"Location": f"/jobs/{job.id}"}, "application/json")
    return await reports.either(
        http, computed, service.ask, report, request, request.device,
        name=f"{request.workload_profile.name}-on-{request.device}-what-if",
    )  # fmt: skip
