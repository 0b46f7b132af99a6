"""What is asked of a job that simulates; light to import, as what runs it is not."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from iojoule.sim.workload import Scenario

RUNS_MAX = 64


def _whole(value: Any) -> Any:
    """Whole numbers as such: the simulator refuses 4.0 for a count, which to JSON is a 4."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class SimulationRequest(BaseModel):
    """A drive, what is asked of it, and what is varied."""

    model_config = ConfigDict(extra="forbid")

    drive: str = Field(description="Name of a drive that comes with iojoule, as `/simulations`.")
    set: dict[str, Any] = Field(
        default={},
        max_length=100,
        description="Fields of the drive that are changed, such as `channels` or "
        "`physical.slc.dynamic_blocks_per_plane`.",
    )
    scenario: Annotated[
        Scenario,
        BeforeValidator(_whole),
        Field(description="Flows that run at the same time."),
    ]
    vary: dict[str, list[Any]] = Field(
        default={},
        max_length=10,
        description=f"Fields and their values, every combination of which is run; {RUNS_MAX} at "
        "most. `flows.queue_depth` is that of all flows.",
    )
