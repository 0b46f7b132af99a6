"""The result of `measure command` (one JSON file), and how its figures are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal

import numpy as np
from pydantic import Field
from scipy.special import stdtrit

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Section
from iojoule.measure.drive.block_io import DriveIo
from iojoule.measure.errors import ProgramError, SensorError
from iojoule.measure.recording import Recording
from iojoule.measure.sensors.protocol import Scope

RESULT = "result.json"


class Interval(Section):
    """A value with its 90 % interval; `low` and `high` are None where it is unknown.

    `calibration` is the instruments' part of each half-width; None = unknown and not included.
    """

    value: float
    low: float | None = None
    high: float | None = None
    calibration: float | None = None
    runs: int = 1


class EnergyRecord(Section):
    """Power and energy of one scope during one run.

    Attributes:
        mean_watts: None where it cannot be trusted, with the `reason`.
        calibration_uncertainty_watts: Not reduced by averaging; None = unknown.
        p99_10_ms_watts: Of means over 10 ms; None where the sensor is too slow.
        above_idle_joules: Above idle power; None where that was not measured.
    """

    sensor: str
    rails: list[str]
    mean_watts: float | None
    standard_error_watts: float | None = None
    calibration_uncertainty_watts: float | None = None
    p99_10_ms_watts: float | None = None
    maximum_10_ms_watts: float | None = None
    energy_joules: float | None = None
    above_idle_joules: float | None = None
    samples: int = 0
    lost: int = 0
    coverage: float = 0.0
    reason: str | None = None


class CommandRun(Section):
    """One run of the program.

    Attributes:
        number: From 1.
        window_seconds: Duration that power and I/O refer to, with the wait for the page cache.
        exit_status: None where a signal ended it.
        metrics: From its output; None = not found.
        shares: Of drive, CPU and DRAM in their sum, where drive and CPU are known.
        unwritten_bytes: Growth of the dirty page cache over the run.
    """

    number: int
    started_utc: datetime
    seconds: float
    window_seconds: float
    begin_monotonic_ns: int
    end_monotonic_ns: int
    exit_status: int | None
    killed_by: str | None = None
    interrupted: bool = False
    metrics: dict[str, float | None] = Field(default_factory=dict)
    work: float | None = None
    power: dict[str, EnergyRecord] = Field(default_factory=dict)
    joules_per_unit: dict[str, Interval] = Field(default_factory=dict)
    shares: dict[str, float] = Field(default_factory=dict)
    drive_io: DriveIo | None = None
    unwritten_bytes: int | None = None
    program_cpu_seconds: float
    host_cpu_seconds: float | None = None
    failures: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether it counts: the program ended by itself and well."""
        return self.exit_status == 0 and not self.interrupted


class IdleRecord(Section):
    """The time before the first run."""

    seconds: float
    power: dict[str, EnergyRecord]
    drive_io: DriveIo | None = None
    failures: dict[str, str] = Field(default_factory=dict)


class CommandResult(Section):
    """The result of `measure command`.

    Attributes:
        work_is_rate: Whether the work metric is a rate, to be multiplied by the run time.
        idle: Before the first run; None = not measured.
        summary: Over the runs that count: `seconds`, `work`, `work_per_second`, and by scope
            `<scope>_watts`, `<scope>_joules`, `<scope>_joules_above_idle` and
            `<scope>_joules_per_unit`.
    """

    schema_version: Literal[1] = 1
    iojoule_version: str
    command: list[str]
    unit: str | None = None
    work_metric: str | None = None
    work_is_rate: bool = False
    drive: str | None = None
    sensors: list[str] = Field(default_factory=list)
    idle: IdleRecord | None = None
    runs: list[CommandRun] = Field(default_factory=list)
    summary: dict[str, Interval] = Field(default_factory=dict)
    interrupted: bool = False
    failure: str | None = None
    notes: list[str] = Field(default_factory=list)

    def require_success(self) -> None:
        """Check that the program succeeded and that every requested figure exists.

        Raises:
            ProgramError: The program failed.
            SensorError: A sensor failed.
            InputError: The work was not found in the program's output.
        """
        last = self.runs[-1] if self.runs else None
        if last is not None and not last.whole:
            how = (
                f"was killed by {last.killed_by}"
                if last.killed_by
                else f"returned {last.exit_status}"
            )
            raise ProgramError(
                f"{self.command[0]} {how}; stdout.txt and stderr.txt of run {last.number} say why"
            )
        if self.failure is not None:
            raise SensorError(self.failure)
        for run in self.runs:
            for reason in run.failures.values():
                raise SensorError(f"run {run.number}: {reason}")
        if self.work_metric and any(run.work is None for run in self.runs):
            raise InputError(
                f"no work was found in the output: --metric {self.work_metric} matched nothing or "
                "no positive number; everything else is kept"
            )


CONFIDENCE = 0.90
"""Of every range, as everywhere in iojoule."""

COVERAGE_MIN = 0.95
"""Samples that cover less of a window give no number for it."""

BOTH = "device_cpu"
_SCOPES = (Scope.DEVICE, Scope.CPU, Scope.DRAM, Scope.SYSTEM)
_BATCHES = 20
"""A standard error rests on at least so many batches, less one degrees of freedom."""


