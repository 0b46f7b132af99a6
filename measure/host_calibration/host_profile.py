"""The host profile fitted to the readings of a calibration."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iojoule import __version__
from iojoule.datasets.profile import (
    HOST_PROFILE_SCHEMA_VERSION,
    HostPath,
    HostPerformance,
    HostPower,
    HostProfile,
    SystemPower,
)
from iojoule.datasets.vocabulary import Completion, Engine, Evidence
from iojoule.measure.errors import SensorError
from iojoule.measure.host.facts import HostControls, HostFacts
from iojoule.measure.host_calibration.loads import DEEP, Load, LoadResult
from iojoule.model.evaluate.performance import WAKEUP_EXPONENT
from iojoule.model.fit.host_power import expected_operation, fit_host_power, fit_system_power
from iojoule.model.recipe import (
    ClockRecipe,
    Figure,
    HostAnchor,
    HostOperationRecipe,
    HostPowerRecipe,
    IdleStateRecipe,
    SystemAnchor,
    SystemPowerRecipe,
    generic_recipe,
)

CPU_SHARE = (0.45, 0.15)
"""Share of an idle machine's wall power that its processors draw: 50 % at the least load in
000 5.2, less in machines with more drives and fans."""

SUPPLY_SLOPE = (1.12, 0.08)
"""Converters of board and supply lose 5 to 20 % of a further watt."""


@dataclass(frozen=True)
class LoadReading:
    """One load and what was recorded meanwhile; powers with their standard errors."""

    done: LoadResult
    busy_cores: float
    hertz: float | None
    cpu_watts: tuple[float, float] | None
    dram_watts: tuple[float, float] | None
    wall_watts: tuple[float, float] | None

    @property
    def load(self) -> Load:
        """What ran."""
        return self.done.load

    @property
    def others_cores(self) -> float:
        """Cores that no load of the calibration kept busy."""
        return max(self.busy_cores - self.done.own_cores, 0.0)

    @property
    def plain(self) -> bool:
        """Whether nothing but the load was set."""
        return self.load.hertz is None and self.load.sleep_limit is None


def from_wall_power(readings: Sequence[LoadReading]) -> list[LoadReading]:
    """CPU power from wall power: an assumed idle part, and the increase.

    Raises SensorError if idle wall power is unknown.
    """
    idle = [
        reading.wall_watts[0]
        for reading in readings
        if reading.wall_watts and reading.load.kind == "idle"
    ]
    if not idle:
        raise SensorError(
            "the meter at the wall gave no mean for an idle host; take more time with --minutes"
        )
    base = min(idle)
    return [
        replace(
            reading,
            cpu_watts=(
                max(CPU_SHARE[0] * base + (reading.wall_watts[0] - base) / SUPPLY_SLOPE[0], 0.1),
                reading.wall_watts[1],
            )
            if reading.wall_watts
            else None,
            dram_watts=None,
        )
        for reading in readings
    ]


def with_idle_uncertainty(power: HostPower, readings: Sequence[LoadReading]) -> HostPower:
    """The law with what the wall cannot tell: how much of its idle power is the processors'."""
    base = min(reading.wall_watts[0] for reading in readings if reading.wall_watts)
    covariance = np.array(power.covariance)
    covariance[0, 0] += (CPU_SHARE[1] * base) ** 2
    loss = SUPPLY_SLOPE[1] / SUPPLY_SLOPE[0]
    values = np.array([parameter.value for parameter in power.parameters])
    covariance[1:, 1:] += np.outer(loss * values[1:], loss * values[1:])
    parameters = [
        parameter.model_copy(
            update={
                "sd": float(np.sqrt(covariance[place, place])),
                **({"evidence": Evidence.DATASHEET} if place == 0 else {}),
            }
        )
        for place, parameter in enumerate(power.parameters)
    ]
    return power.model_copy(update={"parameters": parameters, "covariance": covariance.tolist()})


