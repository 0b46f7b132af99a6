"""Statistics of power samples and energy counters within a window.

Pure functions of arrays; times are CLOCK_MONOTONIC in nanoseconds, power in watts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.recording.series import Window
from iojoule.measure.sensors.protocol import Flag, Rail

FEWEST_UPDATES = 30
"""A sampled power with fewer fresh readings has no mean worth quoting."""
FEWEST_BATCHES = 20
CORRELATION = 0.1
"""Batches whose neighbours correlate less than this count as independent."""
STUCK_PROBABILITY = 1e-6
"""An instrument that says the same for longer than chance lets it, less often than that, hangs."""

GAP_PERIODS = 3.0
"""A step between two samples of more than so many usual ones is a gap, flagged or not."""
FEWEST_IN_WINDOW = 4
FULL_WINDOW = 0.8
"""Share of its samples that a window needs to count."""


@dataclass(frozen=True)
class WindowPower:
    """Distribution of mean power over windows of one width."""

    windows: int
    p50_watts: float
    p99_watts: float
    maximum_watts: float


@dataclass(frozen=True)
class Sampled:
    """Power samples of a window, in order of time, shape (n,); watts are the sum of the rails."""

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
        covered_seconds: With what a sample stands for at a gap or an edge.
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
    gaps = np.flatnonzero(gap)
    lost = int(np.maximum(np.round(steps[gaps] / period) - 1, 0).sum())
    return Integral(
        joules=joules,
        seconds=under,
        covered_seconds=under + (len(gaps) + 1) * period * 1e-9,
        gaps=tuple(zip(times[gaps].tolist(), times[gaps + 1].tolist(), strict=True)),
        lost=lost,
    )


def batch_standard_error(values: NDArray[np.float64]) -> float:
    """The standard error of the mean of autocorrelated values; NaN for fewer than two.

    Batch means: the values are cut into batches of equal length and the batches' means treated as
    independent. The length starts at the square root of the number of values (Flegal and Jones,
    Annals of Statistics 38, 2010) and doubles until neighbouring batches correlate by less than 0.1
    or only 20 batches would be left (Law, Simulation Modeling and Analysis, 9.5.3); the remaining
    correlation r widens the error by sqrt((1 + r) / (1 - r)), that of a first-order process.
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
    """Mean power over complete windows, side by side or sliding by `slide_ns`.

    `slide_ns` divides the width. None where the sensor is too slow for it, or no window is full.
    """
    step_ns = slide_ns or width_ns
    bins = (end_ns - begin_ns) // step_ns
    across = width_ns // step_ns
    if len(samples.times_ns) < 2 or samples.period_ns * FEWEST_IN_WINDOW > width_ns * 1.001:
        return None
    if bins < across:
        return None
    bin_numbers = (samples.times_ns - begin_ns) // step_ns
    inside = (bin_numbers >= 0) & (bin_numbers < bins)
    counts = np.bincount(bin_numbers[inside], minlength=bins)
    sums = np.bincount(bin_numbers[inside], weights=samples.watts[inside], minlength=bins)
    if across > 1:
        kernel = np.ones(across, dtype=np.int64)
        counts, sums = np.convolve(counts, kernel, "valid"), np.convolve(sums, kernel, "valid")
    full = counts >= max(FULL_WINDOW * width_ns / samples.period_ns, 1)
    if not full.any():
        return None
    return distribution(sums[full] / counts[full])


def distribution(means: NDArray[np.float64]) -> WindowPower:
    """How mean powers over windows are distributed."""
    p50, p99 = np.percentile(means, (50, 99))
    return WindowPower(len(means), float(p50), float(p99), float(means.max()))


def _neighbours(means: NDArray[np.float64]) -> float:
    """Correlation of each value with the next."""
    if len(means) < 3:
        return 0.0
    deviations = means - means.mean()
    variance = float(deviations @ deviations)
    return float(deviations[1:] @ deviations[:-1]) / variance if variance > 0 else 0.0


MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class PowerStatistics:
    """The power of one scope within one window.

    Attributes:
        mean_watts: Over the covered time; None = unknown, see `reason`.
        standard_error_watts: Random part: batch means for samples, the uncertainty of the two ends
            for a counter.
        calibration_uncertainty_watts: Offset and gain, not reduced by averaging; None = unknown.
        energy_joules: `mean_watts` times `seconds`: gaps count as the mean of the rest.
        over_1_ms: Means over windows of 1 ms; None where the sensor is too slow (fewer than four
            samples each) or the window too short.
        over_10_s: Windows sliding by 1 s.
        gaps: Begin and end (CLOCK_MONOTONIC, ns) of each stretch without samples.
    """

    sensor: str
    rails: tuple[str, ...]
    seconds: float
    mean_watts: float | None = None
    standard_error_watts: float | None = None
    calibration_uncertainty_watts: float | None = None
    energy_joules: float | None = None
    over_1_ms: WindowPower | None = None
    over_10_ms: WindowPower | None = None
    over_10_s: WindowPower | None = None
    samples: int = 0
    fresh: int = 0
    lost: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    coverage: float = 0.0
    reason: str | None = None


