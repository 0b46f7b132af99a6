"""What the host adds: latency, core time, and the watts of its processors and of the wall."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Completion, Engine, Evidence, Scheduler


class HostPath(Section):
    """What one way of submitting and completing a request costs on the reference host."""

    engine: Engine
    completion: Completion
    submission_polling: bool
    added_latency_ns: Annotated[float, Field(ge=0)]
    core_time_ns: Annotated[float, Field(gt=0)]
    wakeup_ns: Annotated[float, Field(ge=0)]
    relative_sd: Annotated[float, Field(ge=0)]
    evidence: Evidence
    source: str


class SchedulerCost(Section):
    """What a block-layer scheduler adds to every request on the reference host.

    `serial_ns` is spent under one lock, whatever the number of jobs.
    """

    scheduler: Scheduler
    added_latency_ns: float
    added_core_time_ns: float
    serial_ns: Annotated[float, Field(ge=0)] = 0.0
    relative_sd: Annotated[float, Field(ge=0)]
    evidence: Evidence
    source: str


class HostPerformance(Section):
    """The host as a bottleneck: latency and core time per request."""

    host_id: str
    cpu_cores: Annotated[int, Field(ge=1)]
    sharpness: Annotated[float, Field(gt=0)]
    paths: list[HostPath]
    schedulers: list[SchedulerCost]


class HostPower(Section):
    """Watts of the CPU packages and DRAM (see `model.host_power` for the law)."""

    host_id: str
    scope: str
    parameters: list[Parameter]
    covariance: list[list[float]]
    engine_factors: dict[str, Parameter]
    scheduler_factors: dict[str, Parameter]
    cpu_cores: int


class SystemPower(Section):
    """Watts at the wall: floor + slope x (CPU + DRAM + drive)."""

    host_id: str
    floor_watts: Parameter
    slope: Parameter
    relative_sd: float


def path_key(engine: str, completion: str, submission_polling: bool, scheduler: str) -> str:
    """Name a host path in tables, for example `io_uring/interrupt/kyber`."""
    polling = "/sqpoll" if submission_polling else ""
    return f"{engine}/{completion}{polling}/{scheduler}"
