"""Mean power, its errors and its distribution, from sampled watts or from energy counters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.recording.series import Window
from iojoule.measure.recording.statistics import (
    FEWEST_IN_WINDOW,
    FEWEST_UPDATES,
    Sampled,
    WindowPower,
    batch_standard_error,
    distribution,
    integrate,
    over_windows,
)
from iojoule.measure.sensors.protocol import Rail

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class PowerStatistics:
    """The power of one scope within one window.

    Attributes:
        sensor: Who measured it.
        rails: Whose sum it is.
        seconds: Length of the window.
        mean_watts: Mean over the covered time; None = unknown, see `reason`.
        standard_error_watts: Of the mean, by chance alone: batch means for samples, the
            uncertainty of the two ends for a counter.
        calibration_uncertainty_watts: Offset and gain, which averaging does not remove; None where
            a rail's are unknown.
        energy_joules: `mean_watts` times `seconds`: gaps count as the mean of the rest.
        over_1_ms: Distribution of means over windows of 1 ms; None where the sensor is too slow
            (fewer than four samples each) or the window too short.
        over_10_ms: The same for 10 ms.
        over_10_s: The same for 10 s, sliding by 1 s.
        samples: Readings within the window.
        fresh: How many of them were new information.
        lost: Samples missing in the gaps.
        gaps: Begin and end (CLOCK_MONOTONIC, ns) of each stretch without samples.
        coverage: Share of the window that the samples stand for.
        reason: Why there is no mean; None where there is one.
    """

    sensor: str
    rails: tuple[str, ...]
    seconds: float
    mean_watts: float | None
    standard_error_watts: float | None
    calibration_uncertainty_watts: float | None
    energy_joules: float | None
    over_1_ms: WindowPower | None
    over_10_ms: WindowPower | None
    over_10_s: WindowPower | None
    samples: int
    fresh: int
    lost: int
    gaps: tuple[tuple[int, int], ...]
    coverage: float
    reason: str | None = None


def power_statistics(
    window: Window, rails: tuple[Rail, ...], begin_ns: int, end_ns: int, sensor: str
) -> PowerStatistics:
    """From sampled watts; the mean is the trapezoid integral over the covered time, divided."""
    seconds = (end_ns - begin_ns) * 1e-9
    known = np.isfinite(window.values).all(axis=1)
    values = window.values[known]
    samples = Sampled(window.times_ns[known], values.sum(axis=1), window.flags[known])
    fresh = int(np.count_nonzero(samples.fresh))
    if fresh < FEWEST_UPDATES:
        reason = (
            f"{sensor} had {fresh} fresh readings within {seconds:.3g} s; a mean needs at least "
            f"{FEWEST_UPDATES}: measure longer or with a faster sensor"
        )
        return _unknown(sensor, rails, seconds, len(values), fresh, reason)
    integral = integrate(samples)
    mean = integral.joules / integral.seconds

    def windows(width_ns: int, slide_ns: int | None = None) -> WindowPower | None:
        return over_windows(samples, begin_ns, end_ns, width_ns, slide_ns=slide_ns)

    return PowerStatistics(
        sensor=sensor,
        rails=tuple(rail.name for rail in rails),
        seconds=seconds,
        mean_watts=mean,
        standard_error_watts=batch_standard_error(samples.watts[samples.fresh]),
        calibration_uncertainty_watts=_calibration(rails, values.mean(axis=0)),
        energy_joules=mean * seconds,
        over_1_ms=windows(MILLISECOND_NS),
        over_10_ms=windows(10 * MILLISECOND_NS),
        over_10_s=windows(10 * SECOND_NS, SECOND_NS),
        samples=len(values),
        fresh=fresh,
        lost=integral.lost + _lost_at_edges(samples, begin_ns, end_ns),
        gaps=integral.gaps,
        coverage=min(integral.covered_seconds / seconds, 1.0),
    )


def energy_statistics(
    window: Window, rails: tuple[Rail, ...], begin_ns: int, end_ns: int, sensor: str
) -> PowerStatistics:
    """From energy counters (with one sample on either side of the window where there is one).

    The energy is the difference between the counters at the ends of the window, interpolated. At a
    fraction f of an interval that took E joules the counter is taken as uncertain by
    E * sqrt(4 f (1 - f) / 12): that of a uniform distribution in the middle (the load may have
    come at any moment), none where a sample is. Each end adds resolution / sqrt(12).
    """
    seconds = (end_ns - begin_ns) * 1e-9
    known = np.isfinite(window.values).all(axis=1)
    times, values = window.times_ns[known], window.values[known]
    inside = int(np.count_nonzero((times >= begin_ns) & (times < end_ns)))
    if len(times) < 2 or min(end_ns, times[-1]) <= max(begin_ns, times[0]):
        reason = f"{sensor} had {inside} readings within {seconds:.3g} s: measure longer"
        return _unknown(sensor, rails, seconds, inside, inside, reason)
    begin, end = max(begin_ns, int(times[0])), min(end_ns, int(times[-1]))
    total = values.sum(axis=1)
    covered = (end - begin) * 1e-9
    mean = float(np.diff(np.interp((begin, end), times, total))[0]) / covered
    resolution = math.hypot(*(rail.resolution or 0.0 for rail in rails)) / math.sqrt(12)
    ends = [_end_uncertainty(times, total, moment) for moment in (begin, end)]
    error = math.hypot(*ends, resolution, resolution) / covered
    each = [float(np.diff(np.interp((begin, end), times, column))[0]) for column in values.T]
    increments = int(np.count_nonzero(np.diff(total)))
    return PowerStatistics(
        sensor=sensor,
        rails=tuple(rail.name for rail in rails),
        seconds=seconds,
        mean_watts=mean,
        standard_error_watts=error,
        calibration_uncertainty_watts=_calibration(rails, np.array(each) / covered),
        energy_joules=mean * seconds,
        over_1_ms=_energy_windows(times, total, begin, end, MILLISECOND_NS),
        over_10_ms=_energy_windows(times, total, begin, end, 10 * MILLISECOND_NS),
        over_10_s=_energy_windows(times, total, begin, end, 10 * SECOND_NS, SECOND_NS),
        samples=inside,
        fresh=min(increments, inside),
        lost=0,
        gaps=(),
        coverage=(end - begin) / (end_ns - begin_ns),
    )


def _unknown(
    sensor: str, rails: tuple[Rail, ...], seconds: float, samples: int, fresh: int, reason: str
) -> PowerStatistics:
    return PowerStatistics(
        sensor=sensor,
        rails=tuple(rail.name for rail in rails),
        seconds=seconds,
        mean_watts=None,
        standard_error_watts=None,
        calibration_uncertainty_watts=None,
        energy_joules=None,
        over_1_ms=None,
        over_10_ms=None,
        over_10_s=None,
        samples=samples,
        fresh=fresh,
        lost=0,
        gaps=(),
        coverage=0.0,
        reason=reason,
    )


def _calibration(rails: tuple[Rail, ...], means: NDArray[np.float64]) -> float | None:
    """Of the sum; the rails of one instrument may err alike, so theirs are added."""
    total = 0.0
    for rail, mean in zip(rails, means.tolist(), strict=True):
        if rail.offset_uncertainty is None or rail.gain_uncertainty is None:
            return None
        total += rail.offset_uncertainty + rail.gain_uncertainty * abs(mean)
    return total


def _lost_at_edges(samples: Sampled, begin_ns: int, end_ns: int) -> int:
    """Samples missing before the first and after the last one of the window."""
    period = samples.period_ns
    edges = (samples.times_ns[0] - begin_ns, end_ns - samples.times_ns[-1])
    return sum(max(math.ceil(edge / period) - 1, 0) for edge in edges)


def _end_uncertainty(times: NDArray[np.int64], total: NDArray[np.float64], moment: int) -> float:
    place = int(np.clip(np.searchsorted(times, moment, side="right") - 1, 0, len(times) - 2))
    fraction = (moment - int(times[place])) / (int(times[place + 1]) - int(times[place]))
    joules = float(total[place + 1] - total[place])
    return abs(joules) * math.sqrt(max(fraction * (1 - fraction), 0.0) / 3)


def _energy_windows(
    times: NDArray[np.int64],
    total: NDArray[np.float64],
    begin: int,
    end: int,
    width_ns: int,
    slide_ns: int | None = None,
) -> WindowPower | None:
    if float(np.median(np.diff(times))) * FEWEST_IN_WINDOW > width_ns * 1.001:
        return None
    edges = np.arange(begin, end - width_ns + 1, slide_ns or width_ns)
    if not len(edges):
        return None
    joules = np.interp(edges + width_ns, times, total) - np.interp(edges, times, total)
    return distribution(joules / (width_ns * 1e-9), width_ns * 1e-9)