def power_statistics(
    window: Window, rails: tuple[Rail, ...], begin_ns: int, end_ns: int, sensor: str
) -> PowerStatistics:
    """From sampled watts; the mean is the trapezoid integral over the covered time, divided."""
    seconds = (end_ns - begin_ns) * 1e-9
    known = np.isfinite(window.values).all(axis=1)
    values = window.values[known]
    samples = Sampled(window.times_ns[known], values.sum(axis=1), window.flags[known])
    renewed = ~_standing_still(samples.fresh)
    values = values[renewed]
    samples = Sampled(samples.times_ns[renewed], samples.watts[renewed], samples.flags[renewed])
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

    The energy is the difference between the interpolated counters at the ends of the window. At a
    fraction f of an interval that took E joules the counter is taken as uncertain by
    E * sqrt(4 f (1 - f) / 12): that of a uniform distribution in the middle (the load may have
    come at any time), none at a sample. Each end adds resolution / sqrt(12).
    """
    seconds = (end_ns - begin_ns) * 1e-9
    # a counter that hangs tells nothing from its last change on
    known = np.flatnonzero(np.isfinite(window.values).all(axis=1))
    known = known[~_standing_still((window.flags[known] & Flag.STALE) == 0)]
    times, values = window.times_ns[known], window.values[known]
    inside = int(np.count_nonzero((times >= begin_ns) & (times < end_ns)))
    if len(times) < 2 or min(end_ns, times[-1]) <= max(begin_ns, times[0]):
        reason = (
            f"{sensor} had {inside} fresh readings within {seconds:.3g} s: measure longer, or find "
            "out why its counter stands still"
        )
        return _unknown(sensor, rails, seconds, inside, inside, reason)
    begin, end = max(begin_ns, int(times[0])), min(end_ns, int(times[-1]))
    total = values.sum(axis=1)
    covered = (end - begin) * 1e-9
    mean = float(np.diff(np.interp((begin, end), times, total))[0]) / covered
    resolution = math.hypot(*(rail.resolution or 0.0 for rail in rails)) / math.sqrt(12)
    ends = [_end_uncertainty(times, total, time_ns) for time_ns in (begin, end)]
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


def _standing_still(fresh: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Samples of the longest stretch without a fresh one, if chance does not explain its length.

    With a share f of fresh samples elsewhere, one of n stretches has k stale ones in a row with a
    probability of at most n (1 - f)^k: a coarse meter may say the same for long, one that changes
    most times does not.
    """
    edges = np.flatnonzero(np.diff(fresh.astype(np.int8), prepend=1, append=1))
    begins, ends = edges[::2], edges[1::2]
    stale: NDArray[np.bool_] = np.zeros(len(fresh), dtype=bool)
    if not len(begins):
        return stale
    longest = int(np.argmax(ends - begins))
    begin, end = int(begins[longest]), int(ends[longest])
    elsewhere = len(fresh) - (end - begin)
    share = np.count_nonzero(fresh) / elsewhere if elsewhere else 1.0
    if len(fresh) * (1.0 - share) ** (end - begin) < STUCK_PROBABILITY:
        stale[begin:end] = True
    return stale


def _unknown(
    sensor: str, rails: tuple[Rail, ...], seconds: float, samples: int, fresh: int, reason: str
) -> PowerStatistics:
    names = tuple(rail.name for rail in rails)
    return PowerStatistics(sensor, names, seconds, samples=samples, fresh=fresh, reason=reason)


def _calibration(rails: tuple[Rail, ...], means: NDArray[np.float64]) -> float | None:
    """Of the sum; the rails of one instrument may err alike, so theirs are added."""
    total = 0.0
    for rail, mean in zip(rails, means.tolist(), strict=True):
        if rail.offset_uncertainty is None or rail.gain_uncertainty is None:
            return None
        total += rail.offset_uncertainty + rail.gain_uncertainty * abs(mean)
    return total


def _lost_at_edges(samples: Sampled, begin_ns: int, end_ns: int) -> int:
    period = samples.period_ns
    edges = (samples.times_ns[0] - begin_ns, end_ns - samples.times_ns[-1])
    return sum(max(math.ceil(edge / period) - 1, 0) for edge in edges)


def _end_uncertainty(times: NDArray[np.int64], total: NDArray[np.float64], time_ns: int) -> float:
    place = int(np.clip(np.searchsorted(times, time_ns, side="right") - 1, 0, len(times) - 2))
    fraction = (time_ns - int(times[place])) / (int(times[place + 1]) - int(times[place]))
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
    return distribution(joules / (width_ns * 1e-9))


WINDOW_SAMPLES = 20
"""Samples of a window whose scatter is judged: 1 ms at the 20 kHz of a PowerSensor3."""

FEWEST_WINDOWS = 30
"""Fewer windows than this say nothing of the usual scatter."""

CLIPPED_SHARE = 0.95
"""Of a rail's full scale: from here on it is clipped. The full scale is that at the voltage of one
moment, and a supply sags by a few percent."""