SHARPNESS = 6.0
"""Of the bend where a host's cores are used up, as the shipped profiles have it."""

MISFIT = 0.01
"""Relative sd of a window's mean power beside the counter's own: loads are not equally hot."""

PATH_SD = 0.05
"""Log sd of core time between two runs of one engine."""

OWN_SENSORS = "counters of this host"


@dataclass(frozen=True)
class CalibrationResults:
    """Everything that a host profile is made of."""

    facts: HostFacts
    controls: HostControls
    cpus: int
    readings: Sequence[LoadReading]
    sensors: list[str]
    gaps: list[str]
    measured_utc: str


def host_profile(results: CalibrationResults) -> HostProfile:
    """Fit the host's terms to its readings. Raises SensorError if too few windows have power."""
    gaps = list(results.gaps)
    readings = results.readings
    wall_only = all(reading.cpu_watts is None for reading in readings)
    if wall_only:
        readings = from_wall_power(readings)
        gaps.append(
            "CPU power: from the wall alone; its idle part is assumed to be "
            f"{CPU_SHARE[0]:.0%} of the idle wall"
        )
    operation = expected_operation(_operation(results))
    power, operation = fit_host_power(_power(results, readings, wall_only), operation)
    if wall_only:
        power = with_idle_uncertainty(power, readings)
    if not any(reading.load.engine for reading in readings):
        performance = None
    else:
        performance = _performance(results, readings)
    return HostProfile(
        schema_version=HOST_PROFILE_SCHEMA_VERSION,
        host_id=results.facts.host_id,
        cpu_model=results.facts.cpu_model,
        cpu_cores=results.cpus,
        kernel_version=platform.release(),
        generator=f"iojoule {__version__}",
        measured_utc=results.measured_utc,
        sensors=results.sensors,
        performance=performance,
        power=power,
        system=_system(results, readings, gaps),
        operation=operation,
        runs=len(readings),
        others_busy_cores=round(float(np.mean([reading.others_cores for reading in readings])), 4),
        gaps=gaps,
    )


def _figure(
    value: float, sd: float, unit: str, source: str, evidence: Evidence = Evidence.DATASHEET
) -> Figure:
    return Figure(value=value, sd=sd, unit=unit, source=source, evidence=evidence)


def _power(
    results: CalibrationResults, readings: Sequence[LoadReading], wall_only: bool
) -> HostPowerRecipe:
    """Wide priors, and an anchor for every window with CPU power. Raises SensorError if too few."""
    anchors = [anchor for reading in readings if (anchor := _anchor(reading)) is not None]
    if len(anchors) < 5:
        raise SensorError(
            f"CPU power is known in {len(anchors)} of {len(readings)} windows only; take more time "
            "with --minutes"
        )
    low, high = (f(anchor.watts for anchor in anchors) for f in (min, max))
    span = max(high - low, 0.02 * low)
    idle = _figure(low, 0.3 * low, "W", "the lightest window")
    dram = _dram(readings)
    scope = "CPU packages" if not wall_only else "CPU packages, from the wall"
    return HostPowerRecipe(
        host_id=results.facts.host_id,
        scope=f"{scope} (memory apart)" if dram else scope,
        cpu_cores=results.cpus,
        priors={
            "idle_watts": idle,
            "package_watts": _figure(0.2 * span, 0.3 * span, "W", "share of the measured range"),
            "uncore_watts": _figure(0.1 * span, 0.3 * span, "W", "share of the measured range"),
            "core_watts": _figure(
                span / results.cpus, span / results.cpus, "W", "the measured range over all cores"
            ),
            "awake_core_watts": _figure(
                0.1 * span / results.cpus,
                0.2 * span / results.cpus,
                "W",
                "a core that is not asleep",
            ),
            "wakeup_joules": _figure(
                2e-5, 4e-5, "J", "assumption: tens of microseconds at the power of a core"
            ),
        },
        anchors=anchors,
        dram_idle_watts=dram[0] if dram else None,
        dram_joules_per_byte=dram[1] if dram else None,
    )