def energies(
    recording: Recording, begin_ns: int, end_ns: int, idle: Mapping[str, EnergyRecord] | None = None
) -> dict[str, EnergyRecord]:
    """Power and energy of every scope that was recorded, within a window."""
    records: dict[str, EnergyRecord] = {}
    for scope in _SCOPES:
        statistics = recording.power(scope, begin_ns, end_ns)
        if statistics is None:
            continue
        rails = list(statistics.rails)
        if statistics.mean_watts is None or statistics.coverage < COVERAGE_MIN:
            why = statistics.reason or f"its samples cover {statistics.coverage:.0%} of the time"
            failed = recording.failures.get(statistics.sensor)
            records[scope] = EnergyRecord(
                sensor=statistics.sensor,
                rails=rails,
                mean_watts=None,
                samples=statistics.samples,
                lost=statistics.lost,
                coverage=statistics.coverage,
                reason=failed or why,
            )
            continue
        resting = idle[scope].mean_watts if idle and scope in idle else None
        short = statistics.over_10_ms
        records[scope] = EnergyRecord(
            sensor=statistics.sensor,
            rails=rails,
            mean_watts=statistics.mean_watts,
            standard_error_watts=_finite(statistics.standard_error_watts),
            calibration_uncertainty_watts=statistics.calibration_uncertainty_watts,
            p99_10_ms_watts=short.p99_watts if short else None,
            maximum_10_ms_watts=short.maximum_watts if short else None,
            energy_joules=statistics.energy_joules,
            above_idle_joules=(
                (statistics.mean_watts - resting) * statistics.seconds
                if resting is not None
                else None
            ),
            samples=statistics.samples,
            lost=statistics.lost,
            coverage=statistics.coverage,
        )
    return records


def joules_per_unit(
    power: Mapping[str, EnergyRecord], seconds: float, work: float | None
) -> dict[str, Interval]:
    """By scope, and of drive and CPU together; empty without work.

    The interval combines the standard errors of the mean powers (in squares over instruments) and,
    where known, their calibration (added as it is).
    """
    if not work:
        return {}
    known = {
        scope: statistics
        for scope, statistics in power.items()
        if statistics.mean_watts is not None
    }
    intervals = {scope: _interval([record], seconds / work) for scope, record in known.items()}
    if Scope.DEVICE in known and Scope.CPU in known:
        intervals[BOTH] = _interval([known[Scope.DEVICE], known[Scope.CPU]], seconds / work)
    return intervals


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

    Several runs: the mean, with an interval by Student's t over the runs plus the calibration,
    which is the same in all. One run: its own interval.
    """
    whole = [run for run in runs if run.whole]
    intervals: dict[str, Interval] = {}

    def add(name: str, take: Callable[[CommandRun], Interval | float | None]) -> None:
        taken = [take(run) for run in whole]
        known = [
            Interval(value=figure) if isinstance(figure, float) else figure
            for figure in taken
            if figure
        ]
        if known:
            intervals[name] = known[0] if len(known) == 1 else _over_runs(known)

    add("seconds", lambda run: run.seconds)
    add("work", lambda run: run.work)
    add("work_per_second", lambda run: run.work / run.seconds if run.work else None)
    for scope in dict.fromkeys(scope for run in whole for scope in run.power):
        add(f"{scope}_watts", partial(_watts, scope))
        add(f"{scope}_joules", partial(_joules, scope))
        add(f"{scope}_joules_above_idle", partial(_above_idle, scope))
    for scope in dict.fromkeys(scope for run in whole for scope in run.joules_per_unit):
        add(f"{scope}_joules_per_unit", partial(_per_unit, scope))
    return intervals


def _watts(scope: str, run: CommandRun) -> Interval | None:
    power = run.power.get(scope)
    return _interval([power], 1.0) if power is not None and power.mean_watts is not None else None


def _joules(scope: str, run: CommandRun) -> Interval | None:
    power = run.power.get(scope)
    if power is None or power.mean_watts is None:
        return None
    return _interval([power], run.window_seconds)


def _above_idle(scope: str, run: CommandRun) -> float | None:
    power = run.power.get(scope)
    return power.above_idle_joules if power is not None else None


def _per_unit(scope: str, run: CommandRun) -> Interval | None:
    return run.joules_per_unit.get(scope)


def _interval(parts: Sequence[EnergyRecord], factor: float) -> Interval:
    value = sum(part.mean_watts or 0.0 for part in parts) * factor
    errors = [part.standard_error_watts for part in parts]
    offsets = [part.calibration_uncertainty_watts for part in parts]
    if any(error is None for error in errors):
        return Interval(value=value)
    chance = math.hypot(*(error or 0.0 for error in errors)) * _student(_BATCHES - 1) * factor
    unknown = any(offset is None for offset in offsets)
    return _around(
        value, chance, None if unknown else sum(offset or 0.0 for offset in offsets) * factor
    )


def _over_runs(parts: Sequence[Interval]) -> Interval:
    values = np.array([part.value for part in parts])
    chance = _student(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    offsets = [part.calibration for part in parts]
    unknown = any(offset is None for offset in offsets)
    calibration = None if unknown else sum(offset or 0.0 for offset in offsets) / len(offsets)
    return _around(float(values.mean()), chance, calibration, len(values))


def _around(value: float, chance: float, calibration: float | None, runs: int = 1) -> Interval:
    half = chance + (calibration or 0.0)
    return Interval(
        value=value, low=value - half, high=value + half, calibration=calibration, runs=runs
    )


def _student(degrees: int) -> float:
    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
