"""What differs between two answers: quantities with intervals, and knobs."""

from __future__ import annotations

from typing import Any

from iojoule.recommender.estimate import Estimate
from iojoule.recommender.what_if.outcome import Difference, Side, Totals
from iojoule.recommender.what_if.shared_error import power_change, weaker
from iojoule.recommender.what_if.sharing import Serving
from iojoule.recommender.workload import Free

OF_POWER = (
    "device_power_watts", "power_watts", "kwh_per_year", "cost_per_year", "co2_kilograms_per_year",
)  # fmt: skip
"""What is power, or follows from it by what is known; so does the energy of work that is held."""


def knobs(base: Side, changed: Side) -> dict[str, tuple[Any, Any]]:
    """What the two sides set otherwise; nothing where no configuration serves one of them."""
    one, other = base.row, changed.row
    if one is None or other is None:
        return {}
    pairs = {
        name: (getattr(one.configuration, name), getattr(other.configuration, name))
        for name in Free.model_fields
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def differences(
    base: Side, changed: Side, serving: tuple[Serving | None, Serving | None]
) -> list[Difference]:
    """By quantity, of what both sides know; `serving` says who stands behind their rows."""
    before, after = serving
    if base.totals is None or changed.totals is None or before is None or after is None:
        return []
    found = []
    for name in Totals.model_fields:
        one, other = getattr(base.totals, name), getattr(changed.totals, name)
        if one is None or other is None:
            continue
        power = _of_power(name, base, changed)
        if one == other:
            change = one.model_copy(update=dict.fromkeys(("value", "low", "high"), 0.0))
        elif power is not None and power[1] == power[2]:
            change = _together(one, other)
        elif power is not None:
            scope, *watts = power
            weights = (_slope(one, watts[0]), _slope(other, watts[1]))
            change = power_change(before, after, scope, (watts[0], watts[1]), weights)
            half, value = change.high - change.value, other.value - one.value
            ends = {"value": value, "low": value - half, "high": value + half}
            change = change.model_copy(update=ends)  # what is known for sure, as wear, comes on top
        else:
            change = _apart(one, other)
        found.append(_difference(name, one, other, change))
    return found


def _of_power(name: str, base: Side, changed: Side) -> tuple[str, Estimate, Estimate] | None:
    """The power that a quantity is a multiple of: its scope, before and after; else None."""
    if base.totals is None or changed.totals is None:
        return None
    held = base.answer.mode == changed.answer.mode == "equal_work"
    if name not in OF_POWER and not (name == "joules_per_useful_gb" and held):
        return None
    scope, field = ("device", name) if name == "device_power_watts" else (
        base.answer.scope.value, "power_watts"
    )  # fmt: skip
    if base.answer.scope != changed.answer.scope and scope != "device":
        return None
    one, other = getattr(base.totals, field), getattr(changed.totals, field)
    return None if one is None or other is None else (scope, one, other)


def _slope(told: Estimate, watts: Estimate) -> float:
    """By how much a quantity grows for a watt."""
    spread = watts.high - watts.low
    return (told.high - told.low) / spread if spread > 0 else told.value / watts.value


def _together(one: Estimate, other: Estimate) -> Estimate:
    """The change where the two err by one and the same: end less end."""
    ends = sorted((other.low - one.low, other.high - one.high))
    value = other.value - one.value
    return one.model_copy(update={"value": value, "low": ends[0], "high": ends[1]})


def _apart(one: Estimate, other: Estimate) -> Estimate:
    """The change where the two err apart: the ends' distances join in quadrature."""
    value = other.value - one.value
    down = ((other.value - other.low) ** 2 + (one.high - one.value) ** 2) ** 0.5
    up = ((other.high - other.value) ** 2 + (one.value - one.low) ** 2) ** 0.5
    evidence = weaker(one.evidence, other.evidence)
    return Estimate(value=value, low=value - down, high=value + up, evidence=evidence)


def _difference(name: str, one: Estimate, other: Estimate, change: Estimate) -> Difference:
    return Difference(
        quantity=name,
        base=one,
        changed=other,
        change=change,
        change_percent=100.0 * change.value / one.value if one.value else 0.0,
        certain=change.low > 0 or change.high < 0,
    )
