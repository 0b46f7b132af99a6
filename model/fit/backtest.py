"""Leaving whole depths and sizes out, and predicting them: model beside baselines.

What a storage engineer would do without a model: the baselines to beat.

Both see one series at a time: rows that share everything but the left-out axis.

What a profile says of its own errors: whole depths and sizes left out, and fitted points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import nnls
from scipy.stats import binomtest

from iojoule.datasets.profile import (
    Assessment,
    DeviceProfile,
    HeldOut,
    PerformancePoints,
    PowerPoints,
)
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.export import rounded
from iojoule.model.fit.performance import FittedSurface, Settings, fit_surface
from iojoule.model.fit.power import PowerRows
from iojoule.model.fit.rows import Rows, stands_apart
from iojoule.model.fit.widths import (
    CONFIDENCE,
    FEWEST_SCORES,
    FLOOR_SD,
    SD_PER_OCTAVE,
    Fold,
    conformal_factor,
    few,
    folds,
    outside,
    same_series,
)
from iojoule.model.recipe import SurfaceRecipe


def interpolate(x: Floats, y: Floats, at: float) -> float:
    """Monotone interpolation in log-log (PCHIP); beyond the data along the last two points.

    Args:
        x: At least two distinct positions, positive.
        y: Positive values.
        at: Where to answer.
    """
    order = np.argsort(x)
    log_x, log_y, log_at = np.log(x[order]), np.log(y[order]), np.log(at)
    if log_x[0] <= log_at <= log_x[-1]:
        return float(np.exp(PchipInterpolator(log_x, log_y)(log_at)))
    first, second = (0, 1) if log_at < log_x[0] else (-2, -1)
    slope = (log_y[second] - log_y[first]) / (log_x[second] - log_x[first])
    return float(np.exp(log_y[first] + slope * (log_at - log_x[first])))


def hyperbola(x: Floats, y: Floats, at: float, *, rising: bool) -> float:
    """Plain hyperbola y = Y x / (x + h) for a rate, the straight line a + b x for a time.

    Both are one law (a rate is x over its time), fitted by non-negative least squares on
    relative errors of the time.
    """
    time = x / y if rising else y
    design = np.stack([np.ones_like(x), x], axis=1) / time[:, None]
    (a, b), _ = nnls(design, np.ones_like(x))
    latency = max(a + b * at, 1e-12)
    return float(at / latency if rising else latency)


FINE = 8
"""A series with this many depths or sizes is finely sampled: neighbours lie an octave apart, and
interpolation is as good as fio's own histogram bins (1 to 2 %)."""

QUANTITIES = ("throughput", "mean latency", "p99")


@dataclass(frozen=True)
class Outcome:
    """One left-out row and quantity: what was observed and what each method said.

    Attributes:
        axis: queue_depth or request_bytes.
        fold: The value that was left out.
        region: inside the row's own series; beyond it, one step after its last depth or size;
            or below it, one step before its first.
        series: The row's own series; rows of one are not independent.
        sessions: steady or apart; the second are labelled, and no profile answers for them.
        grid: coarse or fine, by how many values of the axis the series has (`FINE`).
        quantity: One of QUANTITIES.
        observed: Operations a second, or ns; likewise the three predictions.
        model: The model's prediction.
        interpolation: Monotone log-log interpolation; log-log extrapolation outside.
        hyperbola: Plain hyperbola.
        sd: The model's local sd, log units, grown outside.
    """

    axis: str
    fold: float
    region: str
    series: str
    sessions: str
    grid: str
    quantity: str
    observed: float
    model: float
    interpolation: float
    hyperbola: float
    sd: float

    def error(self, method: str) -> float:
        """Relative error of model, interpolation or hyperbola."""
        return float(abs(getattr(self, method) / self.observed - 1.0))

    def log_error(self, method: str) -> float:
        """Absolute error in log units."""
        return float(abs(np.log(getattr(self, method) / self.observed)))


def leave_out(rows: Rows, settings: Settings) -> list[Outcome]:
    """Leave every whole depth and size out in turn and predict it from the rest.

    Rows whose series has fewer than two rows left are skipped: no baseline can answer there.
    """
    outcomes: list[Outcome] = []
    for fold in folds(rows):
        train = rows.take(fold.train)
        outcomes += judge(rows, fold, fit_surface(train, settings))
    return outcomes


