"""The normal distribution: the quantile of every 90 % interval; light to import."""

from __future__ import annotations

import math

NORMAL_90 = 1.6448536269514722
"""Standard deviations on each side of a 90 % interval."""


def share_below(z: float) -> float:
    """Share of a standard normal distribution below z, 0 to 1."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
