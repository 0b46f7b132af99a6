"""Monotone cubic interpolation (PCHIP) between many series at once.

`scipy.interpolate.PchipInterpolator` makes one curve a series, which takes a hundred times as long
as asking it; a fit of 10^4 rows asks tens of thousands of short series. Between two neighbours the
curve depends on them and on one more on each side, so all answers are worked out together from
four points each. Slopes as in F. N. Fritsch and J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984),
three-point ones at the ends, kept monotone as in C. Moler, Numerical Computing with MATLAB, 2004;
the same numbers as SciPy's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def four_points(x: Floats, y: Floats, upper: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Positions and values around each interval, NaN beyond the ends of the series.

    Args:
        x: Positions of a series, increasing, at least two.
        y: Its values.
        upper: Of each of m answers the first position above it, 1 to len(x) - 1.

    Returns:
        Two arrays of shape (m, 4): before the interval, its two ends, after it.
    """
    nothing = [np.nan]
    place = upper[:, None] + np.arange(-1, 3)
    return np.concatenate([nothing, x, nothing])[place], np.concatenate([nothing, y, nothing])[
        place
    ]


def between(x: Floats, y: Floats, at: Floats) -> Floats:
    """The curve's value between the two middle points of each row.

    Args:
        x: Positions, shape (m, 4), as from `four_points`.
        y: Values, likewise.
        at: Where, shape (m,).
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        steps = np.diff(x, axis=1)
        slopes = np.diff(y, axis=1) / steps
        left = _slope(steps[:, 0], steps[:, 1], slopes[:, 0], slopes[:, 1])
        right = _slope(steps[:, 1], steps[:, 2], slopes[:, 1], slopes[:, 2])
        left = np.where(
            np.isnan(left), _end(steps[:, 1], steps[:, 2], slopes[:, 1], slopes[:, 2]), left
        )
        right = np.where(
            np.isnan(right), _end(steps[:, 1], steps[:, 0], slopes[:, 1], slopes[:, 0]), right
        )
    h = steps[:, 1]
    t = (at - x[:, 1]) / h
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * y[:, 1] + t * (1 - t) ** 2 * h * left
        + t**2 * (3 - 2 * t) * y[:, 2] + t**2 * (t - 1) * h * right
    )  # fmt: skip


def _slope(h0: Floats, h1: Floats, m0: Floats, m1: Floats) -> Floats:
    """Between two intervals: a weighted harmonic mean of their slopes, 0 where they turn."""
    w0, w1 = 2 * h1 + h0, h1 + 2 * h0
    mean = (w0 + w1) / (w0 / m0 + w1 / m1)
    return np.where(m0 * m1 <= 0, 0.0, mean)


def _end(h0: Floats, h1: Floats, m0: Floats, m1: Floats) -> Floats:
    """At the end of a series, from its last two intervals; a line where there is but one."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    slope = np.where(np.sign(slope) != np.sign(m0), 0.0, slope)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3 * np.abs(m0))
    slope = np.where(steep, 3 * m0, slope)
    return np.where(np.isnan(m1), m0, slope)
