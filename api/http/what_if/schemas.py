"""Questions and answers of POST /what-if."""

from __future__ import annotations

from typing import Any

from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.http.recommend.schemas import EXAMPLE as RECOMMEND
from iojoule.api.jobs.what_if_request import WhatIfRequest

__all__ = ["WhatIfAnswer", "WhatIfRequest"]

EXAMPLE: dict[str, Any] = {
    "device": RECOMMEND["device"],
    "workload_profile": RECOMMEND["workload_profile"],
    "changes": {"growth": 1.5, "drives": 2},
}

SIMULATED_EXAMPLE: dict[str, Any] = {**EXAMPLE, "changes": {"geometry.channels": 4}}
