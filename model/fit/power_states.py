"""What a lower power state does to a drive: measured where it was, else derived from its cap.

A cap in watts leaves (cap - base) / (full - base) of the work that the drive does at full speed,
for the power above the base is proportional to the work (`model.evaluate.device_power`). That holds
on data-centre drives: at caps of 12 and 10 W the D7-P5510 writes 74 % and 55 % sequentially, which
one base (4.2 W) and one full power (14.7 W) explain, and its reads, which stay below the caps, are
untouched (004 3.2.1). Consumer drives lose more, and reads too: of what their caps would leave, the
980 PRO keeps 0.47 and 0.79 of its writes and 0.30 of its reads (000 5.1.2, 5.2, 6.1).

Effect of a lower power state, read off runs that differ from PS0 in nothing but the state.

Effects of power states from runs that have no twin in PS0: the fit answers in its place.

A handful of runs spread over power states seldom holds two that differ in nothing else. What the
fitted surface says of a run's configuration in PS0 then stands beside it; where a twin was
measured, it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import least_squares

from iojoule.datasets.profile import CEILING_SHARPNESS, DeviceProfile, PowerStateEffect
from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.surface import log_smooth_max
from iojoule.model.fit.rows import SETTINGS
from iojoule.model.fit.without import BASE_SHARE, FULL_SHARE, LEAST_SHARE
from iojoule.model.recipe import Figure, PowerStateRecipe, parameter, pool

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
    solution = min(
        (least_squares(misfit, start) for start in starts), key=lambda fitted: fitted.cost
    )
    effect, weight = law(solution.x)
    spread = float(np.sqrt(np.mean((effect - np.log(pairs.after_seconds)) ** 2)))
    factor, per_byte, each, sharp = np.exp(solution.x) * scale
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
        else _tail_factor(pairs, effect - np.log(pairs.before_seconds), weight),
    )


def _priors(scale: Floats, stated: PowerStateRecipe | None) -> tuple[Floats, Floats]:
    """Centres and sds of the logs of factor, time a byte, time an operation, and sharpness."""
    priors = [(0.0, FACTOR_LOG_SD), CEILING_PRIOR, OPERATION_PRIOR, (0.0, SHARPNESS_LOG_SD)]
    if stated is not None:
        priors[2] = NO_OPERATION_PRIOR
        stated_figures = (
            (0, stated.latency_factor, 1.0),
            (1, stated.ceiling_bytes_per_second, -1.0),
            (2, stated.ceiling_seconds_per_operation, 1.0),
            (3, stated.ceiling_sharpness, 1.0),
        )
        for place, figure, sign in stated_figures:
            if figure is not None:
                value = sign * np.log(figure.value) - np.log(scale[place])
                priors[place] = (float(value), figure.sd)
    centre, width = np.array(priors).T
    return centre, width


def _pairs(rows: Sequence[Measurement], state: int, least: int) -> _Pairs | None:
    twins = {
        twin_key(measurement): measurement
        for measurement in rows
        if not measurement.configuration.power_state
    }
    pairs = [
        (twins[twin_key(measurement)], measurement)
        for measurement in rows
        if measurement.configuration.power_state == state and twin_key(measurement) in twins
    ]
    known = [(before, after) for before, after in pairs if _rate(before) and _rate(after)]
    if len(known) < least:
        return None
    sizes = np.array([float(after.configuration.request_bytes) for _, after in known])
    flight = np.array([float(after.concurrency()) for _, after in known])
    rates = np.array([(_rate(before), _rate(after)) for before, after in known])
    tails = np.array(
        [[run.observations.latency_p99_ns or np.nan for run in pair] for pair in known], float
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


def _rate(measurement: Measurement) -> float:
    return measurement.observations.throughput_bytes_per_second or 0.0


def twin_key(measurement: Measurement) -> tuple[object, ...]:
    """What runs of one operation have in common that differ in nothing but the power state."""
    c, w = measurement.configuration, measurement.workload
    return (w.pattern, c.request_bytes, c.queue_depth, c.jobs, c.engine, c.completion, c.scheduler)


CONSUMER_KEEPS = (0.43, 0.5)
"""Of what the cap would leave, and log sd: geometric mean and spread of the four figures above."""

_LAW_SD = {True: 0.2, False: 0.5}
"""Log sd of the share, by whether the drive's power was measured."""


