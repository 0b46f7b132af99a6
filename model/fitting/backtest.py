"""Leaving whole depths and sizes out, and predicting them: model beside baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from iojoule.model.fitting.baselines import hyperbola, interpolate
from iojoule.model.fitting.performance import FittedSurface, Settings, fit_surface
from iojoule.model.fitting.rows import Rows, stands_apart
from iojoule.model.fitting.widths import (
    CONFIDENCE,
    FEWEST_SCORES,
    FLOOR_SD,
    SD_PER_OCTAVE,
    Fold,
    conformal_factor,
    folds,
    outside,
    same_series,
)

Floats = NDArray[np.float64]

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
        answer = requests / predicted["latency"][index] * 1e9
        return float(test.iops[index]), series.iops, float(answer), sd
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
    scores = [(outcome.series, *one) for outcome, one in judged if one is not None]
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
    errors = np.array([one.log_error(method) for one in together])
    scale = np.array([one.sd if method == "model" else 1.0 for one in together])
    places: dict[tuple[str, str, str], list[int]] = {}
    for place, one in enumerate(together):
        places.setdefault((one.region, one.sessions, one.quantity), []).append(place)
    judged: list[tuple[bool, float] | None] = [None] * len(together)
    for group in places.values():
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
    rows = np.array([sum(one == name for one, _ in hits) for name in names], dtype=float)
    inside = np.array([sum(hit for one, hit in hits if one == name) for name in names], dtype=float)
    n, share = rows.sum(), inside.sum() / rows.sum()
    effect, spread = 1.0, share * (1.0 - share)
    if len(names) > 1 and spread > 0:
        scatter = ((inside - share * rows) ** 2).sum() * len(names) / (len(names) - 1)
        effect = max(1.0, float(scatter / (n * spread)))
    counted = max(round(n / effect), 1)
    return float(binomtest(round(share * counted), counted, CONFIDENCE).pvalue)
