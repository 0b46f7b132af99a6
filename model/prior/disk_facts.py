"""What is known of a hard disk: its data sheet, and disks of its width where it says nothing.

Medians with log-normal standard deviations. Stated figures come first; what a sheet leaves out is
expected of disks of its width, 3.5 or 2.5 inches.

The mechanics of a hard disk: seeking, rotation, transfer by zone, and queued commands.

A request to a random place waits for the arm and then for the platter:

    S(1) = seek + half a revolution + bytes / rate.

The time of a seek over a share d of the stroke grows as a + b sqrt(d) where the arm accelerates and
brakes (Ruemmler and Wilkes, An introduction to disk drive modeling, IEEE Computer 27(3), 1994; long
seeks go in a line, which the mean hides). Between two random places the mean of sqrt(d) is 8/15 of
the stroke's, so that track-to-track and average seek of a data sheet give a and b. The Hitachi
Travelstar 5K320's (1 and 12 ms) give 21.6 ms for its full stroke of 20 ms.

With n commands queued the drive takes the one that is positioned soonest: the mean service falls as
n^(-1/5) (`QUEUE_EXPONENT`); here the positioning does, for a transfer takes as long as ever. Tracks
further out hold more: the rate falls from the first address to the last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.catalogue import Drive, Fact
from iojoule.datasets.links import NCQ_DEPTH
from iojoule.model.evaluate.bands import Floats

MEAN_ROOT = 8.0 / 15.0
"""Mean of sqrt(d) over pairs of random places: the integral of 2 (1 - d) sqrt(d) from 0 to 1."""

QUEUE_EXPONENT = 0.2
"""Service over that of one command falls as depth^-0.2 with shortest access time first: the fifth
root that Thomasian gives (ACM SIGARCH Computer Architecture News 39(2), 2011). It was checked on no
measurement here, so its doubt is part of every interval (`model.prior.disk.EXPONENT_SD`). 32
queued commands then double the rate of one."""

INNER_OVER_OUTER = 0.5
"""Rate of the last track over that of the first: assumption, about the ratio of the radii."""

MEAN_OVER_OUTER = 0.5 * (1.0 + INNER_OVER_OUTER)
"""Rate at which a whole disk is read over that of the first track: bytes of a track go as its
radius r, so the mean time of a byte is the integral of r (1 / r) over that of r."""


def rotation_seconds(rpm: float) -> float:
    """Mean wait for the platter: half a revolution, s."""
    return 30.0 / rpm


_STEPS = 400
"""Places and angles at which the distribution of a single positioning is taken."""


def positioning_quantiles(
    track_to_track: float, average: float, rpm: float, levels: Floats
) -> Floats:
    """Quantiles of seek and rotation of a request to a random place, s, shape as `levels`.

    Distances between random places have the density 2 (1 - d); angles are all alike likely.

    Args:
        track_to_track: Seek to the next track, s.
        average: Between random places of the whole disk, s.
        rpm: Revolutions a minute.
        levels: From 0 to 1.
    """
    share = (np.arange(_STEPS) + 0.5) / _STEPS
    apart = 1.0 - np.sqrt(1.0 - share)
    seek = track_to_track + (average - track_to_track) / MEAN_ROOT * np.sqrt(apart)
    turn = 2.0 * rotation_seconds(rpm) * share
    return np.asarray(np.quantile(np.add.outer(seek, turn), levels))


def queued_share(commands: Floats) -> Floats:
    """Positioning time over that of a single command, by the commands in flight."""
    return np.asarray(np.clip(commands, 1.0, NCQ_DEPTH) ** -QUEUE_EXPONENT)


EXACT_SD, TYPICAL_SD, BOUND_SD = 0.03, 0.12, 0.3
"""Log sds of a stated figure: of the mechanics, of a typical drive, and of a bound."""

MEAN_OF_BOUND = 0.7
"""Typical over greatest time that a data sheet allows: assumption."""


@dataclass(frozen=True)
class Expected:
    """What disks of one width do where a sheet is silent: median and log sd each.

    Attributes:
        rpm: Revolutions a minute.
        seek: Average read seek, s.
        idle: Watts spinning, heads on track.
        seek_ratio: Watts of ceaseless seeking over idle.
        transfer_ratio: Watts of ceaseless transfer over idle.
        standby: Watts with the platters still.
        spin_up_ratio: Mean watts of a spin-up over idle.
    """

    rpm: tuple[float, float]
    seek: tuple[float, float]
    idle: tuple[float, float]
    seek_ratio: tuple[float, float]
    transfer_ratio: tuple[float, float]
    standby: tuple[float, float]
    spin_up_ratio: tuple[float, float]


EXPECTED = {
    3.5: Expected(
        (7200.0, 0.13),
        (0.0085, 0.15),
        (6.2, 0.3),
        (1.5, 0.12),
        (1.27, 0.12),
        (0.96, 0.2),
        (3.2, 0.25),
    ),
    2.5: Expected(
        (5400.0, 0.15),
        (0.012, 0.15),
        (1.6, 0.4),
        (1.78, 0.15),
        (1.63, 0.25),
        (0.25, 0.5),
        (2.8, 0.3),
    ),
}
"""Medians over the catalogue's disks of that width (idle 3.5: 7.5, 5.33, 9.3, 6.39, 5.2 and 4.5 W;
standby 1.0, 1.06, 0.8 and 1.0 W; seeking 12.5 / 7.5 and 12.6 / 9.3 less its 20 % idle; spin-up 25.5
/ 7.5, 18.2 / 5.33, 25.5 / 9.3), at the rpm beside them. Transfer over idle: 8.1 / 6.4 W (WD Re
technical reference 2679-771339, table 2.4.2) for 3.5; for 2.5 the Hitachi Travelstar 5K320 and the
Seagate ST320LT030 (`_at_heads`): seeking 1.82 and 1.75, reads 1.32 and 2.0 times idle."""

RATE = (1.5e8, 0.3)
"""Rate of the first track of a disk of 2 TB at 7,200 rpm, bytes/s, and log sd: assumption; it grows
with the rpm and with the fourth root of the capacity (tracks and bits share its growth, platters
take the other half)."""

TRACK_TO_TRACK = (0.001, 0.3)
"""Seconds: the Hitachi Travelstar 5K320's."""

