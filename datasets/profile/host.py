"""Costs of the host: latency, core time, processor and wall power; the host profile document."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from iojoule.datasets.profile.drive import Grounded, Parameter, refuse_other_shape
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Completion, Engine, Scheduler


class HostPath(Grounded):
    """What one way of submitting and completing a request costs on the reference host."""

    engine: Engine
    completion: Completion
    submission_polling: bool
    added_latency_ns: Annotated[float, Field(ge=0)]
    core_time_ns: Annotated[float, Field(gt=0)]
    wakeup_ns: Annotated[float, Field(ge=0)]
    relative_sd: Annotated[float, Field(ge=0)]


class SchedulerCost(Grounded):
    """What a block-layer scheduler adds to every request on the reference host.

    `serial_ns` is spent under one lock, whatever the number of jobs.
    """

    scheduler: Scheduler
    added_latency_ns: float
    added_core_time_ns: float
    serial_ns: Annotated[float, Field(ge=0)] = 0.0
    relative_sd: Annotated[float, Field(ge=0)]


class HostPerformance(Section):
    """The host as a bottleneck: latency and core time per request.

    Attributes:
        core_seconds_per_byte: Further core time for each byte beyond a page: pinning and mapping
            it. None where it is unknown.
        calibrated_apart: Whether these paths come from a calibration of the host alone, and not
            from the runs that the surfaces were fitted on.
    """

    host_id: str
    cpu_cores: Annotated[int, Field(ge=1)]
    sharpness: Annotated[float, Field(gt=0)]
    paths: list[HostPath]
    schedulers: list[SchedulerCost]
    core_seconds_per_byte: Parameter | None = None
    calibrated_apart: bool = False


class Clock(Section):
    """How core time and power follow the frequency (see `model.evaluate.operating_point`).

    Attributes:
        reference_hertz: What a busy core ran at where paths and power were found.
        minimum_hertz: The lowest that the host offers.
        base_hertz: The highest without turbo.
        static_share: Share of a busy core's power that does not switch, at the reference.
        voltage_floor: Voltage at the minimum over that at the reference.
        uncore_share: Share of the power of an awake package that follows the cores' frequency.
        memory_share: Share of a request's core time that waits for memory and keeps its length.
        powersave_is_dynamic: Whether the governor `powersave` follows the load, as with
            intel_pstate and amd_pstate; None = unknown.
    """

    reference_hertz: Parameter
    minimum_hertz: Parameter
    base_hertz: Parameter
    static_share: Parameter
    voltage_floor: Parameter
    uncore_share: Parameter
    memory_share: Parameter
    powersave_is_dynamic: bool | None = None


class IdleState(Section):
    """A sleep state of a core; shallowest first, 0 being the loop that never sleeps.

    Attributes:
        name: As the kernel calls it.
        exit_latency_ns: From the interrupt to the first instruction.
        residency_ns: A core expects to stay at least so long, or does not enter.
        core_watts: What a core draws in it beyond its deepest state.
    """

    name: str
    exit_latency_ns: Parameter
    residency_ns: Parameter
    core_watts: Parameter


class NumaCost(Section):
    """What a job pays that runs on another NUMA node than the one the drive hangs on."""

    added_latency_ns: Parameter
    core_time_ns: Parameter
    awake_watts: Parameter


class HostOperation(Section):
    """How the host's settings move its latency, core time and power; None = unknown."""

    host_id: str
    clock: Clock | None = None
    idle_states: list[IdleState] = Field(default_factory=list)
    numa: NumaCost | None = None


class DramPower(Section):
    """Watts of the memory where it was measured apart from the packages."""

    idle_watts: Parameter
    joules_per_byte: Parameter


POWER_PARAMETERS = {
    "idle_watts": "W",
    "package_watts": "W",
    "uncore_watts": "W",
    "core_watts": "W",
    "awake_core_watts": "W",
    "wakeup_joules": "J",
    "deep_gap_seconds": "s",
    "shallow_gap_seconds": "s",
}
"""Parameters of CPU power and their units (`model.evaluate.host_power`)."""


