"""Host paths as arrays: what each engine, completion, polling and scheduler costs a request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, HostPath, path_key
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Engine, Evidence
from iojoule.model.columns import Codes
from iojoule.model.frame import COMPLETIONS, ENGINES, SCHEDULERS, Frame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HostPaths:
    """Costs by path code (see `code_of`); NaN where the combination is impossible.

    Attributes:
        added_latency_ns: Added to an unloaded request.
        core_ns: Core time a request at depth.
        wakeup_ns: Further core time at depth 1.
        serial_ns: Part of a request under one lock of the scheduler; at least a picosecond.
        relative_sd: Uncertainty of these, log units.
        measured: Whether this drive was measured on this path.
        keys: Name of the path (`path_key`), empty where impossible.
    """

    added_latency_ns: Floats
    core_ns: Floats
    wakeup_ns: Floats
    serial_ns: Floats
    relative_sd: Floats
    measured: NDArray[np.bool_]
    keys: list[str]


def code_of(frame: Frame) -> Codes:
    """Path code of each row."""
    return (
        (frame.engine * 2 + frame.completion) * 2 + frame.submission_polling.astype(np.intp)
    ) * len(SCHEDULERS) + frame.scheduler


def host_paths(profile: DeviceProfile) -> HostPaths:
    """Lay the profile's host paths out by code."""
    size = len(ENGINES) * 4 * len(SCHEDULERS)
    cost = np.full((5, size), np.nan)
    measured = np.zeros(size, dtype=bool)
    keys = [""] * size
    schedulers = {cost.scheduler.value: cost for cost in profile.host.schedulers}
    for path in profile.host.paths:
        for name in SCHEDULERS:
            extra = schedulers.get(name)
            if name != "none" and (extra is None or Engine(path.engine) in BYPASSING_ENGINES):
                continue
            code = _code(path, name)
            keys[code] = path_key(path.engine, path.completion, path.submission_polling, name)
            serial = 1e-3
            added, core, sd = path.added_latency_ns, path.core_time_ns, path.relative_sd
            measured[code] = path.evidence == Evidence.MEASURED
            if extra is not None and name != "none":
                added += extra.added_latency_ns
                core += extra.added_core_time_ns
                serial = max(extra.serial_ns, serial)
                sd = float(np.hypot(sd, extra.relative_sd))
                measured[code] &= extra.evidence == Evidence.MEASURED
            cost[:, code] = added, core, path.wakeup_ns, serial, sd
    return HostPaths(
        added_latency_ns=cost[0],
        core_ns=cost[1],
        wakeup_ns=cost[2],
        serial_ns=cost[3],
        relative_sd=cost[4],
        measured=measured,
        keys=keys,
    )


def _code(path: HostPath, scheduler: str) -> int:
    engine = ENGINES.index(path.engine)
    completion = COMPLETIONS.index(path.completion)
    return ((engine * 2 + completion) * 2 + int(path.submission_polling)) * len(
        SCHEDULERS
    ) + SCHEDULERS.index(scheduler)