def power_state_recipes(
    cap_watts: list[float],
    measurements: Sequence[Measurement],
    drive_class: str = "unknown",
    stated: Sequence[PowerStateRecipe] = (),
) -> list[PowerStateRecipe]:
    """Effects of the operational power states on both directions.

    Args:
        cap_watts: Declared caps by state.
        measurements: Of the drive; those in a lower state beside their twins win.
        drive_class: As the catalogue has it; an unknown class gets intervals that reach over both.
        stated: What is published of states; it holds where no runs say more.
    """
    published = {(state.operation, state.power_state): state for state in stated}
    seen = {measurement.configuration.power_state or 0 for measurement in measurements}
    states = max(len(cap_watts), max(seen, default=0) + 1)
    out = []
    directions: tuple[Direction, ...] = (Operation.READ, Operation.WRITE)
    for operation in directions:
        rows = [
            measurement
            for measurement in measurements
            if measurement.workload.operation is operation and measurement.at_full_speed
        ]
        for state in range(1, states):
            known = published.get((operation, state))
            known = measured_effect(rows, operation, state, known) or known
            if known is not None:
                out.append(known)
            elif state < len(cap_watts):
                out.append(_derived(cap_watts, state, operation, rows, drive_class))
    return out


def _derived(
    cap_watts: list[float],
    state: int,
    operation: Direction,
    rows: Sequence[Measurement],
    drive_class: str,
) -> PowerStateRecipe:
    rates = [measurement.observations.throughput_bytes_per_second or 0.0 for measurement in rows]
    fastest = max(rates, default=0.0) or 1e9
    share, log_sd, why = _share(cap_watts, state, rows)
    if drive_class != "datacentre":
        keeps, spread = CONSUMER_KEEPS
        # an unknown class may be either: the middle of both, and a sd that reaches them
        part = 1.0 if drive_class == "consumer" else 0.5
        share = float(np.exp(part * np.log(min(share, 1.0) * keeps) + (1 - part) * np.log(share)))
        log_sd = float(np.hypot(log_sd, spread if part == 1.0 else spread - np.log(keeps) / 2))
        why += "; " + (
            "consumer drives keep 0.43 of that (000 5.1.2, 5.2)"
            if part == 1.0
            else "class unknown: between data-centre and consumer drives"
        )
    latency, tail = _delays(operation, share, drive_class)
    return PowerStateRecipe(
        power_state=state,
        operation=operation,
        ceiling_bytes_per_second=_assumed(share * fastest, log_sd, "bytes/s", why),
        latency_factor=latency,
        tail_factor=tail,
    )


def _share(
    cap_watts: list[float], state: int, rows: Sequence[Measurement]
) -> tuple[float, float, str]:
    """Share of the full speed that the cap leaves by the law of power, its log sd, and why.

    Above 1 the cap leaves room; that is kept, for it says how far the direction is from it.
    """
    powered = [
        (
            measurement.observations.throughput_bytes_per_second or 0.0,
            measurement.observations.device_power_watts,
        )
        for measurement in rows
        if measurement.observations.device_power_watts and not measurement.configuration.power_state
    ]
    measured = len(powered) >= 3
    full = FULL_SHARE * cap_watts[0]
    base = BASE_SHARE * full
    if measured:
        base = min(watts or full for _, watts in powered)
        full = max(powered)[1] or full
        measured = full > 1.1 * base
    if not measured:
        full, base = FULL_SHARE * cap_watts[0], BASE_SHARE * FULL_SHARE * cap_watts[0]
    share = max((cap_watts[state] - base) / (full - base), LEAST_SHARE)
    return (
        share,
        _LAW_SD[measured],
        (
            f"(cap - base) / (full - base) with {base:.3g} and {full:.3g} W "
            + ("measured at PS0" if measured else "assumed from the declared cap")
        ),
    )


