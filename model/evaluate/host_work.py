"""What the requests make of the host at any rate: cores busy, awake and woken; a core's ceiling.

Writes through the page cache: what the drive sees of them, and what the copy costs.

A buffered write is a copy into memory. The kernel's flusher writes dirty pages later: it merges
neighbouring ones into requests of up to the block layer's limit and keeps the drive's queue full.
So a run long enough to wait for the drive (`balance_dirty_pages`) goes at the drive's rate for
large, deep requests where the pages lie in a row. Scattered ones keep their size; sorting and
depth remain. Direct writes wait for each request instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, HostPerformance, HostPower, SystemPower
from iojoule.datasets.vocabulary import Completion, Engine, Evidence
from iojoule.model.evaluate import host_power
from iojoule.model.evaluate.bands import EVIDENCE, INTERPOLATED, Codes, Direction, Floats
from iojoule.model.evaluate.frame import COMPLETIONS, ENGINES, Frame
from iojoule.model.evaluate.operating_point import (
    Load,
    OperatingPoint,
    in_gaps_beyond,
    operating_point,
)
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.surface import Points

MERGED_BYTES = 512 * 1024
"""Largest request that the block layer makes of neighbouring pages where the drive allows more, as
the studies' hosts had it: the default of `max_sectors_kb` (BLK_DEF_MAX_SECTORS, Linux
include/linux/blkdev.h) was 512 KiB until "bump BLK_DEF_MAX_SECTORS to 2560" (August 2015) made it
1280, and is 4096 since commit 9b8b84879d4a (June 2025)."""

FLUSH_DEPTH = 32
"""Requests in flight of the flusher: the queue of a SATA drive (NCQ), and what an NVMe drive of
that time needs to be busy."""

COPY_SECONDS_PER_BYTE = 0.25e-9
"""A copy from user memory at 10 GB/s, and about 0.6 us to find, dirty and clean each page of
4 KiB (assumption)."""


def as_flushed(point: Mapping[str, Any], *, disk: bool = False) -> dict[str, Any]:
    """The configuration that reaches the drive, without the column `buffered`.

    The flusher writes the dirty pages of a file in the order of their addresses (write_cache_pages
    in mm/page-writeback.c). Where random writes cover a file that fits into memory no gaps are
    left: to a disk they are sequential. An SSD does not care.

    Reads are left as they are: what a cache already holds is no question of the drive.
    """
    seen = {name: value for name, value in point.items() if name != "buffered"}
    if not point.get("buffered") or seen.get("operation") != "write":
        return seen
    size = int(seen.get("request_bytes", 4096))
    if disk:
        seen["pattern"] = "sequential"
    if seen.get("pattern") == "sequential" or size > MERGED_BYTES:
        seen["request_bytes"] = MERGED_BYTES
    # the flusher's own way down: asynchronous, one thread
    return {**seen, "engine": "libaio", "queue_depth": FLUSH_DEPTH}


def copy_cores(point: Mapping[str, Any], bytes_per_second: float) -> float:
    """Cores' worth of time that copying takes."""
    copies = bool(point.get("buffered")) and point.get("operation") == "write"
    return COPY_SECONDS_PER_BYTE * bytes_per_second if copies else 0.0


def awake_share(requests_awake: Floats, copies: Floats) -> Floats:
    """Share of the time that a package is awake, when requests alone keep it so for a share of it.

    Requests come one by one, and each keeps the package awake beyond its own core time
    (`model.evaluate.host_power`). A writer who is ahead of the drive copies many pages at a stretch
    and then sleeps for 10 to 200 ms (`balance_dirty_pages` in mm/page-writeback.c of Linux), so
    copies keep it awake for as long as they take and no longer.
    """
    return np.asarray(1.0 - (1.0 - requests_awake) * (1.0 - np.minimum(copies, 1.0)))


PAGE_BYTES = 4096.0
"""Core time a byte counts from here on: the first page is part of the request's own."""

SUBMISSION_IDLE_SECONDS = 1.0
"""How long the kernel thread of submission polling spins without a request before it sleeps: the
default of `sq_thread_idle` (io_uring/sqpoll.c, io_sq_offload_create: one second)."""


CORE_TIME_SD = 0.2
"""Log sd of the core time of a measured path: how far the terms of request, wake-up and bytes are
from the CPU columns of the 980 PRO sweeps."""


