"""What is asked of a job that simulates; light to import, as what runs it is not."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from iojoule.sim.workload import Scenario

RUNS_MAX = 64


class SimulationRequest(BaseModel):
    """A drive, what is asked of it, and what is varied."""

    model_config = ConfigDict(extra="forbid")

    drive: str = Field(description="Name of a drive that comes with iojoule, as `/simulations`.")
    set: dict[str, Any] = Field(
        default={}, max_length=100,
        description="Fields of the drive that are changed, such as `channels` or "
        "`physical.slc.dynamic_blocks_per_plane`.",
    )  # fmt: skip
    scenario: Scenario = Field(description="Flows that run at the same time.")
    vary: dict[str, list[Any]] = Field(
        default={}, max_length=10,
        description=f"Fields and their values, every combination of which is run; {RUNS_MAX} at "
        "most. `flows.queue_depth` is that of all flows.",
    )  # fmt: skip
