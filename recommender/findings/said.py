"""Words of findings that are no columns of a prediction, put into those that are.

Each is physics that a paper's wording stands for: the page cache, a request that lies across two
access units, and a demand instead of full speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import host_power, host_work
from iojoule.model.evaluate.bands import Band
from iojoule.model.evaluate.equal_work import Demand
from iojoule.model.evaluate.host_work import as_flushed, copy_cores
from iojoule.model.evaluate.prediction import Prediction

Floats = NDArray[np.float64]
Point = Mapping[str, Any]

LEAST_DEMAND = 1e-3
"""Requests a second that stand for none."""

UNALIGNED_SPEED = (0.5**0.5, 0.2)
"""Speed of requests across two access units, and log sd: the second unit is read beside the first
(1) or after it (1/2)."""

PART_BYTES = 512 * 1024
"""Largest command that a request is split into (`model.evaluate.host_work.MERGED_BYTES`)."""

BY_BYTES = frozenset(
    {
        "throughput_bytes_per_second", "bytes_per_joule", "device_power_watts",
        "cpu_power_watts", "system_power_watts",
    }
)  # fmt: skip
"""Quantities that do not ask how long a request takes or how many there are."""

NO_EFFECT = frozenset({"job_kind", "arrival_process"})
"""Words that change nothing here. Threads and processes submit through the same code. An arrival
process spaces the requests of a stated rate (fio, HOWTO, `rate_process`; `usec_for_io` of its
backend.c is called only where a rate is set); a think time without a rate is as long as stated."""


STANDING = {"000": {"fill_fraction": 1.0}}
"""What a paper did before each of its microbenchmarks: the thesis formats the drive and fills all
of it, so that neither cache nor mapping is at its best (000, chapter 5)."""


SUMMED_OVER_JOBS = {"000": frozenset({"latency_mean_ns", "latency_p99_ns"})}
"""Quantities of a run with several jobs that a paper's own program reports as the sum of the jobs'.
The thesis' draws the sum of the jobs' completion latencies, mean and 99th percentile, and divides
by their number only for energy-delay products (its repository t348575/energy-benchmark of July
2025, plots/fio-basic). Hence its 2.52 ms at 16 jobs beside 0.17 ms at depth 16, and an unchanged
energy-delay product (000, 5.4)."""


def jobs_counted(fact_id: str, section: str, quantity: str, point: Point) -> float:
    """How often a figure of the paper counts what one job sees."""
    summed = section.startswith("5") and quantity in SUMMED_OVER_JOBS.get(fact_id[:3], ())
    return float(point.get("jobs", 1)) if summed else 1.0


def standing(fact_id: str, section: str) -> dict[str, Any]:
    """Conditions of a finding that its paper states once for all."""
    return dict(STANDING.get(fact_id[:3], {})) if section.startswith("5") else {}


def asked_quantity(quantity: str, host: str | None) -> str:
    """What a finding's figure is: idle power that names a host is the wall's difference."""
    return "wall_idle_power_watts" if quantity == "idle_power_watts" and host else quantity


def split_parts(point: Point, quantities: Sequence[str]) -> dict[str, Any]:
    """A large request as the commands that the block layer makes of it, all in flight at once.

    Only where bytes and watts are asked: the latency is that of the last command.
    """
    size = int(point.get("request_bytes", 4096))
    if size <= PART_BYTES or not set(quantities) <= BY_BYTES:
        return dict(point)
    parts = size // PART_BYTES
    depth = int(point.get("queue_depth", 1)) * parts
    engine = "libaio" if point.get("engine") in ("psync", "posixaio") else point.get("engine")
    seen = {**point, "request_bytes": PART_BYTES, "queue_depth": depth}
    return seen if engine is None else {**seen, "engine": engine}


def as_columns(point: Point, *, disk: bool = False) -> dict[str, Any]:
    """The columns of a configuration that stand for what a finding says."""
    seen = as_flushed(point, disk=disk)
    for name in (*NO_EFFECT, "aligned"):
        seen.pop(name, None)
    return seen


def with_host_work(
    profile: DeviceProfile,
    prediction: Prediction,
    points: Sequence[Point],
    large_write_loss: float = 0.0,
) -> Prediction:
    """The prediction with copies of the page cache and the cost of unaligned and large requests.

    Args:
        profile: Whose host.
        prediction: Of the points' columns.
        points: What the finding says.
        large_write_loss: Log of what writes of several commands lose.
    """
    rates = prediction["throughput_bytes_per_second"].value
    copies = np.array([copy_cores(p, float(r)) for p, r in zip(points, rates, strict=True)])
    speed = np.array([UNALIGNED_SPEED[0] if p.get("aligned") is False else 1.0 for p in points])
    speed *= np.exp([-large_write_loss * _is_large_write(p) for p in points])
    if not copies.any() and (speed == 1.0).all():
        return prediction
    iops = prediction["iops"].value * speed
    known = prediction.activity
    costs = replace(known.costs, copy_ns=copies / iops * 1e9)
    gaps = host_power.gaps(profile.host_power)
    activity = replace(known, costs=costs, load=host_work.activity(costs, iops, None, gaps))
    bands = dict(prediction.bands)
    for name, exponent in (
        ("iops", 1),
        ("throughput_bytes_per_second", 1),
        ("latency_mean_ns", -1),
    ):
        bands[name] = _scaled(bands[name], speed**exponent)
    return replace(prediction, bands=bands, activity=activity)


def merged_share(point: Point) -> float:
    """Share of requests that ride along in another one's command.

    The block layer merges neighbours that one submission brings. A polling kernel thread takes
    what lies in the ring, from one request to all of them (their geometric mean, by default); a
    job that submits each request by itself leaves nothing to merge.
    """
    depth = float(point.get("queue_depth", 1))
    batch = depth**0.5 if point.get("submission_polling") else 1.0
    return max(1.0 - 1.0 / batch, 1e-3) if point.get("pattern") == "sequential" else 1e-3


def own_sd(point: Point, large_write_sd: float = 0.0) -> float:
    """Log sd of the speed that a word of the finding adds."""
    unaligned = UNALIGNED_SPEED[1] if point.get("aligned") is False else 0.0
    return float(np.hypot(unaligned, large_write_sd * _is_large_write(point)))


def _is_large_write(point: Point) -> bool:
    large = int(point.get("request_bytes", 4096)) > PART_BYTES
    return large and point.get("operation") == "write"


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
