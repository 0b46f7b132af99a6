"""Interval widths within a session, from rows that were left out.

The score of a row is its log error over the local standard deviation. Inside, every row is left out
and told by its neighbours in its session; outside, every whole depth and size is left out in turn,
and its rows at the ends are told by the rest. Of `TELLING_SCORES` scores and more, the quantile
counts that covers 90 % of another (conformal); fewer move the scale that the public drives showed
(a scaled inverse chi-squared prior: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6).

How far drives of one model, and sessions of one drive, differ where several ran the same.

Effects of configuration and drive on log(requests in flight / IOPS) are additive; the drives' are
shrunk towards what is assumed without data, a scaled inverse chi-squared prior worth
`PRIOR_DRIVES` drives (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6):

    sd^2 = (n0 s0^2 + sum of squared drive effects) / (n0 + drives - 1).

With one drive that is the prior itself, never zero. A mixed model needs about ten drives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import IntervalWidth, Parameter
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import Floats
from iojoule.model.fit.performance import FittedSurface, refit
from iojoule.model.fit.rows import PERCENTILES, PUBLISHED, Rows, stands_apart
from iojoule.model.prior.document import load_assumptions
from iojoule.model.recipe import Figure

CONFIDENCE = 0.9
FLOOR_SD = {"latency": 0.01, "p50": 0.02, "p99": 0.08, "p999": 0.1}
"""Added to the local sd, log units: what a row scatters within a session."""

TELLING_SCORES = 30
"""So many scores tell their 90 % quantile; of fewer it is the second or third largest, and strays
(that of n scores covers 90 % give or take 0.3 / sqrt(n), a beta distribution)."""

PRIOR_SCORES = 5.0
"""Scores that the prior of their scale, 1, counts for."""

QUANTILE = 2.2
"""Scales on each side of a 90 % interval. With it, the prior and `FLOOR_SD`, 90 % of the left-out
throughputs and mean latencies of the public sets are covered and 89 % of the percentiles
(`model.fit.in_part`); errors have longer tails than normal ones, whose quantile is 1.645."""

FEW_ROWS = 30
"""A workload of fewer rows is judged with the widths of the drive's other workloads as well."""

FEWEST_SCORES = 10
"""Scores that a finite 90 % quantile needs, with room for rounding."""

Scores = dict[tuple[str, str], list[float]]
"""Errors over local sd by quantity and region."""

MANY_ROWS = 800
"""With more rows than this a few depths and sizes tell the widths: every fold has scores enough."""

FOLDS_OF_MANY = 5
"""Depths and sizes, the first and the last among them, that are left out of many rows."""

SD_PER_OCTAVE = {"latency": 0.05, "p50": 0.05, "p99": 0.2, "p999": 0.2}
"""How fast the sd grows outside the hull, log units an octave; the factor scales it. Percentiles
grow so fast that the local sd, which says little of where they go wrong, hardly counts there."""


@dataclass(frozen=True)
class Fold:
    """One left-out depth or size."""

    axis: str
    value: float
    train: NDArray[np.bool_]


def folds(rows: Rows, axes: tuple[str, ...] = ("queue_depth", "request_bytes")) -> Iterator[Fold]:
    """Yield every whole depth and size that can be left out with two others remaining."""
    for axis in axes:
        values = getattr(rows, axis)
        distinct = np.unique(values)
        if len(distinct) < 3:
            continue
        if len(rows) > MANY_ROWS:
            chosen = np.unique(np.linspace(0, len(distinct) - 1, FOLDS_OF_MANY).astype(int))
            distinct = distinct[chosen] if len(distinct) <= 16 else distinct
        if len(distinct) > 16:  # a fine sweep: leave out every octave's worth at once
            octaves = np.round(np.log2(values))
            present = np.unique(octaves)
            if len(rows) > MANY_ROWS:
                present = present[
                    np.unique(np.linspace(0, len(present) - 1, FOLDS_OF_MANY).astype(int))
                ]
            for octave in present:
                yield Fold(axis, float(2.0**octave), octaves != octave)
            continue
        for value in distinct:
            yield Fold(axis, float(value), values != value)


