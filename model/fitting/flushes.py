"""What a flush costs, from runs that differ in nothing but their flushes.

A job that flushes after every n of its writes, and then waits, needs for a request

    1 / x = 1 / x0 + w s / n

where x0 is its rate without flushes, w the share of writes and s the time of a flush. So a pair of
runs gives s whatever the depth, if the drive writes back about as much at each flush.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import FlushCost, Parameter
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation

LEAST_SHARE = 0.1
"""Flushes that take less of the time than this are lost in what repeats differ by."""

LEAST_LOG_SD = 0.1
"""Of the time of a flush: how far one session lies from another is not in the pairs."""


def waits_for_flushes(one: Measurement) -> bool:
    """Whether a run is one of flushes: it says nothing of what a drive does without them."""
    return bool(one.workload.flush_every_writes) and one.workload.operation is not Operation.READ


def fit_flush(measurements: Sequence[Measurement]) -> FlushCost | None:
    """The time of a flush; None where no run with flushes has a twin without any.

    Runs with forced unit access are not looked at: they leave nothing to flush.
    """
    without: dict[str, list[float]] = defaultdict(list)
    for one in measurements:
        if not waits_for_flushes(one) and one.observations.iops:
            without[_key(one)].append(one.observations.iops)
    seconds, every = [], []
    for one in measurements:
        twins = without.get(_key(one))
        if not waits_for_flushes(one) or not one.observations.iops or not twins:
            continue
        apart = one.workload.flush_every_writes or 1
        share = 1.0 - float(one.workload.read_fraction or 0.0)
        longer = one.configuration.jobs * (1.0 / one.observations.iops - 1.0 / np.median(twins))
        if longer * one.observations.iops / one.configuration.jobs < LEAST_SHARE or share == 0.0:
            continue
        seconds.append(longer * apart / share)
        every.append(apart)
    if not seconds:
        return None
    middle = float(np.median(seconds))
    # half the distance between the 5th and the 95th percentile, as of a normal distribution
    low, high = np.quantile(np.log(seconds), [0.05, 0.95])
    return FlushCost(
        seconds=Parameter(
            name="flush_seconds", value=middle, sd=max(float(high - low) / 3.29, LEAST_LOG_SD),
            unit="s", evidence=Evidence.MEASURED,
            source=f"{len(seconds)} runs beside the same ones without flushes",
        ),
        every_writes=(min(every), max(every)),
    )  # fmt: skip


def _key(one: Measurement) -> str:
    """All that was asked of a run but its flushes, and the state that it met."""
    asked = one.workload.model_copy(update={"flush_every_writes": None})
    parts = (asked, one.configuration, one.state.model_copy(update=_HISTORY))
    return "".join(part.model_dump_json() for part in parts)


_HISTORY = {"host_bytes_written_since_purge": None, "seconds_since_last_write": None}
"""Of the state, what differs between any two runs."""