def _delays(operation: Direction, share: float, drive_class: str) -> tuple[Figure, Figure]:
    """Factors on mean latency and tail below saturation.

    Data-centre: reads show no difference, random writes up to 2 in the mean and 6.19 in the tail
    (004 3.2.1, X5 and X6), less where the state leaves more. Consumer: 1.5 to 2 (000 5.3, 5.6).
    """
    if drive_class == "datacentre":
        if operation is Operation.READ:
            return (
                _assumed(1.0, 0.05, "1", "data-centre reads are untouched (004 fig. 6)"),
                _assumed(1.0, 0.05, "1", "data-centre reads are untouched (004 fig. 6)"),
            )
        lost = float(np.clip(1.0 - share, 0.0, 0.45) / 0.45)
        return (
            _assumed(1.5**lost, 0.25, "1", "up to 2 at the lowest state (004 fig. 5)"),
            _assumed(4.0**lost, 0.4, "1", "up to 6.19 at the lowest state (004 fig. 5)"),
        )
    return (
        _assumed(1.5, 0.4, "1", "1.5 to 2 on one consumer drive (000 5.3, 5.6)"),
        _assumed(4.0, 0.9, "1", "throttling stretches tails (000 5.4, 004 fig. 5)"),
    )


def _assumed(value: float, sd: float, unit: str, why: str) -> Figure:
    return Figure(
        value=value, sd=sd, unit=unit, source=f"assumption: {why}", evidence=Evidence.ASSUMED
    )


def exported_effects(recipes: Sequence[PowerStateRecipe]) -> list[PowerStateEffect]:
    """Effects as a profile keeps them."""
    return [
        PowerStateEffect(
            power_state=effect.power_state,
            operation=effect.operation,
            ceiling_bytes_per_second=parameter("ceiling", effect.ceiling_bytes_per_second),
            ceiling_seconds_per_operation=parameter(
                "ceiling_seconds_per_operation", effect.ceiling_seconds_per_operation
            )
            if effect.ceiling_seconds_per_operation
            else None,
            ceiling_depth_exponent=parameter(
                "ceiling_depth_exponent", pool(effect.ceiling_depth_exponents)
            )
            if effect.ceiling_depth_exponents
            else None,
            ceiling_sharpness=parameter("ceiling_sharpness", effect.ceiling_sharpness)
            if effect.ceiling_sharpness
            else None,
            latency_factor=parameter("latency_factor", effect.latency_factor),
            tail_factor=parameter("tail_factor", effect.tail_factor),
        )
        for effect in recipes
    ]


def with_predicted_twins(
    profile: DeviceProfile,
    measurements: Sequence[Measurement],
    effects_of: Callable[[Sequence[Measurement]], list[PowerStateRecipe]],
) -> DeviceProfile:
    """The profile with the effects of power states that twins, measured or predicted, tell."""
    twins = predicted_twins(profile, measurements)
    if not twins:
        return profile
    effects = effects_of([*measurements, *twins])
    return profile.model_copy(update={"power_state_effects": exported_effects(effects)})


def predicted_twins(
    profile: DeviceProfile, measurements: Sequence[Measurement]
) -> list[Measurement]:
    """What the profile says, in PS0, of runs below it that have no measured twin there.

    Only of operations and patterns with a surface of their own: what stands in for another knows
    too little to be compared with.
    """
    seen = {
        (measurement.workload.operation, twin_key(measurement))
        for measurement in measurements
        if not measurement.configuration.power_state
    }
    alone = [
        measurement
        for measurement in measurements
        if measurement.configuration.power_state
        and measurement.workload.operation is not Operation.MIXED
        and measurement.at_full_speed
        and profile.surface(measurement.workload.operation, measurement.workload.pattern)
        is not None
        and (measurement.workload.operation, twin_key(measurement)) not in seen
    ]
    if not alone:
        return []
    columns = {name: [getattr(run.configuration, name) for run in alone] for name in SETTINGS}
    columns["operation"] = [run.workload.operation.value for run in alone]
    columns["pattern"] = [run.workload.pattern.value for run in alone]
    columns["power_state"] = [0] * len(alone)
    prediction, _ = Predictor(profile).predict_columns(columns, len(alone))
    return [
        Measurement(
            workload=run.workload,
            configuration=run.configuration.model_copy(update={"power_state": 0}),
            observations=Observations(
                throughput_bytes_per_second=float(
                    prediction["throughput_bytes_per_second"].value[place]
                ),
                latency_mean_ns=float(prediction["latency_mean_ns"].value[place]),
                latency_p99_ns=_known(float(prediction["latency_p99_ns"].value[place])),
            ),
        )
        for place, run in enumerate(alone)
    ]


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