WRITE_SEEK_EXTRA = 0.001
"""Seconds that a seek for a write takes longer, to settle more exactly (likewise)."""

SPIN_UP_SECONDS = (5.2, 0.5)
"""Geometric mean of the ten models of the catalogue whose SMART data say it, and its log sd."""

READY_SECONDS = 1.0
"""From full speed to ready: load the heads, read the calibration (assumption)."""

SPIN_DOWN_SECONDS = (11.0, 0.4)
"""Data sheets allow 12 s (Seagate Barracuda 7200.8) to 20 s (Constellation ES.2) at the most."""

ROTATION_EXPONENT, ROTATION_SHARE = 2.8, 0.7
"""Watts that keep platters turning grow as rpm^2.8 (windage; Gurumurthi, Sivasubramaniam and
Natarajan, ISCA 2005); they are about so much of the idle power, electronics the rest
(assumption)."""

IDLE_OF_LABEL = 0.6
"""Idle power over what the label states, which has to feed the start: at most (assumption)."""

SPIN_UP_MEAN_OVER_PEAK = 0.76
"""3.8 W from power on to ready over a peak of 5.0 W (Hitachi Travelstar 5K320, table 14)."""

CYCLES_RATED = 50_000.0
"""Starts and stops: assumption where none are stated, the rating of Toshiba's MG06 series and of
contact start-stop disks. Load-unload ratings are higher, but every standby is both."""

SETTLE_SECONDS = (5.0, 0.7)
"""From the last request to the sheet's "active idle": assumption."""

NOTEBOOK_RATE, NOTEBOOK_BYTES = 30.0, 63 * 512
"""Operations a second and bytes at which data sheets of 2.5-inch disks state seek, read and write
power ("three operations of 63 sectors per 100 ms")."""


