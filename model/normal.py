"""The normal distribution, quantile and widest half width of 90 % intervals; light to import."""

from __future__ import annotations

import math

NORMAL_90 = 1.6448536269514722
"""Standard deviations on each side of a 90 % interval."""

MOST_HALF_WIDTH = math.log(300.0)
"""No latency or percentile is known to less than a factor of 300 to each side (assumption): few
rows left out of a series that jumps, or a demand next to capacity, would else make it hours."""


def share_below(z: float) -> float:
    """Share of a standard normal distribution below z, 0 to 1."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