def judge(rows: Rows, fold: Fold, fitted: FittedSurface) -> list[Outcome]:
    """Compare predictions of the left-out rows with what was observed."""
    train, test = rows.take(fold.train), rows.take(~fold.train)
    predicted = fitted.evaluate(test)
    _, octaves = outside(rows, fold)
    outcomes = []
    for index in range(len(test)):
        series = train.take(same_series(train, test, index, fold.axis))
        x = getattr(series, fold.axis)
        if len(np.unique(x)) < 2:
            continue
        at = float(getattr(test, fold.axis)[index])
        for quantity in QUANTITIES:
            seen, known, model, sd = _quantity(quantity, test, series, predicted, index)
            usable = np.isfinite(known)
            if not np.isfinite(seen) or usable.sum() < 2:
                continue
            outcomes.append(
                Outcome(
                    fold.axis,
                    fold.value,
                    _region(x, at),
                    _series(test, index, fold.axis),
                    "apart" if stands_apart(str(test.session[index])) else "steady",
                    "fine" if len(np.unique(x)) + 1 >= FINE else "coarse",
                    quantity,
                    seen,
                    model,
                    interpolate(x[usable], known[usable], at),
                    hyperbola(x[usable], known[usable], at, rising=quantity == "throughput"),
                    _grown(quantity, sd, float(octaves[index])),
                )
            )
    return outcomes


def _region(x: Floats, at: float) -> str:
    """Where a left-out position lies in what is left of its series."""
    if at > x.max():
        return "beyond"
    return "below" if at < x.min() else "inside"


def _series(test: Rows, index: int, axis: str) -> str:
    """Names what a row shares with the others of its series."""
    names = ("session", "request_bytes", "queue_depth", "jobs", "engine", "completion", "scheduler")
    return " ".join(str(getattr(test, name)[index]) for name in names if name != axis)


def _grown(quantity: str, sd: float, octaves: float) -> float:
    """The local sd with what a row scatters, so many octaves outside."""
    name = "p99" if quantity == "p99" else "latency"
    return float(np.hypot(sd, FLOOR_SD[name]) + SD_PER_OCTAVE[name] * octaves)


def _quantity(
    quantity: str, test: Rows, series: Rows, predicted: dict[str, Floats], index: int
) -> tuple[float, Floats, float, float]:
    """Observed value, the series' values, the model's answer and its sd."""
    sd = float(predicted["latency_sd"][index])
    if quantity == "throughput":
        requests = test.queue_depth[index] * test.jobs[index]
        throughput = requests / predicted["latency"][index] * 1e9
        return float(test.iops[index]), series.iops, float(throughput), sd
    if quantity == "mean latency":
        return float(test.mean_ns[index]), series.mean_ns, float(predicted["latency"][index]), sd
    if "p99" not in predicted:
        return np.nan, series.p99, np.nan, sd
    return (
        float(test.p99[index]),
        series.p99,
        float(predicted["p99"][index]),
        float(predicted["p99_sd"][index]),
    )


@dataclass(frozen=True)
class IntervalVerdict:
    """Coverage and mean interval score (log units) of nominal 90 % intervals.

    `p_value` is that of a two-sided binomial test against 90 %, clustered by series.
    """

    covered: int
    rows: int
    score: float
    p_value: float = np.nan


def outside_as_one(outcomes: list[Outcome]) -> list[Outcome]:
    """Beyond and below taken together, as the widths of a profile take them."""
    return [o if o.region == "inside" else replace(o, region="outside") for o in outcomes]


def judge_intervals(
    outcomes: list[Outcome], method: str, beside: Sequence[Outcome] = ()
) -> IntervalVerdict:
    """Judge intervals of `interval_scores` together."""
    judged = zip(outcomes, interval_scores(outcomes, method, beside), strict=True)
    scores = [(outcome.series, *score) for outcome, score in judged if score is not None]
    if not scores:
        return IntervalVerdict(0, 0, np.nan)
    return IntervalVerdict(
        sum(covered for _, covered, _ in scores),
        len(scores),
        float(np.mean([score for *_, score in scores])),
        clustered_p_value([(series, covered) for series, covered, _ in scores]),
    )


