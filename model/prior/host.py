"""CPU and wall power of a host that nobody measured: a desktop or small server of four cores.

Every figure is an assumption from data sheets with a wide spread. It answers which way the watts
of a system go and by how much at most; whoever has a sensor measures the host
(`iojoule measure host`).

A device profile as it answers on another host: the user's, from `iojoule measure host`.

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
    HostPower,
    HostProfile,
    Parameter,
    SchedulerCost,
    SystemPower,
)
from iojoule.datasets.vocabulary import Evidence, HostStanding

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
                *(f"{host.host_id}: {gap}" for gap in host.gaps),
            ],
        }
    )


def on_host_of(profile: DeviceProfile, other: DeviceProfile) -> DeviceProfile:
    """The drive of one profile on the host of another: paths, CPU power, wall power and settings.

    Two drives are compared on one host. What nobody knows of that host stays unknown: another
    machine's watts say nothing about it.

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


HOST = "expected: a desktop or small server of four cores"

HOST_GAP = "CPU and wall power"
"""How the gap begins that this host fills."""

ASSUMED = (
    f"{HOST_GAP} are those of an assumed host of four cores: measure yours (iojoule measure host) "
    "and say --host"
)

CORES = 4

CORE_TIME_RATIO = 0.86
"""Core time of a request over that on the host of the paths. Desktops and small servers clock at
3.4 to 4 GHz (Intel ARK: Core i7-4790, Xeon E3-1230), that host at 3 GHz; a quarter of a request
waits for memory and gains nothing (`model.evaluate.operating_point`): 0.25 + 0.75 x 3 / 3.7."""

CPU = (
    ("idle_watts", 6.0, 3.0, "W", "packages of 80 W asleep draw 3 to 10 W"),
    ("package_watts", 5.0, 3.0, "W", "a package of 80 W out of deep sleep: ring and memory"),
    ("uncore_watts", 3.0, 2.0, "W", "caches and ring at the cores' clock"),
    (
        "core_watts",
        11.0,
        4.0,
        "W",
        "(80 W - 8 W) / 4 cores is 18 W with vector units; I/O has none",
    ),
    ("awake_core_watts", 0.8, 0.5, "W", "a core out of its sleep state"),
    (
        "wakeup_joules",
        1e-5,
        1e-5,
        "J",
        "10 us out of C1E (Haswell in Linux' intel_idle) at a tenth of a core's power",
    ),
)
"""Parameters by the names of `model.evaluate.host_power.PARAMETERS`: value, sd, unit and reason."""

FLOOR_WATTS = (20.0, 7.0)
"""Board, memory, fans and what a small supply takes without load."""

SLOPE = (1.15, 0.07)
"""Losses in proportion of regulators and supply: 80 PLUS to 80 PLUS Platinum."""

RELATIVE_SD = 0.05


def with_expected_host_power(profile: DeviceProfile) -> DeviceProfile:
    """The profile with CPU and wall power of such a host, where it has none; its speed stays.

    Performance was then measured on a host whose watts nobody knows.
    """
    if profile.host_power is not None:
        return profile
    return profile.model_copy(
        update={
            "host_power": expected_cpu(),
            "system_power": expected_wall(),
            "gaps": [*(gap for gap in profile.gaps if not gap.startswith(HOST_GAP)), ASSUMED],
        }
    )


def with_expected_host(profile: DeviceProfile) -> DeviceProfile:
    """The profile with speed, CPU and wall power of such a host, where it has none."""
    if profile.host_power is not None:
        return profile
    # how much an unknown host may differ is part of the surfaces' doubt
    host = at_speed(profile.host, CORE_TIME_RATIO, 0.0)
    return with_expected_host_power(profile).model_copy(
        update={"host": host.model_copy(update={"host_id": HOST, "cpu_cores": CORES})}
    )


def host_standing(profile: DeviceProfile) -> HostStanding:
    """What the CPU power of a profile's host rests on."""
    if profile.host_power is None:
        return "unknown"
    return "assumed" if profile.host_power.host_id == HOST else "known"


def expected_cpu() -> HostPower:
    """Watts of the packages."""
    return HostPower(
        host_id=HOST,
        scope="CPU packages",
        parameters=[_assumed(*parameter) for parameter in CPU],
        covariance=np.diag([sd**2 for _, _, sd, _, _ in CPU]).tolist(),
        cpu_cores=CORES,
        relative_sd=0.02,
    )


def expected_wall() -> SystemPower:
    """Watts at the wall."""
    floor = _assumed("floor_watts", *FLOOR_WATTS, "W", "board, memory, fans and an idle supply")
    slope = _assumed("slope", *SLOPE, "1", "losses of regulators and supply")
    return SystemPower(host_id=HOST, floor_watts=floor, slope=slope, relative_sd=RELATIVE_SD)


def _assumed(name: str, value: float, sd: float, unit: str, why: str) -> Parameter:
    return Parameter(
        name=name,
        value=value,
        sd=sd,
        unit=unit,
        evidence=Evidence.ASSUMED,
        source=f"assumption: {why}",
    )