@dataclass(frozen=True)
class HostCosts:
    """What a request of each row costs the host, whatever the rate; every array has shape (n,).

    Attributes:
        request_ns: Core time of a request, its bytes included, without a wake-up.
        wakeup_ns: Core time of a wake-up.
        copy_ns: Core time of a request spent in long stretches (`page_cache`).
        jobs: Jobs that serve.
        cores: Cores that they may use.
        depth: Requests in flight of a job.
        polled: Whether a job spins while it has a request in flight.
        submission_polling: Whether a kernel thread spins for each job.
        always: Whether a job spins although it has no request.
        busy_log_sd: Log sd of the core time of the path; 0 where spinning hides it.
    """

    request_ns: Floats
    wakeup_ns: Floats
    copy_ns: Floats
    jobs: Floats
    cores: Floats
    depth: Floats
    polled: NDArray[np.bool_]
    submission_polling: NDArray[np.bool_]
    always: NDArray[np.bool_]
    busy_log_sd: Floats


def costs(
    profile: DeviceProfile, frame: Frame, request_ns: Floats, wakeup_ns: Floats, path_sd: Floats
) -> HostCosts:
    """The costs of the rows of a frame.

    Args:
        profile: Whose cores and bytes.
        frame: The questions.
        request_ns: Core time of a request, without its bytes and without a wake-up.
        wakeup_ns: Core time of a wake-up.
        path_sd: Log sd of the host path's costs.
    """
    polled = np.asarray(frame.completion == COMPLETIONS.index(Completion.POLLED))
    return HostCosts(
        request_ns=request_ns + bytes_ns(profile.host, frame.request_bytes),
        wakeup_ns=wakeup_ns,
        copy_ns=np.zeros(len(frame)),
        jobs=np.asarray(frame.jobs, dtype=float),
        cores=np.minimum(frame.cores, profile.host.cpu_cores).astype(float),
        depth=np.asarray(frame.queue_depth, dtype=float),
        polled=polled,
        submission_polling=np.asarray(frame.submission_polling, dtype=bool),
        always=np.asarray(frame.engine == ENGINES.index(Engine.SPDK)),
        busy_log_sd=np.where(polled, 0.0, np.hypot(path_sd, CORE_TIME_SD)),
    )


def activity(
    costs: HostCosts,
    iops: Floats,
    latency_ns: Floats | None = None,
    gaps: tuple[float, float] = host_power.GAPS,
) -> Load:
    """What the host does at so many requests a second: at full speed, or at the demanded rate.

    A request costs its own core time, that of its bytes, and a wake-up if it finds the core
    asleep. At depth 1 that is always so; deeper, completions find it asleep for the share of the
    time that it is not busy. With rho the busy share of a core, x requests a second and core, c
    the core time of a request, w that of a wake-up, and d = 0 at depth 1 and 1 beyond,

        rho = x (c + w (1 - rho d)),    wake-ups = x (1 - rho d)

    is linear in rho. On the host of the 980 PRO sweeps this says 0.72, 0.33 and 0 wake-ups a
    request at depths 4, 16 and 64 (4 KiB); the context switches of those runs 0.65, 0.27 and 0.

    A job that polls completions spins while it has a request in flight. By Little's law each of
    its q slots is occupied for the share p = x R / q, x its requests a second and R their mean
    time in the drive, so it spins for the share 1 - (1 - p)^q: p at depth 1, 1 - exp(-x R) at many
    slots and low load, 1 at full speed. The thread of submission polling spins until
    `SUBMISSION_IDLE_SECONDS` have passed without a request.

    Args:
        costs: What a request costs.
        iops: Requests a second.
        latency_ns: Mean time in the drive at that rate; None: at full speed.
        gaps: Idle gaps of deep and shallow sleep, seconds (`host_power.gaps`).
    """
    serving = np.minimum(costs.jobs, costs.cores)
    rate = iops * 1e-9 / serving
    deep = np.clip(costs.depth - 1.0, 0.0, 1.0)
    each = costs.request_ns + costs.wakeup_ns
    share = np.minimum(rate * each / (1.0 + rate * costs.wakeup_ns * deep), 1.0)
    woken = iops * (1.0 - share * deep)
    if costs.polled.any():
        spins = _spinning(costs, iops, latency_ns, serving)
        share = np.where(costs.polled, np.maximum(share, spins), share)
        woken = np.where(costs.polled, iops * (1.0 - spins), woken)
    load = load_of(serving * share, serving, woken, gaps)
    if costs.submission_polling.any():
        load = _with_threads(load, costs, iops)
    return _with_copies(load, iops * 1e-9 * costs.copy_ns) if costs.copy_ns.any() else load


def _spinning(costs: HostCosts, iops: Floats, latency_ns: Floats | None, serving: Floats) -> Floats:
    """Share of the time for which a core spins that serves jobs which poll."""
    if latency_ns is None:
        return np.ones(len(iops))
    slots = costs.jobs * costs.depth
    occupied = np.minimum(iops * latency_ns * 1e-9 / slots, 1.0)
    return np.where(costs.always, 1.0, 1.0 - (1.0 - occupied) ** (slots / serving))


