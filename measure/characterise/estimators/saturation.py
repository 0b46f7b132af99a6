"""At which depth a drive saturates: the closed-loop law, fitted with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Floats = NDArray[np.float64]

MODEL_ERROR = 0.03
"""What the law misses of a drive, relative; 0.8 to 1.6 % on simulated drives, up to 10 % where the
host is the bottleneck."""
SHARE = 0.95
_SHARPNESS = (0.4, 20.0)


@dataclass(frozen=True)
class Saturation:
    """X(N) = ((R0 / N)^k + (1 / Xmax)^k)^(-1/k), a smooth minimum of N / R0 and Xmax.

    Attributes:
        unloaded_seconds: R0.
        unloaded_log_error: Standard error of its logarithm.
        rate_max: Xmax, per second.
        rate_log_error: Standard error of its logarithm.
        knee: R0 Xmax, the depth at which the two bounds meet (Little's law).
        knee_log_error: Standard error of its logarithm.
        sharpness: k.
    """

    unloaded_seconds: float
    unloaded_log_error: float
    rate_max: float
    rate_log_error: float
    knee: float
    knee_log_error: float
    sharpness: float

    def rate(self, depth: Floats) -> Floats:
        """The law."""
        return _law(depth, self.unloaded_seconds, self.rate_max, self.sharpness)

    def depth_of_share(self, share: float = SHARE) -> float:
        """The depth at which so much of the largest rate is reached."""
        # in logarithms: share^-k - 1 underflows for a sharp knee
        inner = math.expm1(-self.sharpness * math.log(share))
        return self.knee * math.exp(-math.log(inner) / self.sharpness)


def _law(depth: Floats, unloaded: float, rate_max: float, sharpness: float) -> Floats:
    slow = np.log(depth) - math.log(unloaded)
    least = np.minimum(slow, math.log(rate_max))
    gap = np.abs(slow - math.log(rate_max))
    return np.asarray(np.exp(least - np.log1p(np.exp(-sharpness * gap)) / sharpness))


def fit_saturation(
    depths: Sequence[float], rates: Sequence[float], relative_errors: Sequence[float]
) -> Saturation | None:
    """Fit the law to rates over depth; None with fewer than three depths.

    Least squares in logarithms, each rate weighed by its own error and `MODEL_ERROR` together;
    a weak prior keeps k between 1 and 5 where the data do not tell. The covariance is that of the
    linearised problem, widened where the residuals are larger than these errors say.
    """
    depth, rate = np.asarray(depths, float), np.asarray(rates, float)
    if len(np.unique(depth)) < 3 or (rate <= 0).any():
        return None
    sigma = np.hypot(np.asarray(relative_errors, float), MODEL_ERROR)

    def misfit(parameters: Floats) -> Floats:
        unloaded, most, sharp = np.exp(parameters)
        told = np.log(_law(depth, float(unloaded), float(most), float(sharp)))
        prior = (parameters[2] - math.log(2.2)) / 0.8
        return np.append((told - np.log(rate)) / sigma, prior)

    lower = [math.log(1e-9), math.log(rate.max() * 0.5), math.log(_SHARPNESS[0])]
    upper = [math.log(1e4), math.log(rate.max() * 1e3), math.log(_SHARPNESS[1])]
    start = np.array(
        [math.log(float((depth / rate).min())), math.log(rate.max() * 1.05), math.log(2.2)]
    )
    fit = least_squares(misfit, np.clip(start, lower, upper), bounds=(lower, upper))
    jacobian = np.asarray(fit.jac)
    covariance = np.linalg.pinv(jacobian.T @ jacobian)
    freedom = max(len(depth) - 2, 1)
    covariance *= max(1.0, float(np.sum(fit.fun[:-1] ** 2)) / freedom)
    unloaded, most, sharp = (float(one) for one in np.exp(fit.x))
    both = covariance[0, 0] + covariance[1, 1] + 2 * covariance[0, 1]
    return Saturation(
        unloaded_seconds=unloaded,
        unloaded_log_error=math.sqrt(covariance[0, 0]),
        rate_max=most,
        rate_log_error=math.sqrt(covariance[1, 1]),
        knee=unloaded * most,
        knee_log_error=math.sqrt(max(both, 0.0)),
        sharpness=sharp,
    )
