"""Whether a metric was stable over its measurement interval.

After the systems specification of SNIA Emerald: the metric of every period of the interval is
smoothed, and the smoothed values must stay within 5 % of their mean. Coefficient and bound were
not checked against the text of the device specification: see docs/emerald.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SMOOTHING = 0.25
DEVIATION_MAX = 0.05
FEWEST_PERIODS = 5


@dataclass(frozen=True)
class Stability:
    """The verdict.

    Attributes:
        stable: Whether the smoothed metric stays within the bound; None = too few periods to say.
        deviation: Its largest distance from the mean, as a fraction of the mean.
        periods: How many there were.
    """

    stable: bool | None
    deviation: float | None
    periods: int


def stability(values: Sequence[float]) -> Stability:
    """Judge the metric of consecutive periods.

    Smoothed is s_i = 0.25 x_i + 0.75 s_(i-1), from the mean of all on, so that the first period
    weighs no more than any other.
    """
    if len(values) < FEWEST_PERIODS or np.mean(values) == 0:
        return Stability(None, None, len(values))
    mean = smoothed = float(np.mean(values))
    worst = 0.0
    for value in values:
        smoothed = SMOOTHING * value + (1 - SMOOTHING) * smoothed
        worst = max(worst, abs(smoothed / mean - 1))
    return Stability(worst <= DEVIATION_MAX, worst, len(values))
