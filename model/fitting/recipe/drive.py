"""What a recipe says of the drive's power and of its state."""

from __future__ import annotations

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.model.fitting.recipe.sourced import Figure, Positive, Sourced


class PowerPoint(Sourced):
    """A published power while serving: rates in bytes and operations a second."""

    read_bytes_per_second: float = 0.0
    read_operations_per_second: float = 0.0
    write_bytes_per_second: float = 0.0
    write_operations_per_second: float = 0.0
    collecting: float = 0.0
    watts: Positive
    sd: Positive


class DevicePowerRecipe(Section):
    """Priors and published figures of the device-power law."""

    priors: dict[str, Figure]
    noise_watts: Positive = 0.02
    idle_watts: list[Figure]
    cap_watts: list[Positive]
    peak_watts: Figure
    points: list[PowerPoint] = Field(default_factory=list)
    condition: str


class WriteStateRecipe(Section):
    """What is published about the cache for writes; the series fills in the rest."""

    background_joules_per_byte: Figure
    background_seconds_after_write: dict[int, Figure]