def load_of(
    busy_cores: Floats,
    serving_cores: Floats,
    wakeups_per_second: Floats,
    gaps: tuple[float, float] = host_power.GAPS,
) -> Load:
    """How long cores and packages are awake, from how busy and how often woken they are.

    A core whose share rho is busy sleeps in gaps of the mean g. It enters a sleep state where the
    gap is longer than a threshold t, so that with gamma distributed gaps (`GAP_SHAPE` k, u = t / g)

        asleep = (1 - rho) exp(-k u) sum over j <= k of (k u)^j / j!

    of its time: 1 at rest, and none far below the threshold. Each wake-up out of deep sleep takes
    the exit latency. A package is woken by all of its cores, so its gaps are those between any two
    wake-ups, whichever cores they are spread over; while it is awake, one core is at least.

    Args:
        busy_cores: Cores' worth of time spent.
        serving_cores: Cores among which work and wake-ups are spread evenly.
        wakeups_per_second: Of all of them.
        gaps: Thresholds of deep and shallow sleep, seconds.
    """
    serving = np.maximum(serving_cores, 1e-9)
    idle = 1.0 - np.minimum(busy_cores / serving, 1.0)
    at_rest = idle**serving_cores
    # of a core, of the package in deep sleep, and of the package idle, which takes no exit
    (deep, asleep, idling), (deep_slope, asleep_slope, idling_slope) = _asleep(
        np.array([idle, at_rest, at_rest]),
        np.array([wakeups_per_second / serving, wakeups_per_second, wakeups_per_second]),
        np.array([[gaps[0]], [gaps[0]], [gaps[1]]]),
        np.array([[host_power.DEEP_EXIT_SECONDS], [host_power.DEEP_EXIT_SECONDS], [0.0]]),
    )
    awake = serving_cores * (1.0 - deep)
    spread = awake >= 1.0 - asleep
    return Load(
        busy_cores=busy_cores,
        serving_cores=serving_cores,
        awake_cores=np.where(spread, awake, 1.0 - asleep),
        wakeups_per_second=wakeups_per_second,
        package_awake=1.0 - asleep,
        package_active=1.0 - idling,
        awake_cores_slope=np.where(spread, serving_cores * deep_slope, asleep_slope),
        package_awake_slope=asleep_slope,
        package_active_slope=idling_slope,
    )


def _asleep(
    idle: Floats, wakeups: Floats, threshold: Floats, exit_seconds: Floats
) -> tuple[Floats, Floats]:
    """Share of the time in a sleep state, and its fall by the log of the threshold.

    Args:
        idle: Share of the time without work.
        wakeups: A second.
        threshold: Least gap, seconds; all arguments broadcast.
        exit_seconds: Latency that a wake-up takes.
    """
    share, slope = in_gaps_beyond(threshold * wakeups / np.maximum(idle, 1e-9))
    left = idle * np.exp(-wakeups * exit_seconds)
    return left * share, left * slope


def _with_threads(load: Load, costs: HostCosts, iops: Floats) -> Load:
    """The load with the kernel threads that poll for submissions, one for each job."""
    each = -np.expm1(-iops / costs.jobs * SUBMISSION_IDLE_SECONDS)
    each = np.where(costs.submission_polling, each, 0.0)
    threads = np.where(costs.submission_polling, costs.jobs, 0.0)
    room = costs.cores
    sleeping = (1.0 - each) ** threads
    busy = np.minimum(load.busy_cores + threads * each, room)
    # where threads take the cores' last idle time, no request finds a core asleep
    idle = np.maximum(load.serving_cores - load.busy_cores, 1e-9)
    left = np.minimum(room - busy, idle) / idle
    return Load(
        busy_cores=busy,
        serving_cores=np.minimum(load.serving_cores + threads, room),
        awake_cores=np.minimum(load.awake_cores + threads * each, room),
        wakeups_per_second=load.wakeups_per_second * left,
        package_awake=1.0 - (1.0 - load.package_awake) * sleeping,
        package_active=1.0 - (1.0 - load.package_active) * sleeping,
        awake_cores_slope=load.awake_cores_slope,
        package_awake_slope=load.package_awake_slope * sleeping,
        package_active_slope=load.package_active_slope * sleeping,
    )


