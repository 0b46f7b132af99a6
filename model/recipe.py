"""Recipes: what a device profile is fitted from, with every assumption and its source.

A recipe names measurements (a file and the column map that reads it), published figures with
their sources, and priors for what data cannot tell. `common.toml` holds what holds for every
drive until its own recipe or data say otherwise.

A recipe as one document: measurements, published figures and assumptions of one drive.

What a recipe says of the drive's power and of its state.

General assumptions that stand in for a published number when it is left out.

Reading recipes: those that ship, and a user's own.

What a recipe says of the host: its paths, its processors, its wall.

What a recipe says of throughput and latency.

One number from several findings: each by itself, so that any one of them can be left out.

Figures of the same number are weighted by their precision, as independent estimates. The figures
of one paper share its host and its methods, so the mean is never surer than the surest of them.

A published or assumed number of a recipe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError, UnknownDeviceError
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.profile import Parameter, ValidFor
from iojoule.datasets.schema import RequestBytes, Section, validation_error
from iojoule.datasets.vocabulary import (
    Completion,
    Engine,
    Evidence,
    Operation,
    Pattern,
    Scheduler,
    is_assumption,
)

__all__ = [
    "AfterWrites",
    "ApstSeen",
    "CacheSize",
    "ClockRecipe",
    "CollectingRate",
    "ContributedFolder",
    "DevicePowerRecipe",
    "Fallback",
    "Figure",
    "GapSeen",
    "HostAnchor",
    "HostOperationRecipe",
    "HostPathRecipe",
    "HostPowerRecipe",
    "HostRecipe",
    "HostSession",
    "IdleRecipe",
    "IdleStateRecipe",
    "MeasurementFile",
    "MixedRecipe",
    "NumaRecipe",
    "Overwriting",
    "PowerPoint",
    "PowerStateRecipe",
    "PublishedPoint",
    "Recipe",
    "SchedulerRecipe",
    "Sourced",
    "SurfaceRecipe",
    "SystemAnchor",
    "SystemPowerRecipe",
    "WakeSeen",
    "WriteStateRecipe",
    "generic_recipe",
    "load_recipe",
    "parse_recipe",
    "pool",
    "shipped_recipes",
]


Positive = Annotated[float, Field(gt=0)]


class Sourced(Section):
    """A number from outside: where it stands, and which published findings it is.

    `facts` names the findings (`fact_id`) that a number was taken from, so that a profile can be
    rebuilt without one of them (`iojoule validate findings`).
    """

    source: str
    facts: list[str] = Field(default_factory=list)


class Figure(Sourced):
    """A published or assumed number: value, standard deviation, unit, source.

    A number whose source begins with "assumption" is `assumed`; stating it as measured or published
    is refused.
    """

    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    evidence: Evidence = Evidence.PUBLISHED

    @model_validator(mode="before")
    @classmethod
    def _assumptions_say_so(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not is_assumption(str(data.get("source", ""))):
            return data
        stated = data.get("evidence")
        if stated is not None and Evidence(stated) not in (Evidence.DATASHEET, Evidence.ASSUMED):
            raise ValueError(
                f"evidence: {data['source']!r} is an assumption and cannot be {Evidence(stated)}; "
                "leave evidence out, or name the source that it rests on"
            )
        return data | {"evidence": Evidence.ASSUMED}


def parameter(name: str, figure: Figure) -> Parameter:
    """Carry a published figure into a profile."""
    return Parameter(
        name=name,
        value=figure.value,
        sd=figure.sd,
        unit=figure.unit,
        evidence=figure.evidence,
        source=figure.source,
    )


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
    """Priors and published figures of the device-power law.

    `state_background_watts` says by power state what the prior of `background_watts` says at PS0.
    """

    priors: dict[str, Figure]
    noise_watts: Positive = 0.02
    idle_watts: list[Figure]
    cap_watts: list[Positive]
    peak_watts: Figure
    points: list[PowerPoint] = Field(default_factory=list)
    state_background_watts: dict[int, Figure] = Field(default_factory=dict)
    condition: str


class CacheSize(Sourced):
    """A figure of how many bytes an empty drive takes before it slows down.

    Attributes:
        folding_from: Share of them from which it folds beside writes, where that was seen.
    """

    bytes: Positive
    log_sd: Positive
    folding_from: Annotated[float, Field(gt=0, lt=1)] | None = None
    evidence: Evidence = Evidence.PUBLISHED


class AfterWrites(Sourced):
    """Work seen after writing `bytes_written`; `watts_above_idle` where a meter saw it."""

    power_state: int = 0
    pattern: Pattern = Pattern.SEQUENTIAL
    bytes_written: Positive
    seconds: Positive
    log_sd: Positive
    watts_above_idle: Positive | None = None
    evidence: Evidence = Evidence.PUBLISHED


class CollectingRate(Sourced):
    """A figure of what a full cache leaves of the rate, by pattern; in bytes a second."""

    pattern: Pattern
    bytes_per_second: Positive
    log_sd: Positive
    evidence: Evidence = Evidence.PUBLISHED


class Overwriting(Sourced):
    """A figure of how much longer a random write waits where its place holds data already."""

    seconds: Positive
    log_sd: Positive


class WriteStateRecipe(Section):
    """What is published or was characterised about writes; a series fills in the rest.

    `background_share` says where the power of background work lies between idle and the cap.
    """

    cache: list[CacheSize] = Field(default_factory=list)
    static_bytes: Figure | None = None
    bits_per_cell: int = 3
    after_writes: list[AfterWrites] = Field(default_factory=list)
    background_share: Figure | None = None
    background_joules_per_byte: Figure | None = None
    background_delay_seconds: Figure | None = None
    full_work_joules: Figure | None = None
    collecting: list[CollectingRate] = Field(default_factory=list)
    overwriting: list[Overwriting] = Field(default_factory=list)


class GapSeen(Sourced):
    """What the drive did in a gap of `seconds`: for how long it drew idle power, 0 for never."""

    seconds: Positive
    idle_seconds: float


class WakeSeen(Sourced):
    """How long the first request after a rest waited."""

    seconds: Positive
    log_sd: Positive


class ApstSeen(Sourced):
    """Power with autonomous transitions over that without, in a cycle of requests and gaps."""

    power_ratio: Positive
    gap_seconds: Positive
    period_seconds: Positive
    power_watts: Positive
    sd: Positive


class IdleRecipe(Section):
    """What is known about gaps; the power-state table of the catalogue comes beside it.

    Attributes:
        settle_joules: What a read that comes alone costs beyond one in a row.
    """

    gaps: list[GapSeen] = Field(default_factory=list)
    wakes: list[WakeSeen] = Field(default_factory=list)
    settle_joules: Figure | None = None
    apst_idle_seconds: Figure | None = None
    apst_state: int | None = None
    apst_seen: list[ApstSeen] = Field(default_factory=list)
    aspm_policy: Literal["disabled", "enabled"] | None = None


class Fallback(Section):
    """Stand-ins by the path of the field (`host_power.priors`), engine or scheduler.

    Attributes:
        figures: A number with a wide deviation.
        surface_priors: By `operation/pattern`; none stands for the general ones.
        host_paths: Costs of an engine whose own figure is left out.
        schedulers: Costs of a scheduler likewise.
    """

    figures: dict[str, Figure] = Field(default_factory=dict)
    surface_priors: dict[str, dict[str, float]] = Field(default_factory=dict)
    host_paths: dict[str, dict[str, float | str]] = Field(default_factory=dict)
    schedulers: dict[str, dict[str, float | str]] = Field(default_factory=dict)


class HostPathRecipe(Sourced):
    """Expected cost of a host path before the data speak."""

    engine: Engine
    completion: Completion
    submission_polling: bool = False
    added_latency_ns: Positive
    core_time_ns: Positive
    wakeup_ns: Positive
    log_sd: Positive


class SchedulerRecipe(Sourced):
    """Expected cost of a scheduler before the data speak."""

    scheduler: Scheduler
    added_latency_ns: Positive
    added_core_time_ns: Positive
    serial_ns: Annotated[float, Field(ge=0)] = 0.0
    log_sd: Positive


class HostAnchor(Sourced):
    """A CPU power and what the host did meanwhile: cores busy and serving, wake-ups, settings.

    `frequency_hertz` and `cstate_limit` None: as the reference.
    """

    busy_cores: float
    serving_cores: float
    wakeups_per_second: float = 0.0
    frequency_hertz: float | None = None
    cstate_limit: int | None = None
    watts: Positive
    sd: Positive
    evidence: Evidence = Evidence.PUBLISHED


class HostSession(Sourced):
    """A session of measurements that tell of the host's power, and the findings that it repeats."""

    session_id: str


