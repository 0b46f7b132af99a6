"""What a run must be to count: power seen, within the meter's range, at the time that fio says.

A run that is not fails by name, is kept with its raw series, and is made again by `resume`. What
only makes a run less certain is told by `check`.
"""

from __future__ import annotations

from iojoule.measure.errors import FioError, SensorError
from iojoule.measure.recording import PowerStatistics, Recording
from iojoule.measure.recording.quality import clipped_seconds
from iojoule.measure.recording.statistics import Sampled
from iojoule.measure.sensors.protocol import Scope

COVERAGE_FAILED = 0.5
"""Share of the measured part that samples must stand for; below, most of the run was not seen."""

CLOCK_STEP_NS = 100_000_000
"""Clocks of one host drift by some 10 us a second; what moved more within a run was set."""

CLOCKS_APART_NS = 500_000_000
"""So far fio's times may lie outside the time in which fio ran: it ends up to 25 ms late, and
starts its processes before and after."""


def require_seen(power: PowerStatistics) -> None:
    """Refuse power of which little was seen, or of which the mean says nothing.

    Raises:
        SensorError: Names what is missing and the remedy.
    """
    if power.mean_watts is None:
        return
    if power.coverage < COVERAGE_FAILED:
        raise SensorError(
            f"{power.sensor}: samples stand for {power.coverage:.1%} of the measured part only, "
            f"{COVERAGE_FAILED:.0%} are needed; keep cores free of fio's jobs (host.cpus), look at "
            "the cable, or use another port"
        )
    error = power.standard_error_watts
    if error is not None and error > abs(power.mean_watts):
        raise SensorError(
            f"{power.sensor}: {power.mean_watts:.3g} W with a standard error of {error:.3g} W says "
            "nothing; measure longer, or look for a bad contact"
        )


def require_in_range(recording: Recording, power: PowerStatistics, begin: int, end: int) -> None:
    """Refuse power of the drive that reached the full scale of its meter.

    Raises:
        SensorError: Names the time at full scale and the remedy.
    """
    sampled = recording.samples(Scope.DEVICE, begin, end)
    if sampled is None or len(sampled[0].times_ns) < 2:
        return
    window, rails = sampled
    samples = Sampled(window.times_ns, window.values.sum(axis=1), window.flags)
    seconds = clipped_seconds(window.values, [rail.full_scale for rail in rails], samples.period_ns)
    if seconds:
        raise SensorError(
            f"{power.sensor}: was at its full scale for {seconds * 1e3:.3g} ms, where it says "
            "nothing of the power; take a sensor of more range, or look for a bad contact"
        )


def require_clocks(offset_before_ns: int, offset_after_ns: int) -> None:
    """Refuse a run in which the host's clock was set.

    Args:
        offset_before_ns: Wall clock less monotonic clock before fio began.
        offset_after_ns: Likewise after it ended.

    Raises:
        FioError: Names the step and the remedy.
    """
    step = offset_after_ns - offset_before_ns
    if abs(step) > CLOCK_STEP_NS:
        raise FioError(
            f"the host's clock was set by {step * 1e-9:+.3f} s in the run, so nobody knows which "
            "samples belong to it; let the clock be adjusted slowly (chrony, adjtime)"
        )


def require_inside(begin: int, end: int, fio_began: int, fio_ended: int) -> None:
    """Refuse a measured part that lies outside the time in which fio ran.

    Args:
        begin: Of the measured part, by fio, monotonic ns.
        end: Likewise.
        fio_began: When fio was started, monotonic ns.
        fio_ended: When it ended.

    Raises:
        FioError: Names the distance and the remedy.
    """
    outside = max(fio_began - begin, end - fio_ended)
    if outside > CLOCKS_APART_NS:
        raise FioError(
            f"fio says that it measured {outside * 1e-9:.3f} s outside the time in which it ran; "
            "its clock is another one than this host's"
        )