def outside(rows: Rows, fold: Fold) -> tuple[NDArray[np.bool_], Floats]:
    """Whether each left-out row lies outside its own series, and by how many octaves.

    A series is the rows that share everything but the left-out axis.
    """
    train, test = rows.take(fold.train), rows.take(~fold.train)
    far = np.zeros(len(test))
    for index in range(len(test)):
        x = getattr(train, fold.axis)[same_series(train, test, index, fold.axis)]
        at = getattr(test, fold.axis)[index]
        if len(x) == 0:
            far[index] = np.nan
        else:
            far[index] = max(np.log2(at / x.max()), np.log2(x.min() / at), 0.0)
    return far > 0, far


def same_series(train: Rows, test: Rows, index: int, axis: str) -> NDArray[np.bool_]:
    """Which training rows share everything but `axis` with one test row."""
    same: NDArray[np.bool_] = train.session == test.session[index]
    for name in ("queue_depth", "request_bytes", "jobs", "engine", "completion", "scheduler"):
        if name != axis:
            same = same & (getattr(train, name) == getattr(test, name)[index])
    polling: NDArray[np.bool_] = train.submission_polling == test.submission_polling[index]
    return same & polling


def held_out(rows: Rows, fitted: FittedSurface) -> list[tuple[Fold, FittedSurface]]:
    """Every fold with the surface as it is fitted without its rows."""
    return [(fold, refit(fitted, rows.take(fold.train))) for fold in folds(rows)]


def few(rows: Rows) -> bool:
    """Whether a surface's rows are too few to tell its widths alone."""
    return len(rows) < FEW_ROWS


def left_out_scores(
    rows: Rows, fitted: FittedSurface, without: Iterable[tuple[Fold, FittedSurface]]
) -> Scores:
    """Scores of the rows left out.

    Args:
        rows: What the surface was fitted on.
        fitted: The surface; its grids say what each row's neighbours tell of it.
        without: What `held_out` says of them.
    """
    scores: Scores = {}
    for grid in fitted.grids.values():
        for name, (errors, sd) in grid.left_out.items():
            scores.setdefault((name, "inside"), []).extend(errors / np.hypot(sd, FLOOR_SD[name]))
    for fold, model in without:
        test = rows.take(~fold.train)
        predicted = model.evaluate(test)
        away, octaves = outside(rows, fold)
        # a profile answers for the reference: sessions that stand apart say nothing of it
        away &= np.array([not stands_apart(str(name)) for name in test.session])
        for name in ("latency", *PERCENTILES):
            if name not in predicted:
                continue
            observed = test.latency_ns if name == "latency" else test.percentile(name)
            error = np.abs(np.log(observed / predicted[name]))
            sd = np.hypot(predicted[f"{name}_sd"], FLOOR_SD[name])
            sd = sd + SD_PER_OCTAVE[name] * np.nan_to_num(octaves)
            usable = away & np.isfinite(error)
            scores.setdefault((name, "outside"), []).extend((error / sd)[usable])
    return scores


def interval_widths(scores: Scores, names: Iterable[str]) -> list[IntervalWidth]:
    """Widths by quantity and region."""
    return [
        IntervalWidth(
            quantity=name,  # type: ignore[arg-type]
            region=region,
            factor=float(f"{width_factor(np.array(values)):.7g}"),
            floor_sd=FLOOR_SD[name],
            sd_per_octave=0.0 if region == "inside" else SD_PER_OCTAVE[name],
            scores=len(values),
        )
        for name in names
        for region in ("inside", "outside")
        for values in [scores.get((name, region), [])]
    ]


def width_factor(scores: Floats) -> float:
    """Local standard deviations on each side of a 90 % interval, from scores of shape (n,)."""
    if len(scores) >= TELLING_SCORES:
        return conformal_factor(scores)
    total = PRIOR_SCORES + float((scores**2).sum())
    return QUANTILE * float(np.sqrt(total / (PRIOR_SCORES + len(scores))))


def conformal_factor(scores: Floats, confidence: float = CONFIDENCE) -> float:
    """The factor that covers `confidence` of exchangeable scores (n of them, non-negative).

    Of n + 1 exchangeable scores as many may lie beyond it as the confidence leaves room for (split
    conformal prediction: Papadopoulos, Proedrou, Vovk and Gammerman, Inductive Confidence Machines
    for Regression, ECML 2002); infinite where n scores are too few to tell.
    """
    beyond = int((1.0 - confidence) * (len(scores) + 1))
    return float(np.sort(scores)[-beyond]) if beyond else np.inf


PRIOR_DRIVES = 4.0
"""Drives that the assumed spread counts for: two drives alone say little of all others."""

PRIOR_SESSIONS = 2.0
"""Sessions that those of other drives count for."""