class HostPowerRecipe(Section):
    """CPU and DRAM power of a reference host.

    Attributes:
        measured_as: The `host_id` of measurements that tell of this host's CPU power, and of
            nothing else: the drive is not fitted on them.
        sessions: Those of its sessions that the law is fitted on.
        session_sd: What one of their runs errs, W.
        meter_scale_sd: Relative sd of what the meter says of the power beyond idle: an error that
            all configurations share.
    """

    host_id: str
    scope: str
    cpu_cores: int
    priors: dict[str, Figure]
    anchors: list[HostAnchor] = Field(default_factory=list)
    measured_as: str | None = None
    sessions: list[HostSession] = Field(default_factory=list)
    session_sd: Figure | None = None
    meter_scale_sd: Figure | None = None
    dram_idle_watts: Figure | None = None
    dram_joules_per_byte: Figure | None = None


class SystemAnchor(Sourced):
    """A wall power beside the power of CPU, DRAM and drive."""

    parts_watts: Positive
    wall_watts: Positive
    sd: Positive = 2.5
    evidence: Evidence = Evidence.PUBLISHED


class SystemPowerRecipe(Section):
    """Wall power of a reference host; without `quadratic_prior` it is a line."""

    host_id: str
    anchors: list[SystemAnchor] = Field(default_factory=list)
    floor_prior: Figure | None = None
    slope_prior: Figure
    quadratic_prior: Figure | None = None
    relative_sd: Positive


