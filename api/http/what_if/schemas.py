"""Questions and answers of POST /what-if."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.http.recommend.schemas import EXAMPLE as RECOMMEND
from iojoule.api.what_if_answer import WhatIfAnswer
from iojoule.datasets.schema import number
from iojoule.recommender.workload import WorkloadProfile

__all__ = ["WhatIfAnswer", "WhatIfRequest"]

EXAMPLE: dict[str, Any] = {
    "device": RECOMMEND["device"],
    "workload_profile": RECOMMEND["workload_profile"],
    "changes": {"growth": 1.5, "drives": 2},
}


class WhatIfRequest(BaseModel):
    """How things are, and what is to be otherwise."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    workload_profile: WorkloadProfile
    drives: Annotated[
        int, Field(ge=1, le=100_000, description="That share the load evenly."), number
    ] = 1
    changes: dict[str, Any] = Field(
        min_length=1,
        max_length=16,
        description="Field -> new value: device, growth, demand, mix, size, sla, drives, price, "
        "cap, or a field of the workload profile. A drive built otherwise (geometry.*) is "
        "simulated, which `iojoule what-if` does.",
    )
