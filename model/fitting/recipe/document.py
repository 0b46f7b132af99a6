"""A recipe as one document: measurements, published figures and assumptions of one drive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iojoule.datasets.profile import ValidFor
from iojoule.datasets.schema import Section
from iojoule.model.fitting.recipe.drive import DevicePowerRecipe, IdleRecipe, WriteStateRecipe
from iojoule.model.fitting.recipe.fallback import Fallback
from iojoule.model.fitting.recipe.host import (
    HostOperationRecipe,
    HostPathRecipe,
    HostPowerRecipe,
    HostRecipe,
    SchedulerRecipe,
    SystemPowerRecipe,
)
from iojoule.model.fitting.recipe.performance import MixedRecipe, PowerStateRecipe, SurfaceRecipe
from iojoule.model.fitting.recipe.sourced import Figure, Positive


class MeasurementFile(Section):
    """A file of measurements and the name of the public map that reads it."""

    file: str
    map: str


class ContributedFolder(Section):
    """A folder of `datasets/contributed`."""

    contributed: str


class Recipe(Section):
    """Everything a fit needs besides the measurements themselves.

    `cap_watts` holds the declared caps of the operational power states, for drives whose power
    laws have no recipe: they are then fitted to whatever power was measured. `idle_watts` holds
    idle power by state where it was measured for itself; it wins over what runs report.
    `sessions_left_out` names the sessions that `fit --report` predicts from all else.
    """

    schema_version: Literal[1]
    device: str
    model_name: str
    profile_version: str
    measurements: list[MeasurementFile | ContributedFolder] = Field(default_factory=list)
    max_transfer_bytes: int = 1 << 40
    link_bytes_per_second: Figure | None = None
    capacity_bytes: int | None = None
    endurance_bytes_written: Figure | None = None
    cap_watts: list[Positive] = Field(default_factory=list)
    idle_watts: dict[int, Figure] = Field(default_factory=dict)
    between_drives: Figure
    host: HostRecipe
    defaults: dict[str, str | int]
    default_sources: dict[str, str]
    surfaces: list[SurfaceRecipe] = Field(default_factory=list)
    host_paths: list[HostPathRecipe]
    schedulers: list[SchedulerRecipe]
    power_states: list[PowerStateRecipe] = Field(default_factory=list)
    mixed: list[MixedRecipe] = Field(default_factory=list)
    device_power: DevicePowerRecipe | None = None
    write_state: WriteStateRecipe | None = None
    idle: IdleRecipe | None = None
    drive_class: str = "unknown"
    host_power: HostPowerRecipe | None = None
    system_power: SystemPowerRecipe | None = None
    host_operation: HostOperationRecipe | None = None
    valid_for: ValidFor
    gaps: list[str] = Field(default_factory=list)
    sessions_left_out: list[str] = Field(default_factory=list)
    fallback: Fallback = Field(default_factory=Fallback)
