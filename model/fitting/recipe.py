"""Recipes: what a device profile is fitted from, with every assumption and its source.

A recipe names measurements (a file and the column map that reads it), published figures with
their sources, and priors for what data cannot tell. `common.toml` holds what holds for every
drive until its own recipe or data say otherwise.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.profile import ValidFor
from iojoule.datasets.schema import RequestBytes, Section, validation_error
from iojoule.datasets.vocabulary import (
    Completion,
    Engine,
    Evidence,
    Operation,
    Pattern,
    Scheduler,
)

Positive = Annotated[float, Field(gt=0)]


class Figure(Section):
    """A published or assumed number: value, standard deviation, unit, source."""

    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    source: str
    evidence: Evidence = Evidence.PUBLISHED


class MeasurementFile(Section):
    """A file of measurements and the name of the public map that reads it."""

    file: str
    map: str


class PublishedPoint(Section):
    """A published closed-loop result; `relative_sd` is how far it may be off."""

    request_bytes: RequestBytes
    queue_depth: int = 1
    jobs: int = 1
    engine: Engine = Engine.IO_URING
    completion: Completion = Completion.INTERRUPT
    metric: Literal["throughput_bytes_per_second", "iops", "latency_mean_ns"]
    value: Positive
    relative_sd: Positive
    source: str


class SurfaceRecipe(Section):
    """One operation and pattern: where its points come from and what is assumed."""

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence = Evidence.MEASURED
    source: str
    priors: dict[str, float] = Field(default_factory=dict)
    points: list[PublishedPoint] = Field(default_factory=list)
    relative_sd: Positive = 0.2


class HostPathRecipe(Section):
    """Expected cost of a host path before the data speak."""

    engine: Engine
    completion: Completion
    submission_polling: bool = False
    added_latency_ns: Positive
    core_time_ns: Positive
    wakeup_ns: Positive
    log_sd: Positive
    source: str


class SchedulerRecipe(Section):
    """Expected cost of a scheduler before the data speak."""

    scheduler: Scheduler
    added_latency_ns: Positive
    added_core_time_ns: Positive
    serial_ns: Annotated[float, Field(ge=0)] = 0.0
    log_sd: Positive
    source: str


class PowerStateRecipe(Section):
    """Published effect of a power state on one direction; factor sds in log units."""

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Figure
    ceiling_seconds_per_operation: Figure | None = None
    latency_factor: Figure
    tail_factor: Figure


class MixedRecipe(Section):
    """Published effect of mixing directions; factor sds in log units."""

    pattern: Pattern
    latency_factor: Figure
    tail_factor: Figure


class PowerPoint(Section):
    """A published power while serving: rates in bytes and operations a second."""

    read_bytes_per_second: float = 0.0
    read_operations_per_second: float = 0.0
    write_bytes_per_second: float = 0.0
    write_operations_per_second: float = 0.0
    collecting: float = 0.0
    watts: Positive
    sd: Positive
    source: str


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


class HostAnchor(Section):
    """A published CPU power and what the host did: cores busy and woken, path."""

    busy_cores: float
    active_cores: float
    engine: Engine = Engine.IO_URING
    completion: Completion = Completion.INTERRUPT
    watts: Positive
    sd: Positive
    source: str


class HostPowerRecipe(Section):
    """CPU and DRAM power of a reference host."""

    host_id: str
    scope: str
    cpu_cores: int
    priors: dict[str, Figure]
    anchors: list[HostAnchor]
    engine_factors: dict[str, Figure]
    scheduler_factors: dict[str, Figure]


class SystemAnchor(Section):
    """A published wall power beside the power of CPU, DRAM and drive."""

    parts_watts: Positive
    wall_watts: Positive
    source: str


class SystemPowerRecipe(Section):
    """Wall power of a reference host."""

    host_id: str
    anchors: list[SystemAnchor]
    slope_prior: Figure
    relative_sd: Positive


class HostRecipe(Section):
    """The host on which performance was measured."""

    host_id: str
    cpu_cores: int


class Recipe(Section):
    """Everything a fit needs besides the measurements themselves.

    `cap_watts` holds the declared caps of the operational power states, for drives whose power
    laws have no recipe: they are then fitted to whatever power was measured. `idle_watts` holds
    idle power by state where it was measured for itself; it wins over what runs report.
    """

    schema_version: Literal[1]
    device: str
    model_name: str
    profile_version: str
    measurements: list[MeasurementFile] = Field(default_factory=list)
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
    host_power: HostPowerRecipe | None = None
    system_power: SystemPowerRecipe | None = None
    valid_for: ValidFor
    gaps: list[str] = Field(default_factory=list)


def shipped_recipes() -> list[str]:
    """Names of the recipes that ship, one a profile that ships."""
    folder = resources.files("iojoule.model").joinpath("recipes")
    names = [entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")]
    return sorted(set(names) - {"common"})


def load_recipe(name: str) -> Recipe:
    """Load a shipped recipe by name, or one from a TOML file, over the common assumptions.

    Raises:
        UnknownDeviceError: No such recipe ships.
        InputError: The file is not a recipe; the message names file and field.
    """
    folder = resources.files("iojoule.model").joinpath("recipes")
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    elif name in shipped_recipes():
        text = folder.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise UnknownDeviceError(
            f"no recipe named {name!r}; recipes ship for {', '.join(shipped_recipes())}, or give "
            "the path of a .toml file"
        )
    common = tomllib.loads(folder.joinpath("common.toml").read_text(encoding="utf-8"))
    return parse_recipe(text, common, name)


def generic_recipe(device: str, model_name: str) -> Recipe:
    """The common assumptions alone, for a drive that has only measurements."""
    folder = resources.files("iojoule.model").joinpath("recipes")
    common = tomllib.loads(folder.joinpath("common.toml").read_text(encoding="utf-8"))
    common |= {"device": device, "model_name": model_name, "profile_version": "1"}
    return Recipe.model_validate(common)


def parse_recipe(text: str, common: dict[str, Any], where: str) -> Recipe:
    """Overlay a recipe's tables on the common ones.

    Raises:
        InputError: Not TOML or not a recipe.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    merged = common | data
    merged["host_paths"] = _overlay(
        common["host_paths"],
        data.get("host_paths", []),
        ("engine", "completion", "submission_polling"),
    )
    for name in ("defaults", "default_sources"):
        merged[name] = common[name] | data.get(name, {})
    try:
        return Recipe.model_validate(merged)
    except ValidationError as error:
        raise validation_error(error, where) from None


def _overlay(
    base: list[dict[str, Any]], over: list[dict[str, Any]], key: tuple[str, ...]
) -> list[dict[str, Any]]:
    rows = {tuple(row.get(name, False) for name in key): row for row in base}
    rows |= {tuple(row.get(name, False) for name in key): row for row in over}
    return list(rows.values())
