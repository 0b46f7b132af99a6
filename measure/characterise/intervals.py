"""Estimates with intervals, and missing ones with reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

from scipy.stats import norm

from iojoule.datasets.characteristics import CONFIDENCE, Estimate

Z = float(norm.ppf(0.5 + CONFIDENCE / 2))
"""Half width of a 95 % interval in standard errors."""


def estimated(
    value: float, error: float, unit: str, method: str, *, least: float | None = None
) -> Estimate:
    """An estimate with a normal error; `least` bounds it from below, for instance at 0."""
    low, high = value - Z * error, value + Z * error
    if least is not None:
        low, high, value = max(low, least), max(high, least), max(value, least)
    return Estimate(value=value, low=low, high=high, unit=unit, method=method)


def between(value: float, low: float, high: float, unit: str, method: str) -> Estimate:
    """A value with an interval that was found otherwise; it is widened to hold the value."""
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), unit=unit, method=method
    )


def mean_of(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error: that of the values' own, or of their scatter if it is larger.

    Fewer than three values tell no scatter.
    """
    count = len(values)
    error = math.hypot(*errors) / count
    if count > 2:
        error = max(error, stdev(values) / math.sqrt(count))
    return mean(values), error


def missing(
    reason: str, unit: str, method: str, *, low: float | None = None, high: float | None = None
) -> Estimate:
    """Not found; a bound that is known may be stated."""
    return Estimate(reason=reason, unit=unit, method=method, low=low, high=high)


def ratio(
    top: float, top_error: float, bottom: float, bottom_error: float, method: str
) -> Estimate:
    """Top over bottom, the interval in logarithms (delta method); both must be above 0."""
    if top <= 0 or bottom <= 0:
        return missing("one of the two is not above 0, so they have no ratio", "1", method)
    error = math.hypot(top_error / top, bottom_error / bottom)
    value = top / bottom
    spread = math.exp(Z * error)
    return between(value, value / spread, value * spread, "1", method)


def differs(first: float, first_error: float, second: float, second_error: float) -> bool:
    """Whether two values differ by more than chance at three standard errors."""
    return abs(first - second) > 3 * math.hypot(first_error, second_error)
