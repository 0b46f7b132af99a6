"""From a recording and the work done to joules per unit, with what they may be off by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from scipy.special import stdtrit

from iojoule.measure.command.record import CommandRun, EnergyRecord, Interval
from iojoule.measure.recording import Recording
from iojoule.measure.sensors.protocol import Scope

CONFIDENCE = 0.90
"""Of every range, as everywhere in iojoule."""

COVERAGE_MIN = 0.95
"""Samples that cover less of a window give no number for it."""

BOTH = "device_cpu"
_SCOPES = (Scope.DEVICE, Scope.CPU, Scope.DRAM, Scope.SYSTEM)
_BATCHES = 20
"""A standard error rests on at least so many batches, less one degrees of freedom."""


def energies(
    recording: Recording,
    begin_ns: int,
    end_ns: int,
    idle: Mapping[str, EnergyRecord] | None = None,
) -> dict[str, EnergyRecord]:
    """Power and energy of every scope that was recorded, within a window."""
    found: dict[str, EnergyRecord] = {}
    for scope in _SCOPES:
        said = recording.power(scope, begin_ns, end_ns)
        if said is None:
            continue
        rails = list(said.rails)
        if said.mean_watts is None or said.coverage < COVERAGE_MIN:
            why = said.reason or f"its samples cover {said.coverage:.0%} of the time"
            failed = recording.failures.get(said.sensor)
            found[scope] = EnergyRecord(
                sensor=said.sensor, rails=rails, mean_watts=None, samples=said.samples,
                lost=said.lost, coverage=said.coverage, reason=failed or why,
            )  # fmt: skip
            continue
        resting = idle[scope].mean_watts if idle and scope in idle else None
        short = said.over_10_ms
        found[scope] = EnergyRecord(
            sensor=said.sensor,
            rails=rails,
            mean_watts=said.mean_watts,
            standard_error_watts=_finite(said.standard_error_watts),
            calibration_uncertainty_watts=said.calibration_uncertainty_watts,
            p99_10_ms_watts=short.p99_watts if short else None,
            maximum_10_ms_watts=short.maximum_watts if short else None,
            energy_joules=said.energy_joules,
            above_idle_joules=(
                (said.mean_watts - resting) * said.seconds if resting is not None else None
            ),
            samples=said.samples,
            lost=said.lost,
            coverage=said.coverage,
        )
    return found


def joules_per_unit(
    power: Mapping[str, EnergyRecord], seconds: float, work: float | None
) -> dict[str, Interval]:
    """By scope, and of drive and CPU together; empty without work.

    The range comes from the standard error of the mean power (errors of different instruments
    add in squares) and, where it is known, from their calibration (which adds as it is).
    """
    if not work:
        return {}
    known = {scope: one for scope, one in power.items() if one.mean_watts is not None}
    found = {scope: _interval([one], seconds / work) for scope, one in known.items()}
    if Scope.DEVICE in known and Scope.CPU in known:
        found[BOTH] = _interval([known[Scope.DEVICE], known[Scope.CPU]], seconds / work)
    return found


def shares(power: Mapping[str, EnergyRecord]) -> dict[str, float]:
    """Shares of drive, CPU and DRAM in their sum; empty unless drive and CPU are known."""
    joules = {
        str(scope): power[scope].energy_joules
        for scope in (Scope.DEVICE, Scope.CPU, Scope.DRAM)
        if scope in power
    }
    known = {scope: value for scope, value in joules.items() if value is not None}
    total = sum(known.values())
    if not {Scope.DEVICE, Scope.CPU} <= known.keys() or total <= 0:
        return {}
    return {scope: value / total for scope, value in known.items()}


def summary(runs: Sequence[CommandRun]) -> dict[str, Interval]:
    """Figures over the runs that count.

    Several runs: their mean, with a range by Student's t over the runs, and the calibration added,
    as it is the same in all. One run: its own range.
    """
    whole = [run for run in runs if run.whole]
    found: dict[str, Interval] = {}

    def add(name: str, take: Callable[[CommandRun], Interval | float | None]) -> None:
        taken = [take(run) for run in whole]
        known = [Interval(value=one) if isinstance(one, float) else one for one in taken if one]
        if known:
            found[name] = known[0] if len(known) == 1 else _over_runs(known)

    add("seconds", lambda run: run.seconds)
    add("work", lambda run: run.work)
    add("work_per_second", lambda run: run.work / run.seconds if run.work else None)
    for scope in dict.fromkeys(scope for run in whole for scope in run.power):
        add(f"{scope}_watts", partial(_watts, scope))
        add(f"{scope}_joules", partial(_joules, scope))
        add(f"{scope}_joules_above_idle", partial(_above_idle, scope))
    for scope in dict.fromkeys(scope for run in whole for scope in run.joules_per_unit):
        add(f"{scope}_joules_per_unit", partial(_per_unit, scope))
    return found


def _watts(scope: str, run: CommandRun) -> Interval | None:
    one = run.power.get(scope)
    return _interval([one], 1.0) if one is not None and one.mean_watts is not None else None


def _joules(scope: str, run: CommandRun) -> Interval | None:
    one = run.power.get(scope)
    if one is None or one.mean_watts is None:
        return None
    return _interval([one], run.window_seconds)


def _above_idle(scope: str, run: CommandRun) -> float | None:
    one = run.power.get(scope)
    return one.above_idle_joules if one is not None else None


def _per_unit(scope: str, run: CommandRun) -> Interval | None:
    return run.joules_per_unit.get(scope)


def _interval(parts: Sequence[EnergyRecord], factor: float) -> Interval:
    """The sum of mean powers times a factor."""
    value = sum(part.mean_watts or 0.0 for part in parts) * factor
    errors = [part.standard_error_watts for part in parts]
    offsets = [part.calibration_uncertainty_watts for part in parts]
    if any(error is None for error in errors):
        return Interval(value=value)
    chance = math.hypot(*(error or 0.0 for error in errors)) * _student(_BATCHES - 1) * factor
    unknown = any(one is None for one in offsets)
    return _around(value, chance, None if unknown else sum(one or 0.0 for one in offsets) * factor)


def _over_runs(parts: Sequence[Interval]) -> Interval:
    values = np.array([part.value for part in parts])
    chance = _student(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    offsets = [part.calibration for part in parts]
    unknown = any(one is None for one in offsets)
    calibration = None if unknown else sum(one or 0.0 for one in offsets) / len(offsets)
    return _around(float(values.mean()), chance, calibration, len(values))


def _around(value: float, chance: float, calibration: float | None, runs: int = 1) -> Interval:
    half = chance + (calibration or 0.0)
    return Interval(
        value=value, low=value - half, high=value + half, calibration=calibration, runs=runs
    )


def _student(degrees: int) -> float:
    """Half width of the range in standard errors."""
    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
