"""What a lower power state does to a drive: measured where it was, else derived from its cap.

A cap in watts leaves (cap - base) / (full - base) of the work that the drive does at full speed,
for the power above the base is proportional to the work (`model.device_power`). That holds on
data-centre drives: at caps of 12 and 10 W the D7-P5510 writes 74 % and 55 % sequentially, which one
base (4.2 W) and one full power (14.7 W) explain, and its reads, which stay below the caps, are
untouched (004 3.2.1). Consumer drives lose more, and reads too: of what their caps would leave, the
980 PRO keeps 0.47 and 0.79 of its writes and 0.30 of its reads (000 5.1.2, 5.2, 6.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import PowerStateEffect
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.fitting.measured_states import Direction, measured_effect
from iojoule.model.fitting.recipe import Figure, PowerStateRecipe, pool
from iojoule.model.fitting.recipe.sourced import parameter
from iojoule.model.fitting.recipe.without import BASE_SHARE, FULL_SHARE, LEAST_SHARE

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
    published = {(one.operation, one.power_state): one for one in stated}
    seen = {one.configuration.power_state or 0 for one in measurements}
    states = max(len(cap_watts), max(seen, default=0) + 1)
    out = []
    directions: tuple[Direction, ...] = (Operation.READ, Operation.WRITE)
    for operation in directions:
        rows = [
            one for one in measurements if one.workload.operation is operation and one.at_full_speed
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
    rates = [one.observations.throughput_bytes_per_second or 0.0 for one in rows]
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
        (one.observations.throughput_bytes_per_second or 0.0, one.observations.device_power_watts)
        for one in rows
        if one.observations.device_power_watts and not one.configuration.power_state
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
