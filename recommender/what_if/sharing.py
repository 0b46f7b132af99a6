"""Several drives of one host that share a load evenly: the part of each, and what all draw.

Each serves 1/n of the demand, of the bounds on throughput, of a burst and of the concurrency. The
host is one: what its CPU draws without work counts once, and what serving adds for every drive,

    P_n = P_host + n (P_1 - P_host),    P_1 at 1/n of the load.

Drives of one model err together, so the ends of the interval add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model import system_power
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.sla import MINIMA, POWER_MAXIMA
from iojoule.recommender.workload import WorkloadProfile
from iojoule.recommender.workload_fields import with_fields

_SHARED = ("demand_bytes_per_second", "demand_operations_per_second", "burst_bytes")


def host_watts(profile: DeviceProfile, scope: str) -> float:
    """What the host draws without work and without a drive, of a scope (device, cpu ...)."""
    if scope == "device" or profile.host_power is None:
        return 0.0
    idle = profile.host_power.parameters[0].value
    if scope == "system" and profile.system_power is not None:
        return float(system_power.watts(profile.system_power, np.array([idle]), np.zeros(1))[0][0])
    return idle


def watts_of_one(profile: DeviceProfile, scope: str, watts: float, drives: int) -> float:
    """What one drive with the host may draw, so that all draw `watts`."""
    if drives == 1:
        return watts
    host = host_watts(profile, scope)
    return host + (watts - host) / drives


def of_all(profile: DeviceProfile, scope: str, one: Estimate, drives: int) -> Estimate:
    """Power of all drives and their host from that of one with the host."""
    if drives == 1:
        return one
    host = host_watts(profile, scope)
    value, low, high = (host + drives * (end - host) for end in (one.value, one.low, one.high))
    return one.model_copy(update={"value": value, "low": max(low, 0.0), "high": high})


def times(one: Estimate, factor: float) -> Estimate:
    """So many times as much."""
    if factor == 1.0:
        return one
    ends = {name: getattr(one, name) * factor for name in ("value", "low", "high")}
    return one.model_copy(update=ends)


def part_of(workload: WorkloadProfile, profile: DeviceProfile, drives: int) -> WorkloadProfile:
    """What one of the drives is asked for."""
    if drives == 1:
        return workload
    found: dict[str, Any] = {
        f"workload.{name}": amount / drives
        for name in _SHARED
        if (amount := getattr(workload.workload, name)) is not None
    }
    for name, limit in workload.sla.bounds().items():
        if name in MINIMA:
            found[f"sla.{name}"] = limit / drives
        elif name in POWER_MAXIMA:
            scope = name.removesuffix("_power_watts_max")
            found[f"sla.{name}"] = watts_of_one(profile, scope, limit, drives)
    if isinstance(workload.concurrency_max, int):
        found["concurrency_max"] = max(1, workload.concurrency_max // drives)
    return with_fields(workload, found, f"the part of one of {drives} drives")