class ClockRecipe(Section):
    """Expected frequencies of a host, and what they do."""

    reference_hertz: Figure
    minimum_hertz: Figure
    base_hertz: Figure
    static_share: Figure
    voltage_floor: Figure
    uncore_share: Figure
    memory_share: Figure
    powersave_is_dynamic: bool | None = None


class IdleStateRecipe(Section):
    """Expected sleep state of a core; shallowest first."""

    name: str
    exit_latency_ns: Figure
    residency_ns: Figure
    core_watts: Figure


class NumaRecipe(Section):
    """Expected cost of a job far from its drive."""

    added_latency_ns: Figure
    core_time_ns: Figure
    awake_watts: Figure


class HostOperationRecipe(Section):
    """What the host's settings are expected to do."""

    host_id: str
    clock: ClockRecipe | None = None
    idle_states: list[IdleStateRecipe] = Field(default_factory=list)
    numa: NumaRecipe | None = None


class HostRecipe(Section):
    """The host on which performance was measured."""

    host_id: str
    cpu_cores: int


class PublishedPoint(Sourced):
    """A published closed-loop result; `relative_sd` is how far it may be off."""

    request_bytes: RequestBytes
    queue_depth: int = 1
    jobs: int = 1
    engine: Engine = Engine.IO_URING
    completion: Completion = Completion.INTERRUPT
    metric: Literal["throughput_bytes_per_second", "iops", "latency_mean_ns"]
    value: Positive
    relative_sd: Positive


class SurfaceRecipe(Section):
    """One operation and pattern: where its points come from and what is assumed.

    `prior_facts` names the published findings that the priors were taken from.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence = Evidence.MEASURED
    source: str
    priors: dict[str, float] = Field(default_factory=dict)
    prior_facts: list[str] = Field(default_factory=list)
    points: list[PublishedPoint] = Field(default_factory=list)
    relative_sd: Positive = 0.2


class PowerStateRecipe(Section):
    """Published effect of a power state on one direction; factor sds in log units.

    `ceiling_depth_exponents` are estimates of one number, how the ceiling falls with depth; none:
    it does not.
    """

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Figure
    ceiling_seconds_per_operation: Figure | None = None
    ceiling_depth_exponents: list[Figure] = Field(default_factory=list)
    ceiling_sharpness: Figure | None = None
    latency_factor: Figure
    tail_factor: Figure


class MixedRecipe(Section):
    """Published effect of mixing directions; factor sds in log units."""

    pattern: Pattern
    latency_factor: Figure
    tail_factor: Figure


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
            text = read_input_text(Path(name))
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"{name}: not a text file") from None
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
        data = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    merged = common | data
    merged["host_paths"] = _overlay(
        common["host_paths"],
        data.get("host_paths", []),
        ("engine", "completion", "submission_polling"),
    )
    for name in ("defaults", "default_sources", "host_operation"):
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


def pool(figures: Sequence[Figure]) -> Figure:
    """Their mean by precision; its deviation is that of the surest."""
    weights = np.array([figure.sd**-2.0 for figure in figures])
    values = np.array([figure.value for figure in figures])
    return Figure(
        value=float(f"{(weights * values).sum() / weights.sum():.7g}"),
        sd=min(figure.sd for figure in figures),
        unit=figures[0].unit,
        evidence=figures[0].evidence,
        source="; ".join(figure.source for figure in figures),
        facts=sorted({fact for figure in figures for fact in figure.facts}),
    )
