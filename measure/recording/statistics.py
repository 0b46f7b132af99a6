"""What samples of power say about a window of time.

Pure functions of arrays; times are CLOCK_MONOTONIC in nanoseconds, power in watts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.sensors.protocol import Flag

FEWEST_UPDATES = 30
"""A sampled power with fewer fresh readings has no mean worth quoting."""
FEWEST_BATCHES = 20
CORRELATION = 0.1
"""Batches whose neighbours correlate less than this count as independent."""
GAP_PERIODS = 3.0
"""A step between two samples of more than so many usual ones is a gap, flagged or not."""
FEWEST_IN_WINDOW = 4
FULL_WINDOW = 0.8
"""Share of its samples that a window needs to count."""


@dataclass(frozen=True)
class WindowPower:
    """Mean power over windows of one width: how it is distributed.

    Attributes:
        width_seconds: The width.
        windows: How many there were.
        p50_watts: Median.
        p99_watts: 99th percentile.
        maximum_watts: The highest.
    """

    width_seconds: float
    windows: int
    p50_watts: float
    p99_watts: float
    maximum_watts: float


@dataclass(frozen=True)
class Sampled:
    """Power samples of a window, in order of time.

    Attributes:
        times_ns: int64, shape (n,).
        watts: float64, shape (n,); the sum of the rails.
        flags: uint8 of `protocol.Flag`, shape (n,).
    """

    times_ns: NDArray[np.int64]
    watts: NDArray[np.float64]
    flags: NDArray[np.uint8]

    @property
    def fresh(self) -> NDArray[np.bool_]:
        """Which samples are new information."""
        fresh: NDArray[np.bool_] = (self.flags & Flag.STALE) == 0
        return fresh

    @property
    def period_ns(self) -> float:
        """The usual time between samples."""
        return float(np.median(np.diff(self.times_ns))) if len(self.times_ns) > 1 else math.nan


@dataclass(frozen=True)
class Integral:
    """Power over the time that samples cover.

    Attributes:
        joules: Trapezoids between neighbouring samples, none across a gap.
        seconds: The time under them.
        covered_seconds: The same plus what a sample stands for at a gap or an edge.
        gaps: Begin and end of each stretch without samples.
        lost: Samples missing in them.
    """

    joules: float
    seconds: float
    covered_seconds: float
    gaps: tuple[tuple[int, int], ...]
    lost: int


def integrate(samples: Sampled) -> Integral:
    """Energy, coverage and gaps of samples (at least two)."""
    times, watts, period = samples.times_ns, samples.watts, samples.period_ns
    steps = np.diff(times)
    gap = ((samples.flags[1:] & Flag.GAP) != 0) & (steps > 1.5 * period)
    gap |= steps > GAP_PERIODS * period
    whole = ~gap
    seconds = steps * 1e-9
    joules = float(((watts[1:] + watts[:-1]) * 0.5 * seconds)[whole].sum())
    under = float(seconds[whole].sum())
    places = np.flatnonzero(gap)
    lost = int(np.maximum(np.round(steps[places] / period) - 1, 0).sum())
    return Integral(
        joules=joules,
        seconds=under,
        covered_seconds=under + (len(places) + 1) * period * 1e-9,
        gaps=tuple(
            zip(times[places].tolist(), times[places + 1].tolist(), strict=True),
        ),
        lost=lost,
    )


def batch_standard_error(values: NDArray[np.float64]) -> float:
    """The standard error of the mean of values that correlate with their neighbours.

    Batch means: the values are cut into batches of equal length and the batches' means treated as
    independent. The length starts at the square root of the number of values (Flegal and Jones,
    Annals of Statistics 38, 2010) and doubles until neighbouring batches correlate by less than
    0.1 or only 20 batches would be left (Law, Simulation Modeling and Analysis, 9.5.3); what
    correlation r then remains widens the error by sqrt((1 + r) / (1 - r)), that of a first-order
    process.

    Args:
        values: Shape (n,); NaN comes back for fewer than two.
    """
    count = len(values)
    if count < 2:
        return math.nan
    length = math.isqrt(count) if count >= FEWEST_BATCHES**2 else max(count // FEWEST_BATCHES, 1)
    while True:
        batches = count // length
        means = values[: batches * length].reshape(batches, length).mean(axis=1)
        correlation = _neighbours(means)
        if correlation < CORRELATION or batches < 2 * FEWEST_BATCHES:
            break
        length *= 2
    error = float(means.std(ddof=1)) / math.sqrt(batches)
    # with few batches the correlation itself is uncertain by 1 / sqrt(batches): cap what it widens
    remaining = min(max(correlation, 0.0), 0.9)
    return error * math.sqrt((1 + remaining) / (1 - remaining))


def over_windows(
    samples: Sampled, begin_ns: int, end_ns: int, width_ns: int, *, slide_ns: int | None = None
) -> WindowPower | None:
    """Mean power over windows of a width, side by side or sliding.

    Args:
        samples: Of the whole stretch.
        begin_ns: Where the first window begins.
        end_ns: Windows that do not end by then are left out.
        width_ns: Of each window.
        slide_ns: Distance between the begins of windows; a divisor of the width. None = width.

    Returns:
        None where the sensor is too slow for that width, or no window is full.
    """
    step_ns = slide_ns or width_ns
    bins = (end_ns - begin_ns) // step_ns
    across = width_ns // step_ns
    if len(samples.times_ns) < 2 or samples.period_ns * FEWEST_IN_WINDOW > width_ns * 1.001:
        return None
    if bins < across:
        return None
    places = (samples.times_ns - begin_ns) // step_ns
    inside = (places >= 0) & (places < bins)
    counts = np.bincount(places[inside], minlength=bins)
    sums = np.bincount(places[inside], weights=samples.watts[inside], minlength=bins)
    if across > 1:
        kernel = np.ones(across, dtype=np.int64)
        counts, sums = np.convolve(counts, kernel, "valid"), np.convolve(sums, kernel, "valid")
    full = counts >= max(FULL_WINDOW * width_ns / samples.period_ns, 1)
    if not full.any():
        return None
    return distribution(sums[full] / counts[full], width_ns * 1e-9)


def distribution(means: NDArray[np.float64], width_seconds: float) -> WindowPower:
    """How mean powers over windows are distributed."""
    p50, p99 = np.percentile(means, (50, 99))
    return WindowPower(width_seconds, len(means), float(p50), float(p99), float(means.max()))


def _neighbours(means: NDArray[np.float64]) -> float:
    """Correlation of each value with the next."""
    if len(means) < 3:
        return 0.0
    deviations = means - means.mean()
    variance = float(deviations @ deviations)
    return float(deviations[1:] @ deviations[:-1]) / variance if variance > 0 else 0.0