def _anchor(reading: LoadReading) -> HostAnchor | None:
    if reading.cpu_watts is None or reading.cpu_watts[0] <= 0:
        return None
    watts, error = reading.cpu_watts
    load = reading.load
    return HostAnchor(
        busy_cores=reading.busy_cores,
        serving_cores=max(
            min(load.cpus + reading.others_cores, reading.busy_cores + load.cpus),
            reading.busy_cores,
        ),
        wakeups_per_second=reading.done.wakeups_per_second,
        frequency_hertz=reading.hertz if load.hertz is not None and reading.hertz else load.hertz,
        cstate_limit=load.sleep_limit,
        watts=watts,
        sd=float(np.hypot(error, MISFIT * watts)),
        evidence=Evidence.MEASURED,
        source=OWN_SENSORS,
    )


def _dram(readings: Sequence[LoadReading]) -> tuple[Figure, Figure] | None:
    """Idle watts of the memory and joules for a byte, from idle windows and those that copied."""
    idle = [
        reading.dram_watts
        for reading in readings
        if reading.dram_watts and reading.load.kind == "idle"
    ]
    busy = [reading for reading in readings if reading.dram_watts and reading.load.kind == "copy"]
    if not idle or not busy:
        return None
    watts = np.array([value for value, _ in idle])
    base = float(watts.mean())
    unsure = float(np.hypot(watts.std(), max(error for _, error in idle)))
    each, own = 0.0, 0.0
    for reading in busy:
        if reading.dram_watts is not None and reading.done.bytes_per_second > 0:
            each += (
                max(reading.dram_watts[0] - base, 0.0) / reading.done.bytes_per_second / len(busy)
            )
            own = max(
                own, float(np.hypot(reading.dram_watts[1], unsure)) / reading.done.bytes_per_second
            )
    return (
        _figure(base, max(unsure, MISFIT * base), "W", OWN_SENSORS, Evidence.MEASURED),
        _figure(each, max(own, 0.1 * each), "J/B", OWN_SENSORS, Evidence.MEASURED),
    )


def _operation(results: CalibrationResults) -> HostOperationRecipe:
    """Frequencies and sleep states as the kernel tells them, effects as priors."""
    generic = generic_recipe("host", "host").host_operation
    known = {state.name: state for state in generic.idle_states} if generic else {}
    states = []
    sleep_states = results.controls.sleep_states()
    for place, state in enumerate(sleep_states):
        deepest = place == len(sleep_states) - 1
        usual = known.get(state.name)
        watts = _figure(1.0, 1.0, "W", "assumption: a core in light sleep")
        if usual is not None:
            watts = usual.core_watts
        if deepest:
            watts = _figure(0.0, 0.0, "W", "the reference: part of the idle power")
        leaving, staying = (
            _figure(value, 0.3 * value, "ns", "the kernel's table")
            for value in (state.exit_latency_ns, state.residency_ns)
        )
        states.append(
            IdleStateRecipe(
                name=state.name, exit_latency_ns=leaving, residency_ns=staying, core_watts=watts
            )
        )
    return HostOperationRecipe(
        host_id=results.facts.host_id,
        clock=_clock(results),
        idle_states=states,
        numa=generic.numa if generic else None,
    )


