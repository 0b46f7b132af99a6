"""How far power follows the work: energy proportionality and dynamic range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DRAWS = 2000


@dataclass(frozen=True)
class Proportionality:
    """With intervals of 95 % as (value, low, high).

    Attributes:
        dynamic_range: 1 - idle watts / watts at the peak.
        index: 1 - (A - 1/2) / (1/2), A the area below power over the share of the peak rate, both
            normalised to the peak: 1 = proportional, 0 = power does not depend on work (Wong and
            Annavaram, MICRO 2012, EP).
        curvature: Of the quadratic through the points, watts; negative = the first work costs
            most.
    """

    dynamic_range: tuple[float, float, float]
    index: tuple[float, float, float]
    curvature: tuple[float, float, float]


def proportionality(
    shares: Floats, watts: Floats, errors: Floats, seed: int = 1
) -> Proportionality | None:
    """From powers over the share of the peak rate; intervals by drawing from the errors.

    Args:
        shares: In [0, 1], the first 0 (idle), the last the peak, growing, shape (n,).
        watts: Shape (n,).
        errors: Standard errors of the watts, shape (n,).
        seed: Of the draws.

    Returns:
        None with fewer than three points, or where they do not go from idle to the peak.
    """
    if len(shares) < 3 or shares[0] != 0 or (np.diff(shares) <= 0).any() or watts[-1] <= 0:
        return None
    share = shares / shares[-1]
    drawn = watts + np.random.default_rng(seed).normal(size=(_DRAWS, len(watts))) * errors
    all_watts = np.vstack([watts, drawn])
    peak = all_watts[:, -1:]
    ranges = 1 - all_watts[:, 0] / peak[:, 0]
    areas = np.trapezoid(all_watts / peak, share, axis=1)
    bends = np.polyfit(share, all_watts.T, 2)[0]
    return Proportionality(_interval(ranges), _interval(2 - 2 * areas), _interval(bends))


def _interval(values: Floats) -> tuple[float, float, float]:
    low, high = np.percentile(values[1:], (2.5, 97.5))
    value = float(values[0])
    return value, min(float(low), value), max(float(high), value)
