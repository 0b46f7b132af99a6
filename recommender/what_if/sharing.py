"""Several drives of one host that share a load evenly: the part of each, and what all draw.

Each serves 1/n of the demand, of the bounds on throughput, of a burst and of the concurrency, in
the same configuration. Drives of one model err together, so the ends of their intervals add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import system_power
from iojoule.model.evaluate.demanded import shared_gradients
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import Gradients, Layout, with_shared_surface
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Current, Observed, WorkloadProfile, with_fields
from iojoule.recommender.response import Estimate, Row
from iojoule.recommender.sla import MINIMA, POWER_MAXIMA

_SHARED = ("demand_bytes_per_second", "demand_operations_per_second", "burst_bytes")


@dataclass(frozen=True)
class Serving:
    """Drives that serve: who answers for them, what each is asked, as what, and how many."""

    recommender: Recommender
    workload: WorkloadProfile
    row: Row
    drives: int


def gradients_of(serving: Serving, drives: int | None = None) -> dict[str, Gradients]:
    """Power of all drives that serve, by scope.

    Args:
        serving: Who serves what.
        drives: As if there were so many; None takes those that there are.
    """
    recommender, row = serving.recommender, serving.row
    chosen = {name: getattr(row.configuration, name) for name in Current.model_fields}
    asked = serving.workload.model_copy(
        update={"current": Current.model_validate(chosen), "concurrency_max": "unbounded"}
    )
    judge, judged = recommender.as_configured(asked)
    frame, prediction, demand = judged.frame, judged.prediction, judge.question.demand
    work = with_shared_surface(judge.predictor, frame, prediction, judged.work)
    count = serving.drives if drives is None else drives
    return shared_gradients(recommender.layout, frame, prediction, work, count, demand.rest)


def power_of_all(serving: Serving, scope: str, one: Estimate) -> Estimate:
    """Power of all drives that serve, and of their host as the scope says.

    Args:
        serving: Who serves what.
        scope: device, device_cpu or system.
        one: The power of one drive with the host, as its row states it: its interval is wider than
            the law's own where the row was chosen from many, and so is that of all.
    """
    if serving.drives == 1:
        return one
    layout = serving.recommender.layout
    alone = _ends(layout, gradients_of(serving, 1)[scope])
    shared = _ends(layout, gradients_of(serving)[scope])
    value, low, high = shared
    wider_low = _ratio(one.value - one.low, alone[0] - alone[1])
    wider_high = _ratio(one.high - one.value, alone[2] - alone[0])
    ends = {
        "value": value,
        "low": max(value - wider_low * (value - low), 0.0),
        "high": value + wider_high * (high - value),
    }
    return one.model_copy(update=ends)


def _ends(layout: Layout, power: Gradients) -> tuple[float, float, float]:
    """Value and 90 % interval, W."""
    value, half = float(power.watts[0]), NORMAL_90 * float(power.sd(layout)[0])
    return value, value - half, value + half


def _ratio(one: float, other: float) -> float:
    return one / other if other > 0.0 else 1.0


def host_watts(profile: DeviceProfile, scope: str) -> float:
    """What the host draws without work and without a drive, of a scope (device, cpu ...)."""
    if scope == "device" or profile.host_power is None:
        return 0.0
    idle = profile.host_power.parameters[0].value
    if scope == "system" and profile.system_power is not None:
        return float(system_power.watts(profile.system_power, np.array([idle]), np.zeros(1))[0][0])
    return idle


def watts_of_one(profile: DeviceProfile, scope: str, watts: float, drives: int) -> float:
    """What one drive with the host may draw, so that all surely draw no more than `watts`.

    What serving adds to a host grows more slowly than the rate, so that n drives add at most n
    times what one adds: the bound errs on the safe side.
    """
    if drives == 1:
        return watts
    host = host_watts(profile, scope)
    return host + (watts - host) / drives


def times(one: Estimate, factor: float) -> Estimate:
    """So many times as much."""
    if factor == 1.0:
        return one
    ends = {name: getattr(one, name) * factor for name in ("value", "low", "high")}
    return one.model_copy(update=ends)


def part_of(workload: WorkloadProfile, profile: DeviceProfile, drives: int) -> WorkloadProfile:
    """What one of the drives is asked for.

    Situations are compared by what is predicted: a latency was measured in one of them alone.
    """
    workload = workload.model_copy(update={"observed": Observed()})
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
