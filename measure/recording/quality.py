"""What samples of power say of their own sensor, and of the steadiness of a run.

A sensor that is stuck repeats itself; one at its full scale shows a level without noise. Pure
functions of arrays, like `statistics`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.recording.statistics import Sampled

WINDOW_SAMPLES = 20
"""Samples of a window whose scatter is judged: 1 ms at the 20 kHz of a PowerSensor3."""

FEWEST_WINDOWS = 30
"""Fewer windows than this say nothing of the usual scatter."""

COLLAPSED = 0.1
"""A window whose relative scatter is below this share of the run's median has lost its noise.
Additive noise shrinks with the level too, which is why the absolute scatter must not be above the
usual one either, and the level must be well above it."""

CLIPPED_LEVEL = 3.0
"""A clipped window lies at least this many times above the median of the run: meters are chosen
with several times the range of what they measure."""


@dataclass(frozen=True)
class SampleQuality:
    """What one run's samples say of their sensor.

    Attributes:
        scatter_watts: Median standard deviation within windows of `WINDOW_SAMPLES` fresh samples.
        longest_constant_seconds: The longest stretch of fresh samples that are all equal.
        clipped_seconds: Time in windows far above the median whose noise is gone: a converter at
            its full scale shows one level whatever flows.
    """

    scatter_watts: float
    longest_constant_seconds: float
    clipped_seconds: float


def sample_quality(samples: Sampled) -> SampleQuality | None:
    """Judge the samples of one run; None where there are too few fresh ones."""
    watts, times = samples.watts[samples.fresh], samples.times_ns[samples.fresh]
    count = len(watts) // WINDOW_SAMPLES
    if count < FEWEST_WINDOWS:
        return None
    windows = watts[: count * WINDOW_SAMPLES].reshape(count, WINDOW_SAMPLES)
    level, scatter = windows.mean(axis=1), windows.std(axis=1)
    usual_level, usual_scatter = float(np.median(level)), float(np.median(scatter))
    relative = scatter / np.maximum(np.abs(level), np.finfo(float).tiny)
    clipped = level > CLIPPED_LEVEL * usual_level
    clipped &= relative < COLLAPSED * float(np.median(relative))
    clipped &= scatter <= usual_scatter
    seconds = float(np.median(np.diff(times))) * WINDOW_SAMPLES * 1e-9
    return SampleQuality(
        scatter_watts=usual_scatter,
        longest_constant_seconds=_longest_constant(watts, times),
        clipped_seconds=float(np.count_nonzero(clipped)) * seconds,
    )


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