@dataclass(frozen=True)
class Known:
    """A quantity: median, log sd, and the fact that told, None where it was expected."""

    value: float
    sd: float
    fact: Fact | None = None
    why: str = ""

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.fact.source if self.fact is not None else f"assumption: {self.why}"


@dataclass(frozen=True)
class DiskFacts:
    """The mechanics and watts of one disk; SI units."""

    rpm: Known
    seek: Known
    write_seek: Known
    track_to_track: Known
    outer_rate: Known
    idle: Known
    rest: Known
    seek_watts: Known
    read_watts: Known
    write_watts: Known
    standby: Known
    spin_up_seconds: Known
    spin_up_watts: Known
    spin_down_seconds: Known
    cycles: Known

    @property
    def mean_rate(self) -> float:
        """Bytes a second over the whole disk."""
        return MEAN_OVER_OUTER * self.outer_rate.value


def disk_facts(drive: Drive) -> DiskFacts:
    """What the catalogue says of a disk, and what is expected where it says nothing."""
    width = drive.fact("form_factor_inches")
    group = EXPECTED[3.5 if width is None else float(width.value)]
    half_known = "expected of disks of its width"

    def of(
        names: tuple[str, ...], sd: float, expected: tuple[float, float], why: str = half_known
    ) -> Known:
        for name in names:
            fact = drive.fact(name)
            if fact is not None:
                return Known(float(fact.value), sd, fact)
        return Known(*expected, None, why)

    rpm = of(("rotation_rate",), EXACT_SD, group.rpm)
    seek = of(("seek_read_average",), TYPICAL_SD, group.seek)
    slower = (seek.value + WRITE_SEEK_EXTRA, seek.sd)
    capacity = drive.fact("capacity")
    size = 2e12 if capacity is None else float(capacity.value)
    rate = RATE[0] * (size / 2e12) ** 0.25 * rpm.value / 7200.0
    turning = (rpm.value / group.rpm[0]) ** ROTATION_EXPONENT
    typical = group.idle[0] * (1.0 - ROTATION_SHARE + ROTATION_SHARE * turning)
    label = drive.fact("rated_power")
    if label is not None:
        typical = min(typical, IDLE_OF_LABEL * float(label.value))
    idle = of(("idle_power",), TYPICAL_SD, (typical, group.idle[1]))
    if idle.fact is None and (low := drive.fact("idle_power_low")) is not None:
        # heads unloaded; a tenth more with them on track (Travelstar 5K320: 0.55 and 0.8 W)
        idle = Known(1.1 * float(low.value), TYPICAL_SD, low)
    rest = of(("idle_power_active",), TYPICAL_SD, (idle.value, idle.sd))
    rest = rest if rest.fact is not None else idle
    seeking = _seek_watts(drive, idle, seek, group)
    transfer = (idle.value * group.transfer_ratio[0], math.hypot(idle.sd, group.transfer_ratio[1]))
    most = drive.fact("measured_power_max") or label
    if most is not None:
        transfer = (min(transfer[0], float(most.value)), transfer[1])
    outer = of(
        (
            "sustained_transfer_rate_max",
            "measured_sequential_read_throughput",
            "media_transfer_rate_max",
        ),
        TYPICAL_SD,
        (rate, RATE[1]),
        "grows with capacity and speed",
    )
    passing = NOTEBOOK_BYTES / (MEAN_OVER_OUTER * outer.value)
    busy_heads = min(NOTEBOOK_RATE * (rotation_seconds(rpm.value) + passing), 1.0)
    # what draws in standby are the electronics, which servers' disks share whatever their width
    electronics = EXPECTED[3.5] if drive.drive_class == "datacentre" else group
    return DiskFacts(
        rpm=rpm,
        seek=seek,
        write_seek=of(("seek_write_average",), TYPICAL_SD, slower),
        track_to_track=of(("seek_read_track_to_track",), TYPICAL_SD, TRACK_TO_TRACK),
        outer_rate=outer,
        idle=idle,
        rest=rest,
        seek_watts=seeking,
        read_watts=_at_heads(drive, "read", idle, busy_heads, transfer),
        write_watts=_at_heads(drive, "write", idle, busy_heads, transfer),
        standby=of(("standby_power",), TYPICAL_SD, electronics.standby),
        spin_up_seconds=_spin_up_seconds(drive),
        spin_up_watts=_spin_up_watts(drive, idle, group),
        spin_down_seconds=_spin_down_seconds(drive),
        cycles=of(
            ("start_stop_cycles_rated",),
            EXACT_SD,
            (CYCLES_RATED, 0.5),
            "starts and stops of disks that state them",
        ),
    )


