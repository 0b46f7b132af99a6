"""Fitting the excess of a latency percentile over the mean (law in `model.evaluate.surface`)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from iojoule.datasets.profile import Tail
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.surface import CurveTerms, Knots, Points, log_tail_ratio

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

    def build(vector: Floats) -> Tail:
        return Tail(
            quantile="p99" if name == "p99" else "p999",
            intrinsic=float(np.exp(vector[0])),
            collision=[
                float(value) for value in np.exp(vector[1] + vector[5] * octaves + vector[6:])
            ],
            exponent=float(np.exp(vector[2])),
            saturation=float(np.exp(vector[3])),
            host_damping=float(np.exp(vector[4])),
        )

    def loss(vector: Floats) -> Floats:
        ratio = log_tail_ratio(build(vector), knots, points, terms, log_latency)
        return np.concatenate(
            [
                (ratio - target) / NOISE_SD,
                (vector[:6] - start[:6]) / prior_sd,
                vector[6:] / COLLISION_SD,
            ]
        )

    solution = least_squares(
        loss,
        start,
        bounds=(start - 6.0, start + 6.0),
        loss="soft_l1",
        f_scale=2.0,
        # Few points leave a valley, so flat that only differences and steps this fine end at the
        # same place on every machine.
        jac="3-point",
        ftol=1e-13,
        xtol=1e-11,
        gtol=1e-12,
        max_nfev=2000,
    )
    return build(solution.x)
