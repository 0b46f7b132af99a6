"""POST /what-if."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body

from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.http.what_if import service
from iojoule.api.http.what_if.schemas import EXAMPLE, WhatIfAnswer, WhatIfRequest

router = APIRouter(tags=["what-if"], responses=RESPONSES, route_class=StrictRoute)


@router.post("/what-if", summary="What if something were otherwise?")
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
) -> WhatIfAnswer:
    """Put the answer to a changed question beside the answer as things are."""
    return service.ask(profiles, request)