@dataclass(frozen=True)
class SampleQuality:
    """Quality of a run's samples; scatter: median sd within `WINDOW_SAMPLES` fresh samples."""

    scatter_watts: float
    longest_constant_seconds: float


def sample_quality(samples: Sampled) -> SampleQuality | None:
    """Judge the samples of one run; None where there are too few fresh ones."""
    fresh = samples.fresh
    watts, times = samples.watts[fresh], samples.times_ns[fresh]
    count = len(watts) // WINDOW_SAMPLES
    if count < FEWEST_WINDOWS:
        return None
    windows = watts[: count * WINDOW_SAMPLES].reshape(count, WINDOW_SAMPLES)
    return SampleQuality(
        scatter_watts=float(np.median(windows.std(axis=1))),
        longest_constant_seconds=_longest_constant(watts, times),
    )


def clipped_seconds(
    values: NDArray[np.float64], full_scales: Sequence[float | None], period_ns: float
) -> float | None:
    """Time in which a rail was at its full scale; None where unknown. Values: watts, (n, rails)."""
    known = [place for place, full in enumerate(full_scales) if full is not None]
    if not known:
        return None
    bounds = np.array([CLIPPED_SHARE * (full_scales[place] or 0.0) for place in known])
    clipped = (values[:, known] >= bounds).any(axis=1)
    return float(np.count_nonzero(clipped)) * period_ns * 1e-9


def _longest_constant(watts: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    ends = np.append(np.flatnonzero(np.diff(watts)), len(watts) - 1)
    begins = np.append(0, ends[:-1] + 1)
    return float((times[ends] - times[begins]).max()) * 1e-9


def round_means(samples: Sampled, begin_ns: int, end_ns: int, rounds: int) -> list[float] | None:
    """Mean watts of so many equal parts of a window; None where one of them has no sample."""
    place = ((samples.times_ns - begin_ns) * rounds // (end_ns - begin_ns)).clip(0, rounds - 1)
    counts = np.bincount(place, minlength=rounds)
    if not counts.all():
        return None
    means: list[float] = (np.bincount(place, samples.watts, minlength=rounds) / counts).tolist()
    return means


STEPS_PER_WINDOW = 10
DEVIATIONS, WINDOWS = 3.0, 5
"""Idle is at most so many standard deviations above its mean, in so many consecutive windows."""


@dataclass(frozen=True)
class IdlePower:
    """The idle power to return to.

    Attributes:
        sd_watts: Standard deviation of its means over `window_seconds`.
    """

    mean_watts: float
    sd_watts: float
    window_seconds: float = 1.0

    @property
    def threshold_watts(self) -> float:
        """The highest moving mean that counts as idle."""
        return self.mean_watts + DEVIATIONS * self.sd_watts


@dataclass(frozen=True)
class Background:
    """The time between the end of the work and the return of idle power.

    `energy_joules` is power minus idle power over `seconds`; unless `returned`, both are lower
    bounds.
    """

    energy_joules: float
    seconds: float
    returned: bool


def background(
    times_ns: NDArray[np.int64], watts: NDArray[np.float64], after_ns: int, idle: IdlePower
) -> Background | None:
    """Energy above idle and time until it is back; None with less than one window of samples.

    Means over `window_seconds` move by a tenth of it. Idle is back at the begin of the first window
    from which on the means of `WINDOWS` consecutive windows (and all in between) stay at or below
    `threshold_watts`. Samples have shape (n,).
    """
    later = times_ns >= after_ns
    times_ns, watts = times_ns[later], watts[later]
    step_ns = round(idle.window_seconds * 1e9 / STEPS_PER_WINDOW)
    if len(times_ns) < 2 or times_ns[-1] - after_ns < idle.window_seconds * 1e9:
        return None
    bins = int((times_ns[-1] - after_ns) // step_ns)
    bin_numbers = (times_ns - after_ns) // step_ns
    inside = bin_numbers < bins
    counts = np.bincount(bin_numbers[inside], minlength=bins)
    sums = np.bincount(bin_numbers[inside], weights=watts[inside], minlength=bins)
    kernel = np.ones(STEPS_PER_WINDOW)
    many = np.convolve(counts, kernel, "valid")
    means = np.convolve(sums, kernel, "valid") / np.maximum(many, 1)
    quiet = (many > 0) & (means <= idle.threshold_watts)
    # quiet from the begin of the first window to that of the last one
    needed = (WINDOWS - 1) * STEPS_PER_WINDOW + 1
    runs = np.convolve(quiet, np.ones(needed), "valid") if len(quiet) >= needed else np.empty(0)
    starts = np.flatnonzero(runs >= needed - 0.5)
    returned = len(starts) > 0
    end_ns = after_ns + int(starts[0]) * step_ns if returned else int(times_ns[-1])
    use = times_ns <= end_ns
    excess = watts[use] - idle.mean_watts
    joules = float(np.trapezoid(excess, times_ns[use] * 1e-9)) if len(excess) > 1 else 0.0
    return Background(joules, (end_ns - after_ns) * 1e-9, returned)
