"""Effect of a lower power state, read off runs that differ from PS0 in nothing but the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.fitting.recipe import Figure, PowerStateRecipe

Floats = NDArray[np.float64]
Direction = Literal[Operation.READ, Operation.WRITE]

PAIRS_MIN = 3
"""So many runs with a twin in PS0 are needed."""

_BOUND_BELOW = 0.9
"""A run below this share of its twin's throughput is held back by the state's cap."""

_LEAST_LOG_SD = 0.05


def measured_effect(
    rows: Sequence[Measurement], operation: Direction, state: int
) -> PowerStateRecipe | None:
    """The effect of a state on one direction; None where too few runs have a twin in PS0.

    Runs that the cap holds back give the ceiling; where none is held back it is above all that
    was seen. The others give the factors on latency.

    Args:
        rows: Measurements of this direction.
        operation: The direction.
        state: The power state.
    """
    twins = {twin_key(one): one for one in rows if not one.configuration.power_state}
    pairs = [
        (twins[twin_key(one)], one)
        for one in rows
        if one.configuration.power_state == state and twin_key(one) in twins
    ]
    known = [
        (_rate(before), _rate(after), before, after)
        for before, after in pairs
        if _rate(before) and _rate(after)
    ]
    if len(known) < PAIRS_MIN:
        return None
    bound = [(two, after) for before, after, _, two in known if after < _BOUND_BELOW * before]
    fastest = max(after for _, after, *_ in known)
    free = [(one, two) for before, after, one, two in known if after >= _BOUND_BELOW * before]
    each: Figure | None = None
    if bound:
        ceiling, each = _ceiling(
            np.array([float(one.configuration.request_bytes) for one, _ in bound]),
            np.array([rate for _, rate in bound]),
        )
    else:
        ceiling = _figure(2.0 * fastest, 0.5, "bytes/s", "no run was held back")
    return PowerStateRecipe(
        power_state=state,
        operation=operation,
        ceiling_bytes_per_second=ceiling,
        ceiling_seconds_per_operation=each,
        latency_factor=_factor(free, "latency_mean_ns"),
        tail_factor=_factor(free, "latency_p99_ns"),
    )


def _ceiling(sizes: Floats, rates: Floats) -> tuple[Figure, Figure | None]:
    """Time of a request at the cap, t = each + size / ceiling, least squares in its logarithm.

    A cap in watts leaves a time per request that grows with its energy, linear in its size.
    """
    seconds = sizes / rates
    source = "runs that the cap holds back"
    if len(np.unique(sizes)) < 2:
        spread = float(np.std(np.log(rates))) if len(rates) > 1 else 0.3
        return _figure(float(np.exp(np.log(rates).mean())), spread, "bytes/s", source), None
    scale = np.array([seconds.min(), float((seconds / sizes).min())])

    def misfit(log_share: Floats) -> Floats:
        each, per_byte = np.exp(log_share) * scale
        return np.asarray(np.log((each + sizes * per_byte) / seconds))

    found = least_squares(misfit, np.zeros(2), bounds=(-12.0, 5.0))
    each, per_byte = np.exp(found.x) * scale
    spread = float(np.sqrt(np.mean(found.fun**2)))
    return (
        _figure(1.0 / per_byte, spread, "bytes/s", source),
        Figure(value=each, sd=spread, unit="s", source=source, evidence=Evidence.MEASURED),
    )


def _factor(pairs: Sequence[tuple[Measurement, Measurement]], field: str) -> Figure:
    ratios = np.array(
        [
            getattr(after.observations, field) / getattr(before.observations, field)
            for before, after in pairs
            if getattr(after.observations, field) and getattr(before.observations, field)
        ]
    )
    if not len(ratios):
        return _figure(1.0, 0.3, "1", "every run was held back, so none tells")
    spread = float(np.std(np.log(ratios))) if len(ratios) > 1 else 0.3
    return _figure(float(np.median(ratios)), spread, "1", "runs beside their twins in PS0")


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
