"""A device profile as it answers on another host: the user's, from `iojoule measure host`.

What the drive does stays; what its host added is replaced. Paths that were run on the user's host
take its core time. Those that were not, and what a path adds to a request's latency, follow in
proportion: the same instructions on another processor.
"""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import (
    DeviceProfile,
    HostPath,
    HostPerformance,
    HostProfile,
    SchedulerCost,
)
from iojoule.datasets.vocabulary import Evidence

OTHER_PATH_SD = 0.25
"""Log sd of a path that follows others in proportion."""

UNKNOWN_SPEED_SD = 0.4
"""Log sd of paths on a host whose speed nobody measured: servers of one decade."""


def with_host(profile: DeviceProfile, host: HostProfile) -> DeviceProfile:
    """The profile with paths, CPU power, wall power and settings of another host.

    Wall power is left out where the host profile has none: another machine's floor says nothing.
    """
    gap = "" if host.performance else "; its paths are the reference host's, widened"
    return profile.model_copy(
        update={
            "host": _performance(profile.host, host, _speed(profile, host)),
            "host_power": host.power,
            "system_power": host.system,
            "host_operation": host.operation or profile.host_operation,
            "gaps": [
                *profile.gaps,
                f"the host is {host.host_id}, calibrated {host.measured_utc[:10]}{gap}",
                *(f"{host.host_id}: {one}" for one in host.gaps),
            ],
        }
    )


def on_host_of(profile: DeviceProfile, other: DeviceProfile) -> DeviceProfile:
    """The drive of one profile on the host of another: paths, CPU power, wall power and settings.

    Two drives are compared on one host. What nobody knows of that host stays unknown: another
    machine's watts say nothing about it.

    Args:
        profile: Of the drive that moves.
        other: Of the drive whose host it moves to.

    Returns:
        The profile itself where both have one host already.
    """
    parts = ("host", "host_power", "system_power", "host_operation")
    if all(getattr(profile, name) == getattr(other, name) for name in parts):
        return profile
    host = other.host_power.host_id if other.host_power is not None else other.host.host_id
    return profile.model_copy(
        update={
            # the drive's surfaces met another host: nothing is better than interpolated
            "host": other.host.model_copy(update={"calibrated_apart": True}),
            **{name: getattr(other, name) for name in parts[1:]},
            "gaps": [*profile.gaps, f"the host is {host}, that of {other.model_name}"],
        }
    )


def _speed(profile: DeviceProfile, host: HostProfile) -> tuple[float, float]:
    """Core time here over that on the reference host, and its log sd."""
    known = {(p.engine, p.completion, p.submission_polling): p for p in profile.host.paths}
    ratios = [
        np.log((path.core_time_ns + path.wakeup_ns) / (other.core_time_ns + other.wakeup_ns))
        for path in (host.performance.paths if host.performance else [])
        if (other := known.get((path.engine, path.completion, path.submission_polling)))
    ]
    if ratios:
        spread = float(np.std(ratios)) if len(ratios) > 1 else 0.0
        return float(np.exp(np.mean(ratios))), float(np.hypot(OTHER_PATH_SD, spread))
    before = profile.host_operation.clock if profile.host_operation else None
    now = host.operation.clock if host.operation else None
    if before is None or now is None:
        return 1.0, UNKNOWN_SPEED_SD
    ratio = before.reference_hertz.value / now.reference_hertz.value
    return ratio, float(np.hypot(0.3, before.reference_hertz.sd / before.reference_hertz.value))


def at_speed(reference: HostPerformance, ratio: float, unsure: float) -> HostPerformance:
    """The host's part of a request where core time is `ratio` times as long; log sd `unsure`."""
    each_byte = reference.core_seconds_per_byte
    return reference.model_copy(
        update={
            "paths": [_path(path, None, ratio, unsure) for path in reference.paths],
            "schedulers": [_scheduler(cost, ratio, unsure) for cost in reference.schedulers],
            "core_seconds_per_byte": each_byte.model_copy(
                update={"value": each_byte.value * ratio, "sd": each_byte.sd * ratio}
            )
            if each_byte
            else None,
        }
    )


def _performance(
    reference: HostPerformance, host: HostProfile, speed: tuple[float, float]
) -> HostPerformance:
    ran = {
        (path.engine, path.completion, path.submission_polling): path
        for path in (host.performance.paths if host.performance else [])
    }
    expected = at_speed(reference, *speed)
    return expected.model_copy(
        update={
            "host_id": host.host_id,
            "cpu_cores": host.cpu_cores,
            "paths": [
                _path(path, own, *speed)
                if (own := ran.get((path.engine, path.completion, path.submission_polling)))
                else scaled
                for path, scaled in zip(reference.paths, expected.paths, strict=True)
            ],
            "calibrated_apart": True,
        }
    )


def _path(path: HostPath, ran: HostPath | None, ratio: float, unsure: float) -> HostPath:
    if ran is None:
        return path.model_copy(
            update={
                "added_latency_ns": path.added_latency_ns * ratio,
                "core_time_ns": path.core_time_ns * ratio,
                "wakeup_ns": path.wakeup_ns * ratio,
                "relative_sd": float(np.hypot(path.relative_sd, unsure)),
                "evidence": _no_surer(path.evidence),
                "source": f"{path.source}; in proportion to the paths of this host",
            }
        )
    own = (ran.core_time_ns + ran.wakeup_ns) / (path.core_time_ns + path.wakeup_ns)
    return ran.model_copy(
        update={
            "added_latency_ns": path.added_latency_ns * own,
            "relative_sd": float(np.hypot(ran.relative_sd, path.relative_sd)),
            # measured, but not with this drive: its surfaces met another host
            "evidence": Evidence.INTERPOLATED,
        }
    )


def _scheduler(cost: SchedulerCost, ratio: float, unsure: float) -> SchedulerCost:
    return cost.model_copy(
        update={
            "added_latency_ns": cost.added_latency_ns * ratio,
            "added_core_time_ns": cost.added_core_time_ns * ratio,
            "serial_ns": cost.serial_ns * ratio,
            "relative_sd": float(np.hypot(cost.relative_sd, unsure)),
            "evidence": _no_surer(cost.evidence),
        }
    )


def _no_surer(evidence: Evidence) -> Evidence:
    """Evidence of what follows in proportion: extrapolated, or still an assumption."""
    return Evidence.ASSUMED if evidence is Evidence.ASSUMED else Evidence.EXTRAPOLATED
