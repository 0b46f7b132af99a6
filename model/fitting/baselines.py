"""What a storage engineer would do without a model: the baselines to beat.

Both see one series at a time: rows that share everything but the left-out axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.optimize import nnls

Floats = NDArray[np.float64]


def interpolate(x: Floats, y: Floats, at: float) -> float:
    """Monotone interpolation in log-log (PCHIP); beyond the data along the last two points.

    Args:
        x: At least two distinct positions, positive.
        y: Positive values.
        at: Where to answer.
    """
    order = np.argsort(x)
    log_x, log_y, log_at = np.log(x[order]), np.log(y[order]), np.log(at)
    if log_x[0] <= log_at <= log_x[-1]:
        return float(np.exp(PchipInterpolator(log_x, log_y)(log_at)))
    first, second = (0, 1) if log_at < log_x[0] else (-2, -1)
    slope = (log_y[second] - log_y[first]) / (log_x[second] - log_x[first])
    return float(np.exp(log_y[first] + slope * (log_at - log_x[first])))


def hyperbola(x: Floats, y: Floats, at: float, *, rising: bool) -> float:
    """Plain hyperbola y = Y x / (x + h) for a rate, the straight line a + b x for a time.

    Both are one law (a rate is x over its time), fitted by non-negative least squares on
    relative errors of the time.
    """
    time = x / y if rising else y
    design = np.stack([np.ones_like(x), x], axis=1) / time[:, None]
    (a, b), _ = nnls(design, np.ones_like(x))
    answer = max(a + b * at, 1e-12)
    return float(at / answer if rising else answer)