def _with_copies(load: Load, copies: Floats) -> Load:
    """The load with core time in long stretches, `copies` cores' worth (`page_cache`)."""
    rest = 1.0 - np.minimum(copies, 1.0)
    return Load(
        busy_cores=load.busy_cores + copies,
        serving_cores=load.serving_cores + np.ceil(copies),
        awake_cores=load.awake_cores + copies,
        wakeups_per_second=load.wakeups_per_second,
        package_awake=awake_share(load.package_awake, copies),
        package_active=awake_share(load.package_active, copies),
        awake_cores_slope=load.awake_cores_slope,
        package_awake_slope=load.package_awake_slope * rest,
        package_active_slope=load.package_active_slope * rest,
    )


def at_rate(
    profile: DeviceProfile,
    frame: Frame,
    costs: HostCosts,
    iops: Floats,
    latency_ns: Floats | None,
    bursts: Floats | None = None,
) -> tuple[Load, host_power.Drawn]:
    """Load and settings' effect at a rate; governors and sleep states follow that load.

    Args:
        profile: Whose host.
        frame: The questions.
        costs: Their costs, for instance `Prediction.activity.costs`.
        iops: Requests a second, in the mean.
        latency_ns: Their mean time in the drive at that rate; None: at full speed.
        bursts: Share of the time in which all requests come, at full speed; NaN where they are
            spread over all of it.
    """
    gaps = host_power.gaps(profile.host_power)
    load = activity(costs, iops, latency_ns, gaps)
    if bursts is not None and not np.isnan(bursts).all():
        load = _in_bursts(costs, iops, bursts, load, gaps)
    operating = operating_point(profile.host_operation, frame.host)
    if operating is not None and operating.follows_load:
        operating = operating.at_load(load)
    return load, drawn(profile, load, operating)


def _in_bursts(
    costs: HostCosts, iops: Floats, bursts: Floats, load: Load, gaps: tuple[float, float]
) -> Load:
    """The load of work that comes in bursts: at full speed for their share, then at rest.

    The law of CPU power is linear in the load, so the mean of both loads is that of the power.
    """
    share = np.where(np.isnan(bursts), 1.0, bursts)
    full = activity(costs, iops / share, None, gaps)
    rest = activity(costs, np.zeros(len(iops)), np.zeros(len(iops)), gaps)

    def mean(name: str) -> Floats:
        both = share * getattr(full, name) + (1.0 - share) * getattr(rest, name)
        return np.asarray(np.where(np.isnan(bursts), getattr(load, name), both))

    return Load(**{field.name: mean(field.name) for field in fields(Load)})


def bytes_ns(host: HostPerformance, request_bytes: Floats) -> Floats:
    """Core time that the bytes of a request cost beyond its first page."""
    each = host.core_seconds_per_byte
    if each is None:
        return np.zeros(len(request_bytes))
    return each.value * 1e9 * np.maximum(request_bytes - PAGE_BYTES, 0.0)


def drawn(profile: DeviceProfile, load: Load, operating: OperatingPoint | None) -> host_power.Drawn:
    """What the settings do to CPU power."""
    rows = len(load.busy_cores)
    zero, ones = np.zeros(rows), np.ones(rows)
    if operating is None:
        return host_power.Drawn(ones, zero, ones, zero, zero, zero)
    floor, floor_sd = operating.floor_watts(load, profile.host.cpu_cores)
    uncore, uncore_sd = operating.uncore_factor()
    return host_power.Drawn(
        ones * operating.busy_watts_factor,
        ones * operating.busy_watts_sd,
        ones * uncore,
        ones * uncore_sd,
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
        "context_switches_per_second": (switches, switches_log_sd(work)),
        "iops_per_core_max": (1e9 / points.core_ns, each),
    }


def switches_log_sd(work: Floats) -> Floats:
    """Log sd of the context switches of core time that is known to the log sd `work`."""
    return np.hypot(work, SWITCHES_SD)


def power_evidence(power: HostPower, operating: OperatingPoint | None, rows: int) -> Codes:
    """Evidence of CPU power: that of the law, or of the host's settings where it is weaker."""
    code = _code([parameter.evidence for parameter in power.parameters])
    codes = np.full(rows, code, dtype=np.intp)
    return codes if operating is None else np.maximum(codes, operating.evidence)


def wall_evidence(power: SystemPower, device: Codes, cpu: Codes) -> Codes:
    """Evidence of wall power: never stronger than that of drive and CPU below it."""
    own = _code([power.floor_watts.evidence, power.slope.evidence])
    return np.maximum(np.maximum(device, cpu), own)


def _code(evidence: list[Evidence]) -> int:
    """The weakest; what rests on measurements is at best interpolated, for nobody ran the row."""
    return max([INTERPOLATED, *(EVIDENCE.index(code.value) for code in evidence)])
