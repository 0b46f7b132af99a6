"""What a recipe says of the host: its paths, its processors, its wall."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Completion, Engine, Scheduler
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
    """A published CPU power and what the host did: cores busy and woken, path."""

    busy_cores: float
    active_cores: float
    engine: Engine = Engine.IO_URING
    completion: Completion = Completion.INTERRUPT
    watts: Positive
    sd: Positive


class HostPowerRecipe(Section):
    """CPU and DRAM power of a reference host."""

    host_id: str
    scope: str
    cpu_cores: int
    priors: dict[str, Figure]
    anchors: list[HostAnchor]
    engine_factors: dict[str, Figure]
    scheduler_factors: dict[str, Figure]


class SystemAnchor(Sourced):
    """A published wall power beside the power of CPU, DRAM and drive."""

    parts_watts: Positive
    wall_watts: Positive


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
