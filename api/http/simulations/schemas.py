"""Questions of POST /simulations."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from iojoule.api.jobs.simulation_request import SimulationRequest

__all__ = ["SimulatedDrives", "SimulationRequest"]

EXAMPLE: dict[str, Any] = {
    "drive": "samsung-980-pro-1tb",
    "scenario": {
        "flows": [{"read_percent": 100, "queue_depth": 4, "size_mean_sectors": 8,
                   "total_requests": 2000}]
    },
    "vary": {"flows.queue_depth": [1, 4, 16]},
}  # fmt: skip


class SimulatedDrives(BaseModel):
    """Drives that come with iojoule, by name."""

    iojoule_version: str
    drives: list[str]
