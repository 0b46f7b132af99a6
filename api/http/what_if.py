"""POST /what-if: a response at once, or a job where a changed drive is simulated."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.application import what_if as what_ifs
from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.http.access import CurrentCaller, require_scope
from iojoule.api.http.jobs import submit_job
from iojoule.api.http.negotiation import JSON_OR_HTML, json_or_report
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.recommend import EXAMPLE as RECOMMEND
from iojoule.api.http.requests import Idempotency, Store, StrictRoute
from iojoule.api.http.schemas import JobStatus
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.jobs.what_if_request import WhatIfRequest, of_change
from iojoule.api.reports.what_if import report
from iojoule.api.state.api_keys import Scope

EXAMPLE: dict[str, Any] = {
    "device": RECOMMEND["device"],
    "workload_profile": RECOMMEND["workload_profile"],
    "changes": {"growth": 1.5, "drives": 2},
}
SIMULATED_EXAMPLE: dict[str, Any] = {**EXAMPLE, "changes": {"geometry.channels": 4}}

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobStatus,
        "description": "A geometry.* change is simulated: the job to follow, whose result is the "
        "response. It needs a key of scope write.",
    }
}

router = APIRouter(tags=["what-if"], responses=RESPONSES, route_class=StrictRoute)

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
    responses=JSON_OR_HTML | ACCEPTED,
)
async def what_if(
    http: Request,
    store: Store,
    caller: CurrentCaller,
    workers: Workers,
    request: WhatIfBody,
    idempotency: Idempotency,
) -> Response:
    """Compare the response to a changed request with the response to the request as it is."""
    with of_change(request):
        simulated = request.simulated()
    if simulated:
        require_scope(http, Scope.WRITE)
        await workers(refuse_impossible, request)
        job = await submit_job(store, caller, "what-if", request, idempotency)
        status = JobStatus.of(job).model_dump_json()
        return Response(status, 202, {"Location": f"/jobs/{job.id}"}, "application/json")
    name = f"{request.workload_profile.name}-on-{request.device}-what-if"
    return await json_or_report(
        http, workers, what_if_answer, report, request, request.device, name=name
    )


def what_if_answer(profiles: ServedProfiles, request: WhatIfRequest) -> WhatIfAnswer:
    """What the changes change.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive.
        InputError: A change is not what it must be.
    """
    situation = request.situation(profiles.profile_of)
    return what_ifs.what_if(situation, request.changes, profiles.profile_of)


def refuse_impossible(profiles: ServedProfiles, request: WhatIfRequest) -> bytes:
    """Check that the changed drive can be simulated; empty. For a worker, as it builds the drive.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive.
        InputError: A change is not what it must be.
    """
    from iojoule.api.jobs import what_if as job  # the simulator, slow to import

    job.refuse_impossible(request, profiles.profile_of)
    return b""
