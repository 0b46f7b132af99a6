"""CPU and wall power of a host that nobody measured: a desktop or small server of four cores.

Every figure is an assumption from data sheets with a wide spread. It answers which way the watts
of a system go and by how much at most; whoever has a sensor measures the host
(`iojoule measure host`).
"""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import DeviceProfile, HostPower, Parameter, SystemPower
from iojoule.datasets.vocabulary import Evidence, HostStanding
from iojoule.model.with_host import at_speed

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
waits for memory and gains nothing (`model.operating_point`): 0.25 + 0.75 x 3 / 3.7."""

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
"""Parameters by the names of `model.host_power.PARAMETERS`: value, sd, unit and reason."""

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
        parameters=[_assumed(*one) for one in CPU],
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
        name=name, value=value, sd=sd, unit=unit, evidence=Evidence.ASSUMED,
        source=f"assumption: {why}",
    )  # fmt: skip
