"""Effect of a lower power state, read off runs that differ from PS0 in nothing but the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.profile import CEILING_SHARPNESS
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.curve import log_smooth_max
from iojoule.model.fitting.recipe import Figure, PowerStateRecipe

Floats = NDArray[np.float64]
Direction = Literal[Operation.READ, Operation.WRITE]

PAIRS_MIN = 3
"""So many runs with a twin in PS0 are needed where nothing is stated of a state."""

RUN_LOG_SD = 0.03
"""Log sd by which a pair of runs may miss the law; beyond, it counts by its distance only."""

FACTOR_LOG_SD = 0.3
"""Log sd of the factor by which a state slows everything, before any run: around 1."""

CEILING_PRIOR = (-0.7, 1.0)
"""Mean and sd of the log of the time a byte takes at the cap, over the least that was seen: a cap
that no run shows lies at twice what was seen."""

OPERATION_PRIOR = (-1.5, 1.5)
"""Likewise of the time that an operation takes besides its bytes."""

NO_OPERATION_PRIOR = (-6.0, 1.5)
"""Likewise where a ceiling is stated in bytes alone: an operation takes next to none of it."""

TAIL_WEIGHT = 0.5
"""Runs held back that the prior of the tail factor, 1, is worth."""

SHARPNESS_LOG_SD = 0.8
"""Log sd of the sharpness of the bend where the cap takes over, around `CEILING_SHARPNESS`: reads
of the 980 PRO at PS1 bend at 2, its writes at 8 or more (000 5.4, 5.7)."""

_LEAST_LOG_SD = 0.05


@dataclass(frozen=True)
class _Pairs:
    """Runs in a state beside their twins in PS0; arrays of shape (n,)."""

    bytes: Floats
    in_flight: Floats
    before_seconds: Floats
    after_seconds: Floats
    before_tail: Floats
    after_tail: Floats


def measured_effect(
    rows: Sequence[Measurement],
    operation: Direction,
    state: int,
    stated: PowerStateRecipe | None = None,
) -> PowerStateRecipe | None:
    """The effect of a state on one direction; None where too few runs have a twin in PS0.

    A state that slows everything by one factor (a lower clock) and a cap are fitted together, in
    logs, to the latencies of all pairs: L = max(f L0, N (each + size / ceiling)), with a smooth
    maximum of its own sharpness. Both are shrunk to no effect, or to what is stated. Where no run
    is held back, the ceiling is above all that was seen.

    Args:
        rows: Measurements of this direction.
        operation: The direction.
        state: The power state.
        stated: What is published of it; then a single pair of runs is enough.
    """
    pairs = _pairs(rows, state, PAIRS_MIN if stated is None else 1)
    if pairs is None:
        return None
    scale = np.array(
        [
            1.0,
            float((pairs.after_seconds / pairs.in_flight / pairs.bytes).min()),
            float((pairs.after_seconds / pairs.in_flight).min()),
            CEILING_SHARPNESS,
        ]
    )
    centre, width = _priors(scale, stated)

    def law(theta: Floats) -> tuple[Floats, Floats]:
        """Log latency, and by how much of it the cap speaks."""
        factor, per_byte, each, sharp = np.exp(theta) * scale
        slowed = np.log(factor * pairs.before_seconds)
        queueing = np.log(pairs.in_flight * (each + pairs.bytes * per_byte))
        weight = 1.0 / (1.0 + np.exp(np.clip(sharp * (slowed - queueing), -50, 50)))
        return log_smooth_max(slowed, queueing, sharp), weight

    def misfit(theta: Floats) -> Floats:
        missed = (law(theta)[0] - np.log(pairs.after_seconds)) / RUN_LOG_SD
        robust = np.sign(missed) * np.sqrt(2.0 * (np.sqrt(1.0 + missed**2) - 1.0))
        return np.concatenate([robust, (theta - centre) / width])

    starts = (centre, np.array([0.0, -0.1, -1.5, 0.0]), np.array([0.2, -0.7, -0.1, 0.0]))
    found = min((least_squares(misfit, start) for start in starts), key=lambda one: one.cost)
    told, weight = law(found.x)
    spread = float(np.sqrt(np.mean((told - np.log(pairs.after_seconds)) ** 2)))
    factor, per_byte, each, sharp = np.exp(found.x) * scale
    held = bool((weight > 0.5).any())
    source = "runs that the cap holds back" if held else "no run was held back"
    return PowerStateRecipe(
        power_state=state,
        operation=operation,
        ceiling_bytes_per_second=_figure(
            1.0 / per_byte, spread if held else 0.5, "bytes/s", source
        ),
        ceiling_seconds_per_operation=_figure(each, spread, "s", source) if held else None,
        ceiling_sharpness=_figure(sharp, 0.3, "1", source) if held else None,
        latency_factor=_figure(
            factor, spread, "1", "runs beside their twins in PS0: one factor on all of them"
        ),
        tail_factor=stated.tail_factor
        if stated is not None and not np.isfinite(pairs.after_tail).any()
        else _tail_factor(pairs, told - np.log(pairs.before_seconds), weight),
    )


def _priors(scale: Floats, stated: PowerStateRecipe | None) -> tuple[Floats, Floats]:
    """Centres and sds of the logs of factor, time a byte, time an operation, and sharpness."""
    priors = [(0.0, FACTOR_LOG_SD), CEILING_PRIOR, OPERATION_PRIOR, (0.0, SHARPNESS_LOG_SD)]
    if stated is not None:
        priors[2] = NO_OPERATION_PRIOR
        told = (
            (0, stated.latency_factor, 1.0),
            (1, stated.ceiling_bytes_per_second, -1.0),
            (2, stated.ceiling_seconds_per_operation, 1.0),
            (3, stated.ceiling_sharpness, 1.0),
        )
        for place, figure, sign in told:
            if figure is not None:
                value = sign * np.log(figure.value) - np.log(scale[place])
                priors[place] = (float(value), figure.sd)
    centre, width = np.array(priors).T
    return centre, width


def _pairs(rows: Sequence[Measurement], state: int, least: int) -> _Pairs | None:
    twins = {twin_key(one): one for one in rows if not one.configuration.power_state}
    pairs = [
        (twins[twin_key(one)], one)
        for one in rows
        if one.configuration.power_state == state and twin_key(one) in twins
    ]
    known = [(before, after) for before, after in pairs if _rate(before) and _rate(after)]
    if len(known) < least:
        return None
    sizes = np.array([float(after.configuration.request_bytes) for _, after in known])
    flight = np.array([float(after.concurrency()) for _, after in known])
    rates = np.array([(_rate(before), _rate(after)) for before, after in known])
    tails = np.array(
        [[one.observations.latency_p99_ns or np.nan for one in pair] for pair in known], float
    )
    return _Pairs(
        sizes, flight, flight * sizes / rates[:, 0], flight * sizes / rates[:, 1], *tails.T
    )


def _tail_factor(pairs: _Pairs, shift: Floats, weight: Floats) -> Figure:
    """What the p99 of runs that are held back grows by beyond their mean; shrunk to 1."""
    grown = np.log(pairs.after_tail / pairs.before_tail) - shift
    seen = np.isfinite(grown)
    if not seen.any() or not (weight[seen] > 0.5).any():
        return _figure(1.0, 0.3, "1", "no run that was held back tells")
    grown, weight = grown[seen], weight[seen]
    value = float((weight * grown).sum() / ((weight**2).sum() + TAIL_WEIGHT))
    spread = float(np.sqrt(np.mean((grown - weight * value) ** 2)))
    return _figure(float(np.exp(value)), spread, "1", "runs that the cap holds back")


def _figure(value: float, log_sd: float, unit: str, source: str) -> Figure:
    return Figure(
        value=value,
        sd=max(log_sd, _LEAST_LOG_SD),
        unit=unit,
        source=source,
        evidence=Evidence.MEASURED,
    )


def _rate(one: Measurement) -> float:
    return one.observations.throughput_bytes_per_second or 0.0


def twin_key(one: Measurement) -> tuple[object, ...]:
    """What runs of one operation have in common that differ in nothing but the power state."""
    c, w = one.configuration, one.workload
    return (w.pattern, c.request_bytes, c.queue_depth, c.jobs, c.engine, c.completion, c.scheduler)