def interval_scores(
    outcomes: list[Outcome], method: str, beside: Sequence[Outcome] = ()
) -> list[tuple[bool, float] | None]:
    """Judge intervals whose width comes from the other folds only.

    Every outcome's interval is the prediction times or over exp(q s); q is the conformal
    quantile of the scores of all other folds of its region, sessions and quantity, and s the
    model's own local sd or, for a baseline, 1. The score is the width plus 2 / 0.1 times the
    distance of what lies outside (Gneiting and Raftery 2007). `beside` are outcomes of the drive's
    other surfaces where the rows of this one are few (`widths.few`); they count like its own.

    Returns:
        For each outcome whether it is covered, and its score; None where fewer than ten others
        say how wide the interval is.
    """
    together = [*outcomes, *beside]
    errors = np.array([point.log_error(method) for point in together])
    scale = np.array([point.sd if method == "model" else 1.0 for point in together])
    indices: dict[tuple[str, str, str], list[int]] = {}
    for place, point in enumerate(together):
        indices.setdefault((point.region, point.sessions, point.quantity), []).append(place)
    judged: list[tuple[bool, float] | None] = [None] * len(together)
    for group in indices.values():
        fold = [(together[place].axis, together[place].fold) for place in group]
        for own in set(fold):
            others = [p for p, other in zip(group, fold, strict=True) if other != own]
            if len(others) < FEWEST_SCORES:
                continue
            factor = conformal_factor(errors[others] / scale[others])
            for place in (p for p, other in zip(group, fold, strict=True) if other == own):
                half = factor * scale[place]
                miss = max(errors[place] - half, 0.0)
                score = float(2 * half + 2 / (1 - CONFIDENCE) * miss)
                judged[place] = (miss == 0.0, score)
    return judged[: len(outcomes)]


def clustered_p_value(hits: Sequence[tuple[str, bool]]) -> float:
    """Two-sided binomial test of coverage against 90 % where rows of one series move together.

    The sample counts as n / design effect rows; the effect is the variance of the series' totals
    over that of independent rows, at least 1 (Rao and Scott, Biometrics 48, 1992).
    """
    names = sorted({name for name, _ in hits})
    rows = np.array([sum(hit == name for hit, _ in hits) for name in names], dtype=float)
    inside = np.array(
        [sum(hit for series, hit in hits if series == name) for name in names], dtype=float
    )
    n, share = rows.sum(), inside.sum() / rows.sum()
    effect, spread = 1.0, share * (1.0 - share)
    if len(names) > 1 and spread > 0:
        scatter = ((inside - share * rows) ** 2).sum() * len(names) / (len(names) - 1)
        effect = max(1.0, float(scatter / (n * spread)))
    counted = max(round(n / effect), 1)
    return float(binomtest(round(share * counted), counted, CONFIDENCE).pvalue)


Held = tuple[Rows, Sequence[tuple[Fold, FittedSurface]]]

POINTS_MAX = 200
"""Fitted points kept of each surface and of the power law: a profile stays small."""

JUDGED_MAX = 600
"""Rows of a surface whose prediction is compared when they are left out, over all folds; their
medians and shares are known well enough from so many."""

FOLD_LEAST = 8
"""Rows judged of each fold, if it has so many."""

_FIELDS = dict(
    zip(
        QUANTITIES,
        ("throughput_bytes_per_second", "latency_mean_ns", "latency_p99_ns"),
        strict=True,
    )
)
_REGIONS = ("inside", "below", "beyond")


def assess(
    profile: DeviceProfile,
    surfaces: Sequence[SurfaceRecipe],
    held: Sequence[Held],
    power: PowerRows,
) -> Assessment:
    """Assess a profile by the rows it was fitted on.

    Args:
        profile: Complete but for this.
        surfaces: The recipe of each fitted surface.
        held: Its rows, and the fits without each fold of them.
        power: What the drive's power law was fitted to.
    """
    verdicts: list[HeldOut] = []
    points: list[PerformancePoints] = []
    predictor = Predictor(profile)
    outcomes = [_outcomes(*each) for each in held]
    for place, (recipe, (rows, _)) in enumerate(zip(surfaces, held, strict=True)):
        others = outcomes[:place] + outcomes[place + 1 :] if few(rows) else []
        verdicts += _verdicts(recipe, outcomes[place], [o for some in others for o in some])
        points.append(_performance_points(predictor, recipe, rows))
    known = profile.device_power is not None and len(power) > 0
    return Assessment(
        held_out=verdicts,
        performance=points,
        power=_power_points(profile, power) if known else None,
    )


