"""How far a curve may be off that rests on facts of other drives, at each point of it.

The parameters' standard deviations go through the curve by its derivatives (delta method): where
requests wait for nobody the unloaded latency counts, past the knee the capacity, where the
host is the bottleneck its core time, and around the bends their sharpness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile.evidence import CurveDoubt
from iojoule.model.surface import CurveTerms, Knots, Points

Floats = NDArray[np.float64]


def variance_shares(
    doubt: CurveDoubt, knots: Knots, points: Points, terms: CurveTerms
) -> dict[str, Floats]:
    """Variance of log mean latency by what it comes from; each has shape (n,).

    Returns:
        `unloaded` (the drive's own latency), `capacity` (with what the two share), `sharpness`,
        `host` and `form` (what drives do beside the curve).
    """
    x, at = knots.log2_bytes, np.maximum(points.log2_bytes, knots.access_unit_log2)
    unloaded_sd = np.interp(at, x, doubt.unloaded_sd)
    capacity_sd = np.interp(at, x, doubt.capacity_sd)
    correlation = np.interp(at, x, doubt.correlation)
    k = np.exp(np.interp(at, x, knots.log_sharpness))
    waiting = _share(k * terms.log_load)
    hosted = _share(knots.host_sharpness * terms.log_host_excess)
    own = 1.0 - np.minimum(points.added_latency_ns * np.exp(-terms.log_unloaded), 1.0)
    by_unloaded = (1.0 - hosted) * (1.0 - waiting) * own * unloaded_sd
    by_capacity = (1.0 - hosted) * waiting * capacity_sd
    gap = np.abs(terms.log_load)
    bend = np.log1p(np.exp(-k * gap)) / k + gap * _share(-k * gap)
    by_host = (hosted + (1.0 - hosted) * (1.0 - waiting) * (1.0 - own)) * doubt.host_sd
    return {
        "unloaded": by_unloaded**2,
        # latency falls with capacity: what moves both together cancels
        "capacity": by_capacity**2 - 2.0 * correlation * by_unloaded * by_capacity,
        "sharpness": ((1.0 - hosted) * bend * doubt.sharpness_sd) ** 2,
        "host": by_host**2,
        "form": np.full_like(by_host, doubt.form_sd**2),
    }


def latency_sd(doubt: CurveDoubt, knots: Knots, points: Points, terms: CurveTerms) -> Floats:
    """Standard deviation of log mean latency, shape (n,)."""
    shares = variance_shares(doubt, knots, points, terms)
    return np.asarray(np.sqrt(np.maximum(sum(shares.values()), doubt.form_sd**2)))


def _share(log_odds: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -50.0, 50.0))))
