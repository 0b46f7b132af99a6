"""The work to be done and how it arrives, read out of a workload profile."""

from __future__ import annotations

import numpy as np

from iojoule.model.equal_work import REST_SECONDS, Demand
from iojoule.model.served_latency import POISSON_ARRIVALS, Arrivals, arrivals_named
from iojoule.recommender.candidates import useful_limit
from iojoule.recommender.workload import WorkloadProfile


def demand_of(workload: WorkloadProfile, current_bytes: int) -> Demand:
    """Read the demand and how it arrives out of a workload profile."""
    stated = workload.workload
    useful, limit = useful_limit(workload, current_bytes)
    rate = stated.demand_bytes_per_second
    if stated.demand_operations_per_second is not None:
        rate = stated.demand_operations_per_second * useful
    arrivals, assumed = _arrivals(workload, rate)
    rest = 1.0
    if stated.idle_gap_seconds_p50 is not None:
        rest = float(stated.idle_gap_seconds_p50 >= REST_SECONDS)
    elif rate and arrivals in (Arrivals.POISSON, Arrivals.EVEN):
        rest = float(np.exp(-REST_SECONDS * rate / useful))
    return Demand(
        rate, float(useful), float(limit), stated.think_time_ns or 0.0, rest, arrivals, assumed,
        stated.burst_bytes or None, stated.idle_gap_seconds_p50 or None,
    )  # fmt: skip


def _arrivals(workload: WorkloadProfile, rate: float | None) -> tuple[Arrivals, bool]:
    """How requests come, and whether that is assumed: by chance, where nothing was said."""
    stated = workload.workload
    process = (stated.arrival_process or "").lower()
    if rate is None:
        return Arrivals.CLOSED, False
    if stated.idle_gap_seconds_p50 is not None or stated.burst_bytes is not None:
        return Arrivals.BURSTS, False
    arrivals = arrivals_named(process)
    return arrivals, arrivals is Arrivals.POISSON and process not in POISSON_ARRIVALS
