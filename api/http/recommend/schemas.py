"""Questions and answers of POST /recommend."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from iojoule.api.application.recommend import RecommendationAnswer
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions
from iojoule.recommender.workload import WorkloadProfile
from iojoule.recommender.workloads.presets import find_preset

__all__ = ["RecommendRequest", "RecommendationAnswer"]

EXAMPLE: dict[str, Any] = {
    "device": "samsung-980-pro-1tb",
    "workload_profile": {
        "name": "kv-reads",
        "workload": {
            "operation": "read",
            "pattern": "random",
            "useful_request_bytes": 4096,
            "demand_operations_per_second": 100000,
            "arrival_process": "poisson",
        },
        "current": {
            "engine": "io_uring",
            "completion": "polled",
            "queue_depth": 8,
            "jobs": 8,
        },
        "free": {
            "completion": "all",
            "queue_depth": "all",
            "jobs": [1, 2, 4, 8],
            "power_state": [0, 1],
        },
        "sla": {"latency_p99_ns_max": 2000000, "confidence": 0.9},
        "scope": "device_cpu",
        "objective": "watts",
    },
}


def _of_preset(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return find_preset(value)
    except InputError as error:
        raise ValueError(error.message) from None


class RecommendRequest(BaseModel):
    """A workload profile, the drive it runs on, and what is known of that drive's conditions."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    workload_profile: Annotated[
        WorkloadProfile,
        BeforeValidator(_of_preset, json_schema_input_type=WorkloadProfile | str),
    ] = Field(description="The question, or the name of a preset such as ycsb-a.")
    conditions: AskedConditions = Field(
        default=AskedConditions(),
        description="Firmware, link, temperature ... of the drive; what is unknown widens the "
        "intervals, what differs from the measured ones widens them more, and what the drive "
        "cannot be under is refused. interval_for says what the intervals are about.",
    )
