"""Little's law as a gate for measurements: throughput x mean latency / requests in flight = 1.

A closed loop that always keeps queue depth x jobs requests in flight obeys the law exactly. Most
real fio runs sit within 1 %, polled low-latency ones within 5 %; what is further off was not
running with the depth, the latency or the throughput it claims. The law says nothing about a
run that a rate, a think time or flushes hold back: there the depth asked for is not in force.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import DataQualityError

if TYPE_CHECKING:  # what reads tables needs the extra `fit`
    from iojoule.datasets.store import Dataset

WARN_ABOVE = 0.03
"""Distance of the ratio from 1 that is mentioned in the provenance."""

FAIL_ABOVE = 0.08
"""Distance of the ratio from 1 at which a measurement is refused."""

USUAL_CAUSES = (
    "usual causes: a think time or a rate limit that is not stated, another queue depth in force "
    "than the one stated, a ramp inside the measured time, latencies of sqthread_poll"
)


def littles_ratios(dataset: Dataset) -> NDArray[np.float64]:
    """Throughput x mean latency / (queue depth x jobs), one per row.

    Returns:
        Shape (len(dataset),); NaN where throughput or mean latency is unknown, where a demand or
        a think time holds the depth down, and where flushes take time that is in no latency.
    """
    in_flight = dataset.column("queue_depth") * dataset.column("jobs")
    ratios = dataset.column("iops") * dataset.column("latency_mean_ns") * 1e-9 / in_flight
    held_back = dataset.column("think_time_ns") > 0
    held_back |= dataset.column("flush_every_writes") > 0
    for demand in ("demand_bytes_per_second", "demand_operations_per_second"):
        held_back |= ~np.isnan(dataset.column(demand))
    ratios[held_back] = np.nan
    return np.asarray(ratios, dtype=np.float64)


def check_littles_law(dataset: Dataset, source: Path, where: Callable[[int], str]) -> list[str]:
    """Refuse a dataset with a row that is more than 8 % off the law.

    Args:
        dataset: What to check.
        source: The file; warnings, which are stored, bear only its name.
        where: Names row i (from 0) in it: its line or job.

    Returns:
        A warning that counts and names the rows more than 3 % off, if there are any.

    Raises:
        DataQualityError: A row is more than 8 % off; names the worst one and the usual causes.
    """
    ratios = littles_ratios(dataset)
    distance = np.nan_to_num(np.abs(ratios - 1.0))
    if (distance > FAIL_ABOVE).any():
        worst = int(np.argmax(distance))
        count = int((distance > FAIL_ABOVE).sum())
        raise DataQualityError(littles_message(f"{source}, {where(worst)}", ratios[worst], count))
    doubtful = np.flatnonzero(distance > WARN_ABOVE)
    if not doubtful.size:
        return []
    named = ", ".join(where(int(index)) for index in doubtful[:3])
    more = f" and {doubtful.size - 3} more" if doubtful.size > 3 else ""
    low, high = ratios[doubtful].min(), ratios[doubtful].max()
    return [
        (
            f"{source.name}: {named}{more}: throughput x mean latency / concurrency is between "
            f"{low:.3f} and {high:.3f}, more than {WARN_ABOVE:.0%} off Little's law"
        )
    ]


def littles_message(where: str, ratio: float, count: int = 1) -> str:
    """The refusal of a measurement that contradicts itself."""
    others = f" (the worst of {count} rows)" if count > 1 else ""
    return (
        f"{where}: throughput x mean latency / concurrency = {ratio:.3f}{others}, more than "
        f"{FAIL_ABOVE:.0%} off Little's law; {USUAL_CAUSES}; correct what is stated or leave the "
        "run out"
    )