def _outcomes(rows: Rows, without: Iterable[tuple[Fold, FittedSurface]]) -> list[Outcome]:
    """Left-out rows of steady sessions beside their predictions; of many rows only some."""
    pairs = list(without)
    most = max(FOLD_LEAST, JUDGED_MAX // max(len(pairs), 1))
    outcomes: list[Outcome] = []
    for fold, model in pairs:
        training = fold.train.copy()
        training[_thinned(np.flatnonzero(~fold.train), most)] = True
        outcomes += judge(
            rows.take(training), Fold(fold.axis, fold.value, fold.train[training]), model
        )
    return [outcome for outcome in outcomes if outcome.sessions == "steady"]


def _thinned(indices: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most so many of the places, evenly spread."""
    if len(indices) <= most:
        return indices
    return indices[np.linspace(0, len(indices) - 1, most).astype(np.intp)]


def _verdicts(
    recipe: SurfaceRecipe, outcomes: list[Outcome], beside: list[Outcome]
) -> list[HeldOut]:
    """By axis and region, and by each left-out value in both regions."""
    model, base = (
        interval_scores(outcomes, method, beside) for method in ("model", "interpolation")
    )
    judged = list(zip(outcomes, model, base, strict=True))
    keys: list[tuple[str, float | None, str | None]] = []
    for axis in ("queue_depth", "request_bytes"):
        keys += product((axis,), (None,), _REGIONS)
        keys += [(axis, value, None) for value in sorted({o.fold for o in outcomes})]
    verdicts = []
    for quantity, (axis, value, region) in product(QUANTITIES, keys):
        some = [
            each
            for each in judged
            if each[0].quantity == quantity
            and each[0].axis == axis
            and value in (None, each[0].fold)
            and region in (None, each[0].region)
        ]
        if some:
            verdicts.append(_verdict(recipe, quantity, axis, value, region, some))
    return verdicts


def _verdict(
    recipe: SurfaceRecipe,
    quantity: str,
    axis: str,
    value: float | None,
    region: str | None,
    judged: list[tuple[Outcome, tuple[bool, float] | None, tuple[bool, float] | None]],
) -> HeldOut:
    errors = np.array([outcome.error("model") for outcome, _, _ in judged])
    base_errors = [outcome.error("interpolation") for outcome, _, _ in judged]
    # one set of rows for both methods, so that the scores compare
    scores = [(own, other) for _, own, other in judged if own is not None and other is not None]
    return HeldOut.model_validate(
        {
            "operation": recipe.operation,
            "pattern": recipe.pattern,
            "quantity": _FIELDS[quantity],
            "left_out": axis,
            "value": value,
            "region": region,
            "rows": len(judged),
            "median_error": _short(np.median(errors)),
            "p90_error": _short(np.quantile(errors, 0.9)),
            "baseline_median_error": _short(np.median(base_errors)),
            "interval_rows": len(scores),
            "covered": sum(own[0] for own, _ in scores),
            "interval_score": _short(np.mean([own[1] for own, _ in scores])) if scores else None,
            "baseline_interval_score": (
                _short(np.mean([other[1] for _, other in scores])) if scores else None
            ),
        }
    )


def _short(value: float | np.floating) -> float:
    """Four significant digits: errors are not known better."""
    return float(f"{float(value):.4g}")


def _performance_points(
    predictor: Predictor, recipe: SurfaceRecipe, rows: Rows
) -> PerformancePoints:
    """Log ratios of what was observed to what the profile answers at the same configuration."""
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[_thinned(np.arange(len(rows)), POINTS_MAX)] = True
    some = rows.take(chosen)
    columns = {
        name: getattr(some, name)
        for name in (
            "request_bytes",
            "queue_depth",
            "jobs",
            "engine",
            "completion",
            "submission_polling",
            "scheduler",
        )
    }
    columns["cpu_cores_available"] = some.cores
    columns["operation"] = [recipe.operation.value] * len(some)
    columns["pattern"] = [recipe.pattern.value] * len(some)
    prediction, _ = predictor.predict_columns(columns, len(some))
    latency = np.log(some.latency_ns / prediction["latency_mean_ns"].value)
    p99 = np.log(some.p99 / prediction["latency_p99_ns"].value)
    return PerformancePoints(
        operation=recipe.operation,
        pattern=recipe.pattern,
        total=len(rows),
        path=some.path_keys(),
        request_bytes=[int(value) for value in some.request_bytes],
        queue_depth=[int(value) for value in some.queue_depth],
        jobs=[int(value) for value in some.jobs],
        apart=[stands_apart(str(name)) for name in some.session],
        latency=[round(float(value), 4) for value in latency],
        p99=[round(float(value), 4) if np.isfinite(value) else None for value in p99],
    )


def _power_points(profile: DeviceProfile, rows: PowerRows) -> PowerPoints | None:
    if profile.device_power is None:
        return None
    indices = _thinned(np.arange(len(rows)), POINTS_MAX)
    x = rows.x[indices]
    predicted = device_power.active_value(profile.device_power, x, rows.power_state[indices])
    ratio = np.log(rows.watts[indices] / predicted)
    columns = [[_short(value) for value in x[:, place]] for place in range(1, 6)]
    return PowerPoints(
        total=len(rows),
        power_state=[int(state) for state in rows.power_state[indices]],
        request_bytes=[float(size) for size in rows.request_bytes[indices]],
        read_bytes_per_second=columns[0],
        read_operations_per_second=columns[1],
        write_bytes_per_second=columns[2],
        write_operations_per_second=columns[3],
        collecting=columns[4],
        watts=[round(value, 4) for value in rounded(ratio)],
    )
