"""What the requests make of the host: cores busy and woken, switches, and the ceiling of a core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, HostPower, SystemPower
from iojoule.datasets.vocabulary import Completion, Evidence
from iojoule.model import host_power
from iojoule.model.columns import Codes
from iojoule.model.direction import Direction
from iojoule.model.evidence import EVIDENCE, INTERPOLATED
from iojoule.model.frame import COMPLETIONS, Frame
from iojoule.model.operating_point import NORMAL_90, Load, OperatingPoint, wake_share
from iojoule.model.surface import Points

Floats = NDArray[np.float64]

PAGE_BYTES = 4096.0
"""Core time a byte counts from here on: the first page is part of the request's own."""


def load(
    profile: DeviceProfile,
    frame: Frame,
    iops: Floats,
    request_ns: Floats,
    wakeup_ns: Floats,
) -> Load:
    """Cores busy and woken at so many requests a second.

    A request costs its own core time, that of its bytes, and a wake-up if it finds the core
    asleep. Which share do follows from how busy the core is (`operating_point.wake_share`), and
    that from the wake-ups: rho = x (c + w (1 - rho d)), x requests a second and core, d = 0 at
    depth 1 and 1 beyond, is linear in rho.

    Args:
        profile: Whose cores and bytes.
        frame: The questions.
        iops: Requests a second.
        request_ns: Core time of a request, without a wake-up.
        wakeup_ns: Core time of a wake-up.
    """
    polled = frame.completion == COMPLETIONS.index(Completion.POLLED)
    cores = np.minimum(frame.cores, profile.host.cpu_cores)
    active = np.minimum(frame.jobs, cores)
    each_ns = request_ns + bytes_ns(profile, frame.request_bytes)
    rate = iops * 1e-9 / active
    deep = np.clip(frame.queue_depth - 1.0, 0.0, 1.0)
    share = rate * (each_ns + wakeup_ns) / (1.0 + rate * wakeup_ns * deep)
    spent = active * np.minimum(share, 1.0)
    busy = np.where(polled, active, spent) + frame.submission_polling * active
    busy = np.minimum(busy, cores)
    woken = iops * wake_share(spent, active, frame.queue_depth, polled)
    return Load(busy, active, woken, host_power.awake_share(busy))


def bytes_ns(profile: DeviceProfile, request_bytes: Floats) -> Floats:
    """Core time that the bytes of a request cost beyond its first page."""
    each = profile.host.core_seconds_per_byte
    if each is None:
        return np.zeros(len(request_bytes))
    return each.value * 1e9 * np.maximum(request_bytes - PAGE_BYTES, 0.0)


def drawn(profile: DeviceProfile, load: Load, operating: OperatingPoint | None) -> host_power.Drawn:
    """What drives CPU power beyond cores and engine."""
    rows = len(load.wakeups_per_second)
    zero, one = np.zeros(rows), np.ones(rows)
    if operating is None:
        return host_power.Drawn(load.wakeups_per_second, one, zero, one, zero, zero, zero)
    floor, floor_sd = operating.floor_watts(load, profile.host.cpu_cores)
    uncore, uncore_sd = operating.uncore_factor()
    return host_power.Drawn(
        load.wakeups_per_second,
        one * operating.busy_watts_factor,
        one * operating.busy_watts_sd,
        one * uncore,
        one * uncore_sd,
        zero + floor,
        zero + floor_sd,
    )


def unsure(mixed: Direction, frame: Frame, points: Points, operating: OperatingPoint) -> None:
    """Widen latencies by what the settings leave open, and lower the evidence; in place.

    Only the host's share of a request is unsure: what it adds to an unloaded one, or the queue
    for its cores.
    """
    queued = np.exp(points.log_requests - points.log_cores) * points.core_ns
    own = np.maximum(points.added_latency_ns, queued)
    share = np.minimum(own / np.exp(mixed.log_value["latency"]), 1.0)
    sd = NORMAL_90 * share * operating.log_sd(points.core_ns)
    for name in mixed.half_width:
        mixed.half_width[name] = np.hypot(mixed.half_width[name], sd)
    mixed.evidence[:] = np.maximum(mixed.evidence, operating.evidence)


CORE_TIME_SD = 0.2
"""Log sd of the core time of a measured path: how far the terms of request, wake-up and bytes are
from the CPU columns of the 980 PRO sweeps."""

SWITCHES_SD = 0.25
"""Log sd of the share of requests that wake a core, from the same sweeps."""


def bands(
    points: Points, busy_cores: Floats, switches: Floats, rate_sd: Floats, path_sd: Floats
) -> dict[str, tuple[Floats, Floats]]:
    """Value and log sd of what the host does, by quantity.

    The ceiling of a core is the reciprocal of a request's core time at the depth of the row.

    Args:
        points: Of the rows.
        busy_cores: Cores' worth of time spent on I/O.
        switches: Context switches a second.
        rate_sd: Log sd of the request rate.
        path_sd: Log sd of the host path's costs.
    """
    each = np.hypot(path_sd, CORE_TIME_SD)
    work = np.hypot(rate_sd, each)
    return {
        "cpu_utilisation": (busy_cores, work),
        "context_switches_per_second": (switches, np.hypot(work, SWITCHES_SD)),
        "iops_per_core_max": (1e9 / points.core_ns, each),
    }


def power_evidence(power: HostPower, operating: OperatingPoint | None, rows: int) -> Codes:
    """Evidence of CPU power: that of the law, or of the host's settings where it is weaker."""
    code = _code([parameter.evidence for parameter in power.parameters])
    codes = np.full(rows, code, dtype=np.intp)
    return codes if operating is None else np.maximum(codes, operating.evidence)


def wall_evidence(power: SystemPower, cpu: Codes) -> Codes:
    """Evidence of wall power: never stronger than that of the CPU below it."""
    return np.maximum(cpu, _code([power.floor_watts.evidence, power.slope.evidence]))


def _code(evidence: list[Evidence]) -> int:
    """The weakest; what rests on measurements is at best interpolated, for nobody ran the row."""
    return max([INTERPOLATED, *(EVIDENCE.index(one.value) for one in evidence)])
