"""What a profile says of its own errors: whole depths and sizes left out, and fitted points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import (
    Assessment,
    DeviceProfile,
    HeldOut,
    PerformancePoints,
    PowerPoints,
)
from iojoule.model import device_power
from iojoule.model.fitting.backtest import QUANTITIES, Outcome, interval_scores, judge
from iojoule.model.fitting.export import rounded
from iojoule.model.fitting.performance import FittedSurface
from iojoule.model.fitting.power import PowerRows
from iojoule.model.fitting.recipe import SurfaceRecipe
from iojoule.model.fitting.rows import Rows, stands_apart
from iojoule.model.fitting.widths import Fold, few
from iojoule.model.predictor import Predictor

Floats = NDArray[np.float64]
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
        kept = fold.train.copy()
        kept[_thinned(np.flatnonzero(~fold.train), most)] = True
        outcomes += judge(rows.take(kept), Fold(fold.axis, fold.value, fold.train[kept]), model)
    return [one for one in outcomes if one.sessions == "steady"]


def _thinned(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most so many of the places, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.intp)]


def _verdicts(
    recipe: SurfaceRecipe, outcomes: list[Outcome], beside: list[Outcome]
) -> list[HeldOut]:
    """By axis and region, and by each left-out value in both regions."""
    ours, base = (
        interval_scores(outcomes, method, beside) for method in ("model", "interpolation")
    )
    judged = list(zip(outcomes, ours, base, strict=True))
    keys: list[tuple[str, float | None, str | None]] = []
    for axis in ("queue_depth", "request_bytes"):
        keys += product((axis,), (None,), _REGIONS)
        keys += [(axis, value, None) for value in sorted({o.fold for o in outcomes})]
    found = []
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
            found.append(_verdict(recipe, quantity, axis, value, region, some))
    return found


def _verdict(
    recipe: SurfaceRecipe,
    quantity: str,
    axis: str,
    value: float | None,
    region: str | None,
    judged: list[tuple[Outcome, tuple[bool, float] | None, tuple[bool, float] | None]],
) -> HeldOut:
    errors = np.array([one.error("model") for one, _, _ in judged])
    base_errors = [one.error("interpolation") for one, _, _ in judged]
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
    kept = np.zeros(len(rows), dtype=bool)
    kept[_thinned(np.arange(len(rows)), POINTS_MAX)] = True
    some = rows.take(kept)
    columns = {
        name: getattr(some, name)
        for name in ("request_bytes", "queue_depth", "jobs", "engine", "completion",
                     "submission_polling", "scheduler")
    }  # fmt: skip
    columns["cpu_cores_available"] = some.cores
    columns["operation"] = [recipe.operation.value] * len(some)
    columns["pattern"] = [recipe.pattern.value] * len(some)
    answer, _ = predictor.predict_columns(columns, len(some))
    latency = np.log(some.latency_ns / answer["latency_mean_ns"].value)
    p99 = np.log(some.p99 / answer["latency_p99_ns"].value)
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
    places = _thinned(np.arange(len(rows)), POINTS_MAX)
    x = rows.x[places]
    answer = device_power.active_value(profile.device_power, x, rows.power_state[places])
    ratio = np.log(rows.watts[places] / answer)
    columns = [[_short(value) for value in x[:, place]] for place in range(1, 6)]
    return PowerPoints(
        total=len(rows),
        power_state=[int(one) for one in rows.power_state[places]],
        request_bytes=[float(one) for one in rows.request_bytes[places]],
        read_bytes_per_second=columns[0],
        read_operations_per_second=columns[1],
        write_bytes_per_second=columns[2],
        write_operations_per_second=columns[3],
        collecting=columns[4],
        watts=[round(value, 4) for value in rounded(ratio)],
    )
