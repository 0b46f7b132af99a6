"""Public drives fitted in part: half of the depths, jobs and sizes kept, the others predicted.

A set is what one session measured of one drive on one host path: an operation, a pattern, a grid of
depths, jobs and sizes. Of every axis every other value is kept, and both ends; a profile is fitted
to those rows alone, as a user's would be, and predicts the other rows. Beside it stands what an
engineer does without a model: monotone interpolation in log-log, axis after axis, through the same
rows, with the conformal interval of its own leave-one-out errors (Vovk et al., Algorithmic Learning
in a Random World, 2005). Intervals are judged by the interval score of log values (Gneiting and
Raftery, J. American Statistical Association 102, 2007, section 6.2): lower is better.

The left-out rows of a set tell how good intervals for the same host are. Those for another host are
judged by left-out sessions of a drive, those for another drive by left-out drives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import AskedConditions, Measurement
from iojoule.datasets.vocabulary import IntervalFor
from iojoule.model.evaluate.bands import Band, Floats
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.validity import under
from iojoule.model.fit.backtest import QUANTITIES, interpolate
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.expectation import Expectation
from iojoule.model.fit.report import Cells, Table
from iojoule.model.fit.rows import Rows, average_repeats, rows_of
from iojoule.model.fit.surfaces import SurfaceMemory
from iojoule.model.fit.widths import CONFIDENCE
from iojoule.model.prior.facts import DriveFacts
from iojoule.model.recipe import generic_recipe

PUBLIC_FILES = (
    "980pro_fio_randread",
    "980pro_fio_schedulers",
    "low_latency_ssd_engines",
    "other_nvme_fio",
    "sata_ssd_fio_grids",
)
"""Files of grids at full speed. The write series and the mixes beside them have one depth."""

SATA = ("kingston-dc500m", "samsung-860-pro")
"""Drives behind SATA; the others are behind PCIe."""

AXES = ("queue_depth", "jobs", "request_bytes")

FEWEST_KEPT = 3
"""Fewer rows of a line than this tell no interpolation how far it errs."""


@dataclass(frozen=True)
class PublicSet:
    """One grid of measurements.

    Attributes:
        key: Drive, session, engine, completion, scheduler, operation and pattern.
        measurements: One a row of `rows`.
        rows: Repeats averaged.
        fitted: Which rows the fit sees.
    """

    key: tuple[str, ...]
    measurements: list[Measurement]
    rows: Rows
    fitted: NDArray[np.bool_]

    @property
    def name(self) -> str:
        """All that tells it apart, in words."""
        return " ".join(filter(None, self.key))

    @property
    def drive(self) -> str:
        """The drive."""
        return self.key[0]

    @property
    def path(self) -> tuple[str, ...]:
        """Engine, completion and scheduler."""
        return self.key[2:5]

    @property
    def workload(self) -> tuple[str, ...]:
        """Operation and pattern."""
        return self.key[5:]


@dataclass(frozen=True)
class Verdict:
    """How one method did on one quantity of a set.

    Attributes:
        errors: Relative errors.
        covered: Whether each lies in its 90 % interval.
        widths: High over low.
        scores: Interval scores, log units.
    """

    errors: Floats
    covered: Floats
    widths: Floats
    scores: Floats

    @classmethod
    def of(
        cls, truth: Floats, value: Floats, low: Floats, high: Floats, usable: NDArray[np.bool_]
    ) -> Verdict:
        """Judge the usable ones of n predictions, all of shape (n,)."""
        observed, value, low, high = (each[usable] for each in (truth, value, low, high))
        miss = np.maximum(np.log(low / observed), np.log(observed / high)).clip(min=0.0)
        width = np.log(high / low)
        return cls(
            np.abs(value / observed - 1.0),
            (miss == 0.0).astype(float),
            high / low,
            width + 2.0 / (1.0 - CONFIDENCE) * miss,
        )


@dataclass(frozen=True)
class SetOutcome:
    """One quantity of one set: the profile beside interpolation, on the same rows."""

    name: str
    quantity: str
    model: Verdict
    interpolation: Verdict


def public_sets(folder: Path, *, in_part: bool = True) -> Iterator[PublicSet]:
    """Every public grid, or those that can be fitted in part.

    Raises:
        InputError: A file is not what its map expects.
    """
    for file in PUBLIC_FILES:
        groups: dict[tuple[str, ...], list[Measurement]] = {}
        for measurement in import_csv(folder / f"{file}.csv", public_map(file)).measurements():
            chosen, cores = measurement.configuration, measurement.conditions.cpu_cores_available
            if cores is not None and chosen.jobs > cores:
                continue  # tells of the host's scheduling, not of the drive
            key = (
                measurement.conditions.device_model or "unknown",
                measurement.conditions.session_id or "",
                *(str(getattr(chosen, name) or "") for name in ("engine", "completion")),
                str(chosen.scheduler or ""),
                measurement.workload.operation.value,
                measurement.workload.pattern.value,
            )
            groups.setdefault(key, []).append(measurement)
        for key, measurements in sorted(groups.items()):
            rows = average_repeats(rows_of(measurements, host_cores=_cores()))
            in_part_rows = kept_in_part(rows)
            if not in_part or (not in_part_rows.all() and in_part_rows.sum() >= FEWEST_KEPT):
                yield PublicSet(key, measurements, rows, in_part_rows)


def _cores() -> int:
    return generic_recipe("public", "public").host.cpu_cores


def kept_in_part(rows: Rows) -> NDArray[np.bool_]:
    """Every other value of each axis, and the last one."""
    chosen = np.ones(len(rows), dtype=bool)
    for axis in AXES:
        values = getattr(rows, axis)
        distinct = np.unique(values)
        chosen &= np.isin(values, [*distinct[::2], distinct[-1]])
    return chosen


def outcomes(data_set: PublicSet) -> list[SetOutcome]:
    """Fit a set in part and judge every quantity that can be interpolated."""
    training, left = data_set.rows.take(data_set.fitted), data_set.rows.take(~data_set.fitted)
    seen = {_place(training, index) for index in range(len(training))}
    profile = _fitted([m for m in data_set.measurements if _measured_place(m) in seen])
    prediction = _predicted(profile, data_set, left, IntervalFor.SAME_HOST)
    results = []
    for quantity, (field, attribute) in _FIELDS.items():
        known, truth = getattr(training, attribute), getattr(left, attribute)
        if not np.isfinite(known).all():
            continue
        values, half = interpolated(training, known, left)
        usable = np.isfinite(truth) & np.isfinite(values)
        if not usable.any() or not np.isfinite(half):
            continue
        factor = np.exp(half)
        results.append(
            SetOutcome(
                data_set.name,
                quantity,
                _judged(prediction[field], truth, usable),
                Verdict.of(truth, values, values / factor, values * factor, usable),
            )
        )
    return results


def _judged(band: Band, truth: Floats, usable: NDArray[np.bool_]) -> Verdict:
    return Verdict.of(truth, band.value, band.low, band.high, usable)


def _predicted(
    profile: DeviceProfile, data_set: PublicSet, rows: Rows, about: IntervalFor
) -> Prediction:
    """What a profile says of rows of a set, with intervals about the same or another host."""
    first = data_set.measurements[0].workload
    columns: dict[str, object] = {
        name: getattr(rows, name)
        for name in (*AXES, "engine", "completion", "submission_polling", "scheduler")
    }
    columns["cpu_cores_available"] = rows.cores
    columns["operation"] = [first.operation.value] * len(rows)
    columns["pattern"] = [first.pattern.value] * len(rows)
    conditions = AskedConditions(interval_for=about)
    return Predictor(under(profile, conditions)).predict_columns(columns, len(rows))[0]


def _measured_place(measurement: Measurement) -> tuple[int, int, int]:
    chosen = measurement.configuration
    return chosen.queue_depth, chosen.jobs, chosen.request_bytes


def left_out(sets: Sequence[PublicSet], about: IntervalFor) -> list[SetOutcome]:
    """What each set's profile says of the rows of other sets, beside its own at the same place.

    Args:
        sets: Public sets.
        about: ANOTHER_HOST: other sessions of the drive, at configurations that both measured;
            ANOTHER_DRIVE: other drives of its interface, on whatever host path, likewise.

    Returns:
        One outcome a pair and quantity: with intervals as asked, and with those for the same host.
    """
    results = []
    for own in sets:
        seen = {_place(own.rows, index) for index in range(len(own.rows))}
        pairs = []
        for other in sets:
            same_drive = own.drive == other.drive
            if own is other or own.workload != other.workload:
                continue
            if same_drive == (about is IntervalFor.ANOTHER_DRIVE):
                continue
            if (own.drive in SATA) != (other.drive in SATA):
                continue
            if about is IntervalFor.ANOTHER_HOST and own.path != other.path:
                continue
            both = np.array([_place(other.rows, i) in seen for i in range(len(other.rows))])
            if both.any():
                pairs.append((other, other.rows.take(both)))
        if not pairs:
            continue
        profile = _fitted(own.measurements)
        for other, rows in pairs:
            predictions = [
                _predicted(profile, own, rows, w) for w in (about, IntervalFor.SAME_HOST)
            ]
            for quantity, (field, attribute) in _FIELDS.items():
                truth = getattr(rows, attribute)
                usable = np.isfinite(truth)
                if usable.any():
                    verdicts = [
                        _judged(prediction[field], truth, usable) for prediction in predictions
                    ]
                    results.append(SetOutcome(f"{own.name} -> {other.name}", quantity, *verdicts))
    return results


def tables(folder: Path) -> list[Table]:
    """The study as tables: every set, all together, and the coverage of each kind of interval.

    Raises:
        InputError: A file is missing or is not what its map expects.
    """
    with threadpool_limits(1):
        sets = list(public_sets(folder))
        inside = [outcome for result in sets for outcome in outcomes(result)]
        whole = list(public_sets(folder, in_part=False))
        sessions = left_out(whole, IntervalFor.ANOTHER_HOST)
        drives = left_out(whole, IntervalFor.ANOTHER_DRIVE)
    verdict = ("median %", "p90 %", "covers %", "width", "score")
    columns = [f"{who} {name}" for who in ("model", "log-log") for name in verdict]
    rows: list[Cells] = [
        [
            result.name,
            result.quantity,
            len(result.model.errors),
            *_cells(result.model),
            *_cells(result.interpolation),
        ]
        for result in inside
    ]
    for quantity in (*QUANTITIES, None):
        model, base = pooled(inside, quantity)
        rows.append(
            ["all sets", quantity or "all", len(model.errors), *_cells(model), *_cells(base)]
        )
    better = sum(
        result.model.scores.mean() <= result.interpolation.scores.mean() for result in inside
    )
    kinds: list[Cells] = []
    for about, judged, by in (
        (IntervalFor.SAME_HOST, inside, "configurations of a session left out"),
        (IntervalFor.ANOTHER_HOST, sessions, "sessions left out"),
        (IntervalFor.ANOTHER_DRIVE, drives, "drives left out, told by one other drive"),
    ):
        for quantity in QUANTITIES:
            if any(result.quantity == quantity for result in judged):
                model, same = pooled(judged, quantity)
                cells: Cells = _cells(same)[2:4] if about is not IntervalFor.SAME_HOST else []
                kinds.append(
                    [about.value, by, quantity, len(model.errors), *_cells(model)[:4], *cells]
                )
    return [
        Table(
            title="Public drives fitted in part: every other depth, jobs and size kept",
            columns=["set", "quantity", "n", *columns],
            rows=rows,
            note=f"90 % intervals for the same host, beside log-log PCHIP with conformal intervals "
            f"of its own. The model's interval score is no worse in {better} of {len(inside)}.",
        ),
        Table(
            title="Coverage of 90 % intervals by what they are about",
            columns=[
                *("for", "judged by", "quantity", "n", "median %", "p90 %", "covers %", "width"),
                *("same-host covers %", "same-host width"),
            ],
            rows=[[*row, *[None] * (10 - len(row))] for row in kinds],
            note="Left-out drives by the prior of all others: `iojoule validate left-out`.",
        ),
    ]


def _cells(verdict: Verdict) -> Cells:
    return [
        round(100.0 * float(np.median(verdict.errors)), 2),
        round(100.0 * float(np.quantile(verdict.errors, 0.9)), 1),
        round(100.0 * float(verdict.covered.mean()), 1),
        round(float(np.median(verdict.widths)), 3),
        round(float(verdict.scores.mean()), 3),
    ]


def _fitted(measurements: list[Measurement]) -> DeviceProfile:
    """A profile of a drive of which nothing else is known, as `iojoule fit` makes it."""
    recipe = generic_recipe("in-part", "in part")
    facts = DriveFacts("in-part", "in part", sata=None, datacentre=None, xpoint=None)
    expected = Expectation(facts, recipe, measurements)
    profile = fit_profile(
        recipe, measurements, [], memory=SurfaceMemory(), priors_of=expected.priors
    )
    return expected.completed(profile)


_FIELDS = {
    "throughput": ("iops", "iops"),
    "mean latency": ("latency_mean_ns", "mean_ns"),
    "p99": ("latency_p99_ns", "p99"),
}


def _place(rows: Rows, index: int) -> tuple[int, int, int]:
    return (int(rows.queue_depth[index]), int(rows.jobs[index]), int(rows.request_bytes[index]))


def interpolated(training: Rows, known: Floats, left: Rows) -> tuple[Floats, float]:
    """Log-log PCHIP through the kept rows, and half of its 90 % interval, log units.

    Args:
        training: n rows.
        known: Their values, shape (n,).
        left: m rows.

    Returns:
        Shape (m,), NaN where a line is missing, and the conformal half width: of the errors of
        every kept row between others that is interpolated without it, the quantile that covers
        90 % of another, or the largest where they are too few.
    """
    table = {_place(training, index): float(known[index]) for index in range(len(training))}
    values = np.array([_at(table, _place(left, index)) for index in range(len(left))])
    errors = []
    for place, value in table.items():
        rest = {other: v for other, v in table.items() if other != place}
        along = [
            _along(rest, place, axis) for axis in range(len(AXES)) if _inside(rest, place, axis)
        ]
        errors += [abs(np.log(s / value)) for s in along if np.isfinite(s)]
    if not errors:
        return values, np.nan
    rank = int(np.ceil(CONFIDENCE * (len(errors) + 1)))
    return values, float(np.sort(errors)[min(rank, len(errors)) - 1])


def _at(table: dict[tuple[int, int, int], float], place: tuple[int, int, int]) -> float:
    """Interpolate axis after axis: where a coordinate was left out, between the kept ones of it."""
    if place in table:
        return table[place]
    full = dict(table)
    kept_values = [sorted({position[axis] for position in table}) for axis in range(3)]
    for axis in range(3):
        if place[axis] in kept_values[axis]:
            continue
        others = [
            kept_values[other] if other > axis else sorted({place[other]} | set(kept_values[other]))
            for other in range(3)
        ]
        for depth, jobs, size in product(
            *(others[o] if o != axis else [place[axis]] for o in range(3))
        ):
            line = depth, jobs, size
            value = _along(full, line, axis)
            if np.isfinite(value):
                full[line] = value
    return full.get(place, np.nan)


def _line(
    table: dict[tuple[int, int, int], float], place: tuple[int, ...], axis: int
) -> tuple[Floats, Floats]:
    x = [
        (position[axis], value)
        for position, value in table.items()
        if all(position[o] == place[o] for o in range(3) if o != axis)
    ]
    positions = np.array([a for a, _ in x], dtype=float)
    return positions, np.array([b for _, b in x])


def _along(table: dict[tuple[int, int, int], float], place: tuple[int, ...], axis: int) -> float:
    x, y = _line(table, place, axis)
    return interpolate(x, y, float(place[axis])) if len(x) > 1 else np.nan


def _inside(table: dict[tuple[int, int, int], float], place: tuple[int, ...], axis: int) -> bool:
    x, _ = _line(table, place, axis)
    return len(x) > 1 and bool(x.min() < place[axis] < x.max())


def pooled(
    set_outcomes: Sequence[SetOutcome], quantity: str | None = None
) -> tuple[Verdict, Verdict]:
    """All rows of all sets together."""
    some = [outcome for outcome in set_outcomes if quantity in (None, outcome.quantity)]

    def together(verdicts: list[Verdict]) -> Verdict:
        return Verdict(
            *(
                np.concatenate([getattr(v, name) for v in verdicts])
                for name in ("errors", "covered", "widths", "scores")
            )
        )

    return together([o.model for o in some]), together([o.interpolation for o in some])