def _clock(results: CalibrationResults) -> ClockRecipe | None:
    span = results.controls.frequency_range_hertz()
    if span is None:
        return None
    busy = [
        reading.hertz
        for reading in results.readings
        if reading.hertz
        and reading.plain
        and reading.load.kind == "burn"
        and reading.load.amount == 1.0
    ]
    reference = float(np.mean(busy)) if busy else span[1]
    spread = float(np.std(busy)) if len(busy) > 1 else 0.05 * reference
    driver = results.controls.driver() or ""
    return ClockRecipe(
        reference_hertz=_figure(
            reference,
            max(spread, 0.01 * reference),
            "Hz",
            "frequency of the busiest CPU under full loads" if busy else "cpuinfo_max_freq",
            Evidence.MEASURED if busy else Evidence.DATASHEET,
        ),
        minimum_hertz=_figure(span[0], 0.0, "Hz", "cpuinfo_min_freq"),
        base_hertz=_figure(
            results.controls.base_hertz() or reference,
            0.0,
            "Hz",
            "base_frequency, else the reference",
        ),
        static_share=_figure(0.3, 0.2, "1", "assumption: what leaks of a busy core's power"),
        voltage_floor=_figure(0.75, 0.15, "1", "assumption: voltage at the lowest clock"),
        uncore_share=_figure(0.5, 0.3, "1", "assumption: caches follow the cores' clock"),
        memory_share=_figure(0.25, 0.15, "1", "assumption: a request's waiting for memory"),
        powersave_is_dynamic=driver.startswith(("intel_pstate", "amd-pstate")) if driver else None,
    )


def _performance(
    results: CalibrationResults, readings: Sequence[LoadReading]
) -> HostPerformance | None:
    """Core time of each engine, from its runs at depth 1 and deep.

    The latency that an engine adds cannot be told from the drive's own here: 0 stands for unknown
    until `with_host` takes it from a device profile.
    """
    paths = []
    shrink = DEEP**-WAKEUP_EXPONENT
    for engine in Engine:
        each = {
            reading.load.depth: reading.done.own_cores / reading.done.operations_per_second * 1e9
            for reading in readings
            if reading.load.engine is engine and reading.done.operations_per_second > 0
        }
        if 1 not in each:
            continue
        alone, deep = each[1], each.get(DEEP)
        wakeup = 0.5 * alone if deep is None else max((alone - deep) / (1.0 - shrink), 0.0)
        paths.append(
            HostPath(
                engine=engine,
                completion=Completion.INTERRUPT,
                submission_polling=False,
                added_latency_ns=0.0,
                core_time_ns=max(alone - wakeup, 1.0),
                wakeup_ns=wakeup,
                relative_sd=PATH_SD if deep is not None else 0.3,
                evidence=Evidence.MEASURED,
                source="fio's CPU time on a file of this host",
            )
        )
    if not paths:
        return None
    return HostPerformance(
        host_id=results.facts.host_id,
        cpu_cores=results.cpus,
        sharpness=SHARPNESS,
        paths=paths,
        schedulers=[],
        calibrated_apart=True,
    )


def _system(
    results: CalibrationResults, readings: Sequence[LoadReading], gaps: list[str]
) -> SystemPower | None:
    """The wall over packages and memory; None without a meter there."""
    anchors = []
    for reading in readings:
        if reading.cpu_watts is None or reading.wall_watts is None:
            continue
        parts = reading.cpu_watts[0] + (reading.dram_watts[0] if reading.dram_watts else 0.0)
        wall, error = reading.wall_watts
        anchors.append(
            SystemAnchor(
                parts_watts=parts,
                wall_watts=wall,
                sd=float(np.hypot(error, MISFIT * wall)),
                source="meter at the wall and counters of this host",
                evidence=Evidence.MEASURED,
            )
        )
    if len(anchors) < 3:
        if any(reading.wall_watts for reading in results.readings):
            gaps.append("wall power: known in too few windows; take more time with --minutes")
        return None
    lowest = min(anchor.wall_watts for anchor in anchors)
    return fit_system_power(
        SystemPowerRecipe(
            host_id=results.facts.host_id,
            relative_sd=MISFIT,
            anchors=anchors,
            floor_prior=_figure(0.5 * lowest, 0.5 * lowest, "W", "part of the idle wall"),
            slope_prior=_figure(*SUPPLY_SLOPE, "1", "converters of board and supply"),
            quadratic_prior=_figure(
                2.5e-4, 2.5e-4, "1/W", "80 PLUS Gold, 87, 90 and 87 % of 500 W"
            ),
        )
    )
