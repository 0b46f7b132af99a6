"""What a recipe says of the host: its paths, its processors, its wall."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Completion, Engine, Evidence, Scheduler
from iojoule.model.fitting.recipe.sourced import Figure, Positive, Sourced


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
