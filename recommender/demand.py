"""The work to be done and how it arrives, read out of a workload profile."""

from __future__ import annotations

from iojoule.model.evaluate.equal_work import Demand, rest_share
from iojoule.model.evaluate.latency import POISSON_ARRIVALS, Arrivals, arrivals_named
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
    requests = None if rate is None else rate / useful
    rest = rest_share(arrivals, requests, stated.idle_gap_seconds_p50)
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
