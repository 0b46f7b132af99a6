"""Errors of the calibrated drive: before, after, with its residual, on held-out measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.schema import COLUMNS, Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_power import regressors
from iojoule.model.evaluate.linear_law import values as law_values
from iojoule.sim.calibration.calibrate import Timing
from iojoule.sim.calibration.energy import EnergyFit, fit_energy
from iojoule.sim.calibration.observations import Point, Series
from iojoule.sim.calibration.parameters import ParameterSpace
from iojoule.sim.calibration.residual import NORMAL_90, Residual, learn, place_of
from iojoule.sim.calibration.runs import (
    ENERGY_FIELDS,
    Course,
    Outcome,
    measured_marks,
    point_rates,
    run_point,
    run_series,
    series_rates,
    simulated_marks,
)
from iojoule.sim.engines import Engine
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workers.pool import counter

SERIES_ROWS_A_MEASUREMENT = 10
"""Rows of a series that count as one independent measurement of watts."""


@dataclass(frozen=True)
class Row:
    """One comparison: a point, or a stretch of a series.

    Values are relative errors, simulated over measured less 1; NaN where not observed.
    `residual` is with the learned residual; `linear` the watts of the linear law, which is told
    the measured throughput.
    """

    host: str
    operation: str
    request_bytes: int
    queue_depth: int
    jobs: int
    held_out: bool
    throughput: tuple[float, float, float]
    latency: tuple[float, float, float]
    watts: tuple[float, float, float]
    linear_watts: float
    interval_holds: bool | None = None
    series: bool = False


@dataclass(frozen=True)
class Judged:
    """Everything that follows once the timing is known.

    Attributes:
        rows: Errors, points first.
        energy: The fitted joules; None where no watts were measured.
        throughput: Residual of log throughput over `features`.
        tails: Residuals of log p50, p99 and p99.9 over the mean.
        watts: Residual of log watts.
        groups: Hosts and kinds that the residuals tell apart.
    """

    rows: list[Row]
    energy: EnergyFit | None
    throughput: Residual
    tails: tuple[Residual, Residual, Residual]
    watts: Residual
    groups: tuple[str, ...]


def group_of(operation: str, pattern: str, host: str, engine: str | None) -> str:
    """What a residual is learned apart for."""
    return f"{operation} {pattern} {engine or 'any'} {host}"


def _group(point: Point) -> str:
    asked, chosen = point.measurement.workload, point.measurement.configuration
    engine = chosen.engine.value if chosen.engine else None
    return group_of(asked.operation.value, asked.pattern.value, point.host, engine)


def judge(
    timing: Timing,
    points: Sequence[Point],
    series: Sequence[Series],
    engine: Engine,
    *,
    pool: Pool = HERE,
    with_energy: bool = True,
    watch: Callable[[int, int], None] | None = None,
) -> Judged:
    """Simulate all points and series before and after, fit the energy, and learn the residuals.

    Args:
        timing: The calibrated timing.
        points: All, held out or not.
        series: Likewise.
        engine: Simulates.
        pool: Where points and series are simulated.
        with_energy: Whether the engine knows of joules.
        watch: Told of points done and of their number.
    """
    fields = ENERGY_FIELDS if with_energy else ()
    timed = _Timed(timing.space, timing.cube, fields, engine)
    told = pool.map(_before_and_after, points, shared=timed, done=counter(watch, len(points)))
    courses = pool.map(_Followed, series, shared=timed)
    groups = tuple(sorted({_group(each) for each in points}))
    features = np.array([place_of(each.features(), _group(each), groups) for each in points])
    features = features.reshape(len(points), 3 + len(groups))
    fitted = np.array([not each.held_out for each in points], dtype=bool)
    errors = np.array([np.log(p.iops) - t[1].log_iops for p, t in zip(points, told, strict=True)])
    throughput = learn(features[fitted], errors[fitted])
    tails = _tail_residuals(points, told, features, fitted)
    rates = np.array([t[2] for t in told]).reshape(len(points), len(fields))
    energy = _energy(timing, points, rates, errors, fitted, courses, fields)
    shift, shift_sd = throughput(features) if len(points) else (np.empty(0), np.empty(0))
    watts_residual = Residual(None, 0.02, ())
    watts = np.full((len(points), 2), np.nan)
    if energy is not None:
        watts[:, 0] = energy.watts(rates)
        watts[:, 1] = energy.watts(faster(rates, np.exp(shift)))
        measured = np.array([each.watts for each in points])
        with np.errstate(invalid="ignore"):
            rest = np.log(measured) - np.log(watts[:, 1])
        watts_residual = learn(features[fitted], rest[fitted])
        watts[:, 1] *= np.exp(watts_residual(features)[0])
    law = _linear_law(points, courses)
    rows = [
        _row(point, outcome[0], outcome[1], shift[i], shift_sd[i], watts[i], law)
        for i, (point, outcome) in enumerate(zip(points, told, strict=True))
    ]
    for each in courses:
        rows += each.rows(energy, law)
    return Judged(rows, energy, throughput, tails, watts_residual, groups)


@dataclass(frozen=True)
class _Timed:
    """The drive at the estimate: what every comparison needs of it."""

    space: ParameterSpace
    cube: Floats
    fields: Sequence[str]
    engine: Engine

    @property
    def plain(self) -> ParameterSpace:
        """The drive as it was before it was calibrated."""
        return ParameterSpace(self.space.device, (), ())


def _before_and_after(timed: _Timed, point: Point) -> tuple[Outcome, Outcome, Floats]:
    space, cube, fields, engine = timed.space, timed.cube, timed.fields, timed.engine
    rates = np.full(len(fields), np.nan)
    if len(fields) and np.isfinite(point.watts):
        rates = point_rates(space, cube, point, engine)
    before = run_point(timed.plain, np.empty(0), point, engine)
    return before, run_point(space, cube, point, engine), rates


def faster(rates: Floats, factor: Floats) -> Floats:
    """Event rates of a run that serves `factor` as many requests; the base is always there."""
    scaled = rates * factor[:, None]
    scaled[:, :1] = rates[:, :1]
    return scaled


def _tail_residuals(
    points: Sequence[Point],
    told: Sequence[tuple[Outcome, Outcome, Floats]],
    features: Floats,
    fitted: NDArray[np.bool_],
) -> tuple[Residual, Residual, Residual]:
    measured = np.array([np.array(each.tails_ns) / each.latency_ns for each in points])
    simulated = np.array([each[1].log_tails for each in told])
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.log(measured.reshape(-1, 3)) - simulated.reshape(-1, 3)
    p50, p99, p999 = (learn(features[fitted], errors[fitted, column]) for column in range(3))
    return p50, p99, p999


def _energy(
    timing: Timing,
    points: Sequence[Point],
    rates: Floats,
    errors: Floats,
    fitted: NDArray[np.bool_],
    courses: Sequence[_Followed],
    fields: Sequence[str],
) -> EnergyFit | None:
    measured = np.array([each.watts for each in points])
    used = fitted & np.isfinite(measured)
    # an event's joules are what they are at the rate that was measured, not at the simulated one
    rows = [faster(rates[used], np.exp(errors[used]))] if used.any() else []
    watts, weights = [measured[used]], [np.ones(int(used.sum()))]
    for each in courses:
        seen = ~each.series.held_out & np.isfinite(each.series.watts)
        rows.append(each.rates_at(seen))
        watts.append(each.series.watts[seen])
        weights.append(np.full(int(seen.sum()), 1 / SERIES_ROWS_A_MEASUREMENT))
    if not fields or not rows or sum(map(len, watts)) < 3:
        return None
    device, _ = timing.space.drive(
        timing.cube, points[0].host if points else courses[0].series.host
    )
    return fit_energy(
        device, fields, np.concatenate(rows), np.concatenate(watts), np.concatenate(weights)
    )


class _Followed:
    """A series beside its simulation; rows are matched by bytes written over those at the cliff.

    Before and after the cliff the residual is one factor each, learned on what was not held out.
    """

    def __init__(self, timed: _Timed, series: Series) -> None:
        space, cube, fields, engine = timed.space, timed.cube, timed.fields, timed.engine
        self.series = series
        self.before = run_series(timed.plain, np.empty(0), series, engine)
        if fields:
            self.after, self.rates = series_rates(space, cube, series, fields, engine)
        else:
            self.after = run_series(space, cube, series, engine)
            self.rates = np.empty((len(self.after.written), 0))
        self.measured = measured_marks(series)
        if np.isnan(self.measured.cliff):
            end = float(series.written[-1])
            self.measured = replace(self.measured, cliff=end, after=self.measured.before)
        self.cliff = simulated_marks(self.after, self.measured, series).cliff

    def rate_of(self, course: Course) -> Floats:
        """Bytes a second of a course at the rows."""
        return np.interp(self.series.written, course.written, course.bytes_per_second)

    def rates_at(self, seen: NDArray[np.bool_]) -> Floats:
        """Event rates at the rows that are seen."""
        columns = [
            np.interp(self.series.written, self.after.written, self.rates[:, column])
            for column in range(self.rates.shape[1])
        ]
        return np.stack(columns, axis=1)[seen]

    def rows(self, energy: EnergyFit | None, law: Floats | None) -> list[Row]:
        """Errors over stretches of rows: one for each SERIES_ROWS_A_MEASUREMENT of them."""
        series, everything = self.series, np.ones(len(self.series.written), dtype=bool)
        regime = series.written >= self.cliff
        before, after = self.rate_of(self.before), self.rate_of(self.after)
        watts_before = np.interp(series.written, self.before.written, self.before.watts)
        watts = np.full(len(series.written), np.nan)
        if energy is not None:
            watts = energy.watts(self.rates_at(everything))
        corrected = after * _regime_factor(series, regime, series.bytes_per_second / after)
        watts_corrected = watts * _regime_factor(series, regime, series.watts / watts)
        chosen = series.measurement.configuration
        linear = _law_watts(law, [], [self]) if law is not None else np.full(len(watts), np.nan)
        found = []
        for rows in np.array_split(
            np.arange(len(watts)), max(1, len(watts) // SERIES_ROWS_A_MEASUREMENT)
        ):
            seconds = series.seconds[rows]

            def error(
                simulated: Floats,
                measured: Floats,
                at: NDArray[np.intp] = rows,
                t: Floats = seconds,
            ) -> float:
                return float(t @ simulated[at] / (t @ measured[at]) - 1)

            rate = [error(each, series.bytes_per_second) for each in (before, after, corrected)]
            power = [error(each, series.watts) for each in (watts_before, watts, watts_corrected)]
            found.append(
                Row(
                    series.host,
                    Operation.WRITE.value,
                    chosen.request_bytes,
                    chosen.queue_depth,
                    chosen.jobs,
                    bool(series.held_out[rows].any()),
                    (rate[0], rate[1], rate[2]),
                    (np.nan,) * 3,
                    (power[0], power[1], power[2]),
                    error(linear, series.watts),
                    series=True,
                )
            )
        return found


def _regime_factor(series: Series, regime: NDArray[np.bool_], ratios: Floats) -> Floats:
    factor = np.ones(len(ratios))
    for side in (False, True):
        known = (regime == side) & ~series.held_out & np.isfinite(ratios)
        if known.sum() >= SERIES_ROWS_A_MEASUREMENT:
            factor[regime == side] = float(np.median(ratios[known]))
    return factor


def _row(
    point: Point,
    before: Outcome,
    after: Outcome,
    shift: float,
    shift_sd: float,
    watts: Floats,
    law: Floats | None,
) -> Row:
    chosen = point.measurement.configuration
    logs = np.array([before.log_iops, after.log_iops, after.log_iops + shift])
    rate = np.exp(logs) / point.iops - 1
    # in a closed loop mean latency = requests in flight / throughput (Little)
    latency = point.concurrency / np.exp(logs) * 1e9 / point.latency_ns - 1
    watt = np.array([before.watts, *watts]) / point.watts - 1
    linear = np.nan if law is None else float(_law_watts(law, [point], [])[0]) / point.watts - 1
    return Row(
        point.host,
        point.measurement.workload.operation.value,
        chosen.request_bytes,
        chosen.queue_depth,
        chosen.jobs,
        point.held_out,
        (float(rate[0]), float(rate[1]), float(rate[2])),
        (float(latency[0]), float(latency[1]), float(latency[2])),
        (float(watt[0]), float(watt[1]), float(watt[2])),
        linear,
        bool(abs(np.log(point.iops) - logs[2]) <= NORMAL_90 * shift_sd),
    )


def _law_x(points: Sequence[Point], courses: Sequence[_Followed]) -> Floats:
    """Regressors of the linear law at the measured throughput; collecting from the cliff on."""
    reads, writes = [], []
    sizes, collecting = [], []
    for each in points:
        write = each.measurement.workload.operation is Operation.WRITE
        reads.append(0.0 if write else each.iops)
        writes.append(each.iops if write else 0.0)
        sizes.append(float(each.measurement.configuration.request_bytes))
        collecting.append(0.0)
    for one in courses:
        size = float(one.series.measurement.configuration.request_bytes)
        rate = one.series.bytes_per_second / size
        reads += [0.0] * len(rate)
        writes += list(rate)
        sizes += [size] * len(rate)
        collecting += list((one.series.written >= one.measured.cliff).astype(float))
    read, write_, size_ = np.array(reads), np.array(writes), np.array(sizes)
    return regressors(read * size_, read, write_ * size_, write_, np.array(collecting))


def _law_watts(law: Floats, points: Sequence[Point], courses: Sequence[_Followed]) -> Floats:
    return np.asarray(law_values(_law_x(points, courses), law))


def _linear_law(points: Sequence[Point], courses: Sequence[_Followed]) -> Floats | None:
    """The linear law fitted on the same rows: what a calibrated simulator has to beat."""
    x = _law_x(points, courses)
    watts = np.concatenate(
        [[each.watts for each in points], *(each.series.watts for each in courses)]
    )
    fitted = np.concatenate(
        [[not each.held_out for each in points], *(~each.series.held_out for each in courses)]
    ).astype(bool)
    weights = np.concatenate(
        [
            np.ones(len(points)),
            *(np.full(len(c.series.watts), SERIES_ROWS_A_MEASUREMENT**-0.5) for c in courses),
        ]
    )
    used = fitted & np.isfinite(watts)
    if used.sum() < 3:
        return None
    from scipy.optimize import nnls  # here, because workers start sooner without it

    scale = np.maximum(np.abs(x[used]).max(axis=0), 1e-30)
    weight = (weights[used] / watts[used])[:, None]
    found, _ = nnls(x[used] / scale * weight, watts[used] * weight[:, 0])
    return np.asarray(found / scale)


FIELDS = ("workload", "configuration", "state", "conditions")


@dataclass(frozen=True)
class HoldOut:
    """Measurements with one of these values in a field, or with a value in a range."""

    field: str
    values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def takes(self, measurement: Measurement) -> bool:
        """Whether it leaves this measurement out."""
        value = getattr(getattr(measurement, COLUMNS[self.field]), self.field)
        if value is None:
            return False
        if self.low is not None or self.high is not None:
            low = float("-inf") if self.low is None else self.low
            high = float("inf") if self.high is None else self.high
            return isinstance(value, int | float) and low <= value <= high
        return any(_same(value, said) for said in self.values)


def _same(value: object, said: str) -> bool:
    if isinstance(value, bool):
        return str(value).lower() == said.lower()
    try:
        return float(str(value)) == float(said)
    except ValueError:
        return str(value) == said


def parse_hold_out(text: str) -> HoldOut:
    """What `FIELD=VALUE,VALUE` or `FIELD=LOW..HIGH` says; either end of a range may lack.

    Raises:
        InputError: It says nothing of the kind.
    """
    field, equals, said = text.partition("=")
    field, said = field.strip(), said.strip()
    if not equals or not said:
        raise InputError(
            f"--hold-out {text}: must be FIELD=VALUE,... or FIELD=LOW..HIGH, such as "
            "request_bytes=8192,32768"
        )
    if COLUMNS.get(field) not in FIELDS:
        known = [name for name, section in COLUMNS.items() if section in FIELDS]
        raise InputError(f"--hold-out {field}: no such field{close_names(field, known)}")
    low, dots, high = said.partition("..")
    if not dots:
        return HoldOut(field, tuple(part.strip() for part in said.split(",")))
    try:
        return HoldOut(
            field, (), float(low) if low.strip() else None, float(high) if high.strip() else None
        )
    except ValueError:
        raise InputError(f"--hold-out {text}: a range is LOW..HIGH, two numbers") from None


def held_out(measurements: Sequence[Measurement], which: Sequence[HoldOut]) -> list[bool]:
    """Whether each measurement is left out.

    Raises:
        InputError: One of them leaves nothing out, or nothing is left.
    """
    for each in which:
        if not any(each.takes(measurement) for measurement in measurements):
            raise InputError(f"--hold-out {each.field}: no measurement that is used has that value")
    out = [any(each.takes(measurement) for each in which) for measurement in measurements]
    if out and all(out):
        raise InputError("--hold-out leaves out every measurement; leave some in")
    return out
