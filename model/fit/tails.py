"""Fitting the excess of a latency percentile over the mean (law in `model.evaluate.surface`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

from iojoule.datasets.profile import Tail
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.surface import CurveTerms, Knots, Points, TailLaw, tail_ratio

INTRINSIC = {"p99": 0.12, "p999": 0.3}
"""Excess at one request in flight over the unloaded latency, before the data speak: what the
980 PRO's depth-1 rows show, within a factor of 1.6."""

COLLISION_SD = 0.15
"""Log sd of the collision term around its trend over request size."""

COLLISION_SLOPE_SD = 0.35
"""Log sd of that trend, an octave. A request of more flash pages waits for the slowest of them:
with each page on a die of its own it meets twice as many others an octave, ln 2, and with all on
one die no more; the trend starts from none, and twice as many is two of its standard deviations."""

NOISE_SD = 0.05
"""Log units by which one row's percentile may stray."""


def fit_tail(
    name: str, knots: Knots, points: Points, terms: CurveTerms, log_latency: Floats, target: Floats
) -> Tail:
    """Fit one percentile.

    Args:
        name: p50, p99 or p999; the median keeps a constant ratio to the mean.
        knots: The curve.
        points: n rows.
        terms: The curve at the rows.
        log_latency: log of their mean latency, ns.
        target: log(percentile / mean), shape (n,).
    """
    if name == "p50":
        return Tail(
            quantile="p50",
            intrinsic=float(np.median(target)),
            collision=[],
            exponent=1.0,
            saturation=1.0,
            host_damping=0.0,
        )
    start = np.concatenate(
        [[np.log(INTRINSIC[name]), -1.0, -0.6, 0.0, -1.5, 0.0], np.zeros(len(knots.log2_bytes))]
    )
    prior_sd = np.array([0.5, 1.0, 0.3, 1.0, 1.0, COLLISION_SLOPE_SD])
    octaves = knots.log2_bytes - knots.log2_bytes[0]

    def collision(vector: Floats) -> Floats:
        return np.asarray(vector[..., 1:2] + vector[..., 5:6] * octaves + vector[..., 6:])

    def law(vector: Floats) -> TailLaw:
        intrinsic, _, exponent, saturation, damping = (
            np.exp(vector[..., place : place + 1]) for place in range(5)
        )
        return TailLaw(intrinsic, collision(vector), exponent, saturation, damping)

    def loss(vector: Floats) -> Floats:
        ratio = tail_ratio(law(vector), knots, points, terms, log_latency)
        return np.concatenate(
            [
                (ratio - target) / NOISE_SD,
                (vector[..., :6] - start[:6]) / prior_sd,
                vector[..., 6:] / COLLISION_SD,
            ],
            axis=-1,
        )

    def slopes(vector: Floats) -> Floats:
        return central_differences(loss, vector).T

    solution = least_squares(
        loss,
        start,
        bounds=(start - 6.0, start + 6.0),
        loss="soft_l1",
        f_scale=2.0,
        # Few points leave a valley, so flat that only differences and steps this fine end at the
        # same place on every machine.
        jac=slopes,
        ftol=1e-13,
        xtol=1e-11,
        gtol=1e-12,
        max_nfev=2000,
    )
    intrinsic, _, exponent, saturation, damping, _ = np.exp(solution.x[:6]).tolist()
    return Tail(
        quantile="p99" if name == "p99" else "p999",
        intrinsic=intrinsic,
        collision=np.exp(collision(solution.x)).tolist(),
        exponent=exponent,
        saturation=saturation,
        host_damping=damping,
    )


def central_differences(loss: Callable[[Floats], Floats], at: Floats) -> Floats:
    """Slopes of residuals; the error is the square of that of one-sided differences.

    Args:
        loss: From (..., parameters) to (..., residuals); asked for all vectors at once, which takes
            little longer than one.
        at: The parameters, shape (p,).

    Returns:
        Shape (p, residuals).
    """
    width = np.diag(np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(at)))
    above, below = at + width, at - width
    apart = np.diagonal(above) - np.diagonal(below)
    return (loss(above) - loss(below)) / apart[:, None]
