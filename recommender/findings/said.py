"""Words of findings that are no columns of a prediction, put into those that are.

Each is physics that a paper's wording stands for: the page cache, a request that lies across two
access units, arrivals by chance, and a demand instead of full speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.model.page_cache import as_flushed, copy_cores
from iojoule.model.predictor import Band, Prediction
from iojoule.recommender.equal_work import Demand

Point = Mapping[str, Any]

LEAST_DEMAND = 1e-3
"""Requests a second that stand for none."""

UNALIGNED_SPEED = (0.5**0.5, 0.2)
"""Speed of requests across two access units, and log sd: the second unit is read beside the first
(1) or after it (1/2)."""

SAME_PATH = frozenset({"job_kind"})
"""Says nothing to the drive: threads and processes submit through the same code."""

EXPONENTIAL_P50, EXPONENTIAL_P99 = float(np.log(2.0)), float(np.log(100.0))
"""Quantiles of an exponential gap over its mean: arrivals of a Poisson process."""


def as_columns(point: Point) -> dict[str, Any]:
    """The columns of a configuration that stand for what a finding says."""
    seen = as_flushed(point)
    for name in (*SAME_PATH, "aligned"):
        seen.pop(name, None)
    process = seen.pop("arrival_process", "fixed")
    if process == "poisson" and "think_time_ns" in seen:
        mean = 1e-9 * float(seen["think_time_ns"])
        seen["idle_gap_seconds_p50"] = EXPONENTIAL_P50 * mean
        seen["idle_gap_seconds_p99"] = EXPONENTIAL_P99 * mean
    return seen


def with_host_work(prediction: Prediction, points: Sequence[Point]) -> Prediction:
    """The prediction with copies of the page cache and the cost of unaligned requests."""
    rates = prediction["throughput_bytes_per_second"].value
    copies = np.array([copy_cores(p, float(r)) for p, r in zip(points, rates, strict=True)])
    speed = np.array([UNALIGNED_SPEED[0] if p.get("aligned") is False else 1.0 for p in points])
    if not copies.any() and (speed == 1.0).all():
        return prediction
    activity = replace(
        prediction.activity, busy_cores=prediction.activity.busy_cores * speed + copies
    )
    bands = dict(prediction.bands)
    for name, exponent in (
        ("iops", 1),
        ("throughput_bytes_per_second", 1),
        ("latency_mean_ns", -1),
    ):
        bands[name] = _scaled(bands[name], speed**exponent)
    return replace(prediction, bands=bands, activity=activity)


def own_sd(point: Point) -> float:
    """Log sd of the speed that a word of the finding adds."""
    return UNALIGNED_SPEED[1] if point.get("aligned") is False else 0.0


def demand(points: Sequence[Point], full_speed: Demand) -> Demand:
    """The demand that settings name, the first one's for all; full speed where none does."""
    stated = points[0].get("demand_operations_per_second")
    if stated is None:
        return full_speed
    useful = float(points[0].get("request_bytes", 4096))
    rate = max(float(stated), LEAST_DEMAND) * useful
    return replace(full_speed, bytes_per_second=rate, useful_bytes=useful)


def _scaled(band: Band, factor: Any) -> Band:
    return Band(band.value * factor, band.low * factor, band.high * factor, band.evidence)
