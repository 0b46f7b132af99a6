"""POST /what-if."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from iojoule.api.http import reports
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.http.what_if import service
from iojoule.api.http.what_if.schemas import EXAMPLE, WhatIfAnswer, WhatIfRequest
from iojoule.api.reports.what_if import report

router = APIRouter(tags=["what-if"], responses=RESPONSES, route_class=StrictRoute)


@router.post(
    "/what-if",
    summary="What if something were otherwise?",
    response_model=WhatIfAnswer,
    responses=reports.EITHER,
)
def what_if(
    profiles: Profiles,
    request: Annotated[
        WhatIfRequest,
        Body(
            openapi_examples={
                "worked": {"summary": "Half as much again, on two drives", "value": EXAMPLE}
            }
        ),
    ],
    http: Request,
) -> Response:
    """Put the answer to a changed question beside the answer as things are."""
    found = service.ask(profiles, request)
    if reports.wanted(http):
        asked = reports.asked(profiles, "/what-if", request, request.device)
        return reports.page(report(found, asked))
    return Response(found.model_dump_json(), media_type="application/json", headers=reports.VARY)