ROUNDS = 50
"""Alternating means of configurations and drives; balanced data need one."""


def drive_effects(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Log factors of latency by drive, of configurations that at least two drives ran."""
    cells: dict[tuple[str, str], list[float]] = {}
    for measurement in measurements:
        drive, iops = measurement.conditions.device_serial_hash, measurement.observations.iops
        if (
            drive is None
            or not iops
            or measurement.state.host_bytes_written_since_purge is not None
        ):
            continue
        key = measurement.workload.model_dump_json() + measurement.configuration.model_dump_json()
        cells.setdefault((key, drive), []).append(float(np.log(measurement.concurrency() / iops)))
    drives_of: dict[str, set[str]] = {}
    for key, drive in cells:
        drives_of.setdefault(key, set()).add(drive)
    shared = {cell: np.mean(v) for cell, v in cells.items() if len(drives_of[cell[0]]) > 1}
    drives = sorted({drive for _, drive in shared})
    keys = sorted({key for key, _ in shared})
    if len(drives) < 2:
        return {}
    value = np.array(list(shared.values()))
    key_place = {key: index for index, key in enumerate(keys)}
    key_at = np.array([key_place[key] for key, _ in shared])
    drive_at = np.array([drives.index(drive) for _, drive in shared])
    effect = np.zeros(len(drives))
    for _ in range(ROUNDS):
        level = np.bincount(key_at, value - effect[drive_at]) / np.bincount(key_at)
        effect = np.bincount(drive_at, value - level[key_at]) / np.bincount(drive_at)
        effect -= effect.mean()
    return dict(zip(drives, effect.tolist(), strict=True))


def between_sessions(measurements: Sequence[Measurement]) -> Parameter | None:
    """Log sd of another session's times around the profile's answers; None of one session alone.

    The squares of each session's distances from the mean of all, at the configurations that several
    of one drive and host ran, average to one variance a session; the sessions then count like
    drives above, from the prior of other drives' sessions on. Another session lies around the mean
    of k others with that variance times 1 + 1 / k. Unsteady sessions count: days are so.
    """
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    for measurement in measurements:
        session = measurement.conditions.session
        iops = measurement.observations.iops
        if session.startswith(PUBLISHED) or not iops or not measurement.at_full_speed:
            continue
        if measurement.state.host_bytes_written_since_purge is not None:
            continue
        where = f"{measurement.conditions.device_serial_hash} {measurement.conditions.host_id}"
        key = measurement.workload.model_dump_json() + measurement.configuration.model_dump_json()
        times = cells.setdefault((where, key), {}).setdefault(session, [])
        times.append(float(np.log(measurement.concurrency() / iops)))
    squares, freedom = 0.0, 0
    sessions: set[str] = set()
    for runs in cells.values():
        if len(runs) > 1:
            levels = np.array([np.mean(times) for times in runs.values()])
            squares += float(((levels - levels.mean()) ** 2).sum())
            freedom += len(runs) - 1
            sessions |= set(runs)
    if len(sessions) < 2:
        return None
    prior = load_assumptions().conditions["session"].sd
    counted = PRIOR_SESSIONS + len(sessions) - 1
    total = PRIOR_SESSIONS * prior**2 + (len(sessions) - 1) * squares / freedom
    sd = float(np.sqrt(total / counted * (1.0 + 1.0 / len(sessions))))
    return Parameter(
        name="between_sessions_relative_sd",
        value=float(f"{sd:.7g}"),
        sd=float(f"{sd / np.sqrt(2.0 * counted):.7g}"),
        unit="1",
        evidence=Evidence.MEASURED,
        source=f"{len(sessions)} sessions on the same configurations, with those of other drives",
    )


def between_drives(measurements: Sequence[Measurement], assumed: Figure) -> Figure:
    """Relative sd between drives: the assumption, moved by the drives that were measured."""
    effects = drive_effects(measurements)
    if not effects:
        return assumed
    total = PRIOR_DRIVES * assumed.value**2 + sum(value**2 for value in effects.values())
    sd = float(np.sqrt(total / (PRIOR_DRIVES + len(effects) - 1)))
    freedom = PRIOR_DRIVES + len(effects) - 1
    return assumed.model_copy(
        update={
            "value": sd,
            "sd": sd / float(np.sqrt(2.0 * freedom)),
            "source": f"{len(effects)} drives on the same configurations, with {assumed.source}",
            "evidence": Evidence.MEASURED,
        }
    )
