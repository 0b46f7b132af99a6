"""Questions and answers of POST /fleet/plan and POST /fleet/frontier."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.application.fleet import FleetAnswer, FrontierAnswer
from iojoule.datasets.schema import Positive, number
from iojoule.recommender.fleet.document import Aim, Fleet

__all__ = ["FleetAnswer", "FrontierAnswer", "FrontierRequest", "PlanRequest"]

GROUPS_MAX, CLASSES_MAX, BUDGETS_MAX = 100, 20, 24
"""What is planned while somebody waits; `iojoule fleet plan` takes any number."""

EXAMPLE: dict[str, Any] = {
    "fleet": {
        "name": "rack",
        "domains": [{"name": "rack", "limit_watts": 400, "base_watts": 100}],
        "drives": [
            {"name": "shared", "device": "samsung-980-pro-1tb", "count": 20, "domain": "rack",
             "classes": ["kv"]}
        ],
        "classes": [
            {"name": "kv", "demand_bytes_per_second": 5e9, "redirectable": True,
             "workload": {
                 "workload": {"operation": "read", "useful_request_bytes": 4096},
                 "sla": {"latency_p99_ns_max": 2000000}}}
        ],
    },
    "aim": "least_watts",
}  # fmt: skip


Gap = Annotated[
    float, Field(ge=0.0001, le=0.5, description="Relative gap to the best plan to stop at."),
    number,
]  # fmt: skip


class PlanRequest(BaseModel):
    """A fleet with its budgets, and what is to be made least or most."""

    model_config = ConfigDict(extra="forbid")

    fleet: Fleet
    aim: Aim = Field(
        default="least_watts",
        description="Least watts for the demand, or most demand within the watts.",
    )
    gap: Gap = 0.001


FRONTIER_EXAMPLE: dict[str, Any] = {"fleet": EXAMPLE["fleet"], "points": 6}


class FrontierRequest(BaseModel):
    """A fleet, and between which budgets it is asked; left out: from rest to all that serves."""

    model_config = ConfigDict(extra="forbid")

    fleet: Fleet
    points: Annotated[int, Field(ge=2, le=BUDGETS_MAX), number] = 12
    least_watts: Positive | None = None
    most_watts: Positive | None = None
    gap: Gap = 0.001