def _at_heads(
    drive: Drive, operation: str, idle: Known, share: float, expected: tuple[float, float]
) -> Known:
    """Watts of ceaseless reading or writing.

    Args:
        drive: The disk.
        operation: read or write.
        idle: Its idle power.
        share: Of the time that the heads wait or pass data at the rate of notebook sheets.
        expected: Where nothing is stated.
    """
    stated = drive.fact(f"active_power_{operation}")
    if stated is not None:
        return Known(float(stated.value), TYPICAL_SD, stated)
    some = drive.fact(f"active_power_{operation}_30_per_second")
    if some is not None:
        risen = max(float(some.value) - idle.value, 0.05 * idle.value)
        return Known(idle.value + risen / share, 0.25, some)
    return Known(*expected, None, "over idle as other disks")


def _seek_watts(drive: Drive, idle: Known, seek: Known, group: Expected) -> Known:
    """Watts of ceaseless seeking."""
    stated = drive.fact("seek_power")
    if stated is not None:
        return Known(float(stated.value), TYPICAL_SD, stated)
    some = drive.fact("seek_power_30_per_second")
    if some is not None:
        share = min(NOTEBOOK_RATE * seek.value, 1.0)
        risen = max(float(some.value) - idle.value, 0.1 * idle.value) / share
        return Known(idle.value + risen, 0.2, some)
    for name in ("measured_power_max", "operating_power"):
        most = drive.fact(name)
        if most is not None and float(most.value) > idle.value:
            return Known(float(most.value), TYPICAL_SD, most)
    ratio, sd = group.seek_ratio
    watts, label = idle.value * ratio, drive.fact("rated_power")
    if label is not None:
        watts = min(watts, float(label.value))
    return Known(watts, math.hypot(idle.sd, sd), None, "over idle as other disks")


def _spin_up_seconds(drive: Drive) -> Known:
    at_speed = drive.fact("spin_up_time")
    if at_speed is not None:
        return Known(float(at_speed.value) + READY_SECONDS, TYPICAL_SD, at_speed)
    for name in ("standby_to_ready_time", "spin_transition_time_max"):
        bound = drive.fact(name)
        if bound is not None:
            return Known(MEAN_OF_BOUND * float(bound.value), BOUND_SD, bound)
    return Known(
        SPIN_UP_SECONDS[0] + READY_SECONDS,
        SPIN_UP_SECONDS[1],
        None,
        "as disks whose SMART data say",
    )


def _spin_down_seconds(drive: Drive) -> Known:
    for name in ("spin_down_time", "spin_transition_time_max"):
        bound = drive.fact(name)
        if bound is not None:
            return Known(MEAN_OF_BOUND * float(bound.value), BOUND_SD, bound)
    return Known(*SPIN_DOWN_SECONDS, None, "findings and data sheets of other disks")


def _spin_up_watts(drive: Drive, idle: Known, group: Expected) -> Known:
    """Mean watts from standby to ready."""
    stated = drive.fact("spin_up_power")
    if stated is not None:
        return Known(float(stated.value), TYPICAL_SD, stated)
    for name, volts in (("spin_up_current_12v", 12.0), ("spin_up_current_5v", 5.0)):
        peak = drive.fact(name)
        if peak is not None:
            return Known(SPIN_UP_MEAN_OVER_PEAK * volts * float(peak.value), 0.25, peak)
    label = drive.fact("rated_power")
    if label is not None:
        return Known(SPIN_UP_MEAN_OVER_PEAK * float(label.value), BOUND_SD, label)
    ratio, sd = group.spin_up_ratio
    return Known(idle.value * ratio, math.hypot(idle.sd, sd), None, "over idle as other disks")