class HostPoint(Section):
    """A CPU power that the law was fitted on, and what the law answers there, W."""

    busy_cores: float
    serving_cores: float
    wakeups_per_second: float
    watts: float
    answered_watts: float
    source: str


class HostPower(Section):
    """Watts of the CPU packages (and of DRAM where `scope` says so and `dram` is None).

    Parameters by the names of `POWER_PARAMETERS`, idle power first; watts and joules that are left
    out are zero, and a gap has its usual value. `points` are those it was fitted on.
    """

    host_id: str
    scope: str
    parameters: list[Parameter]
    covariance: list[list[float]]
    cpu_cores: int
    relative_sd: Annotated[float, Field(ge=0)] = 0.0
    dram: DramPower | None = None
    points: list[HostPoint] = Field(default_factory=list)

    @model_validator(mode="after")
    def _known(self) -> Self:
        names = [parameter.name for parameter in self.parameters]
        if not names or names[0] != "idle_watts" or not set(names) <= set(POWER_PARAMETERS):
            raise ValueError(
                f"parameters: {', '.join(names)} are not those of CPU power (idle_watts first, "
                f"then any of {', '.join(POWER_PARAMETERS)}); fit it again"
            )
        refuse_other_shape(self.covariance, len(names))
        return self


class SystemPower(Section):
    """Watts at the wall: floor + slope x P + quadratic x P^2, P = CPU + DRAM + drive.

    What the wall draws on top of P is floor + (slope - 1) P + quadratic P^2: the rest of the
    machine and the losses of its supplies.
    """

    host_id: str
    floor_watts: Parameter
    slope: Parameter
    relative_sd: float
    quadratic: Parameter | None = None
    covariance: list[list[float]] | None = None

    @model_validator(mode="after")
    def _shape_matches(self) -> Self:
        if self.covariance is not None:
            refuse_other_shape(self.covariance, 3)
        return self


def path_key(engine: str, completion: str, submission_polling: bool, scheduler: str) -> str:
    """Name a host path in tables, for example `io_uring/interrupt/kyber`."""
    polling = "/sqpoll" if submission_polling else ""
    return f"{engine}/{completion}{polling}/{scheduler}"


_EARLIER_NAMES = {"uncore_watts": "package_watts", "job_watts": "awake_core_watts"}

EARLIER_LAW = (
    "CPU power: fitted by an earlier version, whose factors by engine and scheduler are no longer "
    "used and whose wall slope was raised to 1 where it was below: answers differ from what that "
    "version said; fit it again (iojoule fit)"
)
"""The gap of a document whose host was carried over."""


def carried_over(data: Any, power: str, system: str) -> Any:
    """A document of an earlier version with its host as the law is now; others are left as is.

    The earlier law had factors by engine and scheduler, an awake package (`uncore_watts`) and a
    core for each job (`job_watts`); its wall could save less than the parts behind it.

    Args:
        data: The document as read from JSON.
        power: Field of the CPU's power.
        system: Field of the wall's power.
    """
    law = data.get(power) if isinstance(data, dict) else None
    if not isinstance(law, dict) or "engine_factors" not in law:
        return data
    fields = {
        name: value
        for name, value in law.items()
        if name not in ("engine_factors", "scheduler_factors")
    }
    fields["parameters"] = [
        {**parameter, "name": _EARLIER_NAMES.get(parameter["name"], parameter["name"])}
        for parameter in law["parameters"]
    ]
    wall = data.get(system)
    if isinstance(wall, dict) and wall["slope"]["value"] < 1.0:
        idle = law["parameters"][0]["value"]
        missing = 1.0 - wall["slope"]["value"]
        floor = wall["floor_watts"]["value"] - missing * idle
        wall = {
            **wall,
            "slope": {**wall["slope"], "value": 1.0, "sd": max(wall["slope"]["sd"], missing / 2)},
            "floor_watts": {**wall["floor_watts"], "value": max(floor, 0.0)},
            "quadratic": None,
            "covariance": None,
        }
    gaps = [*data.get("gaps", []), EARLIER_LAW]
    return {**data, power: fields, system: wall, "gaps": gaps}
