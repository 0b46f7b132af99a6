"""What samples of power say of their own sensor, and of the steadiness of a run.

Pure functions of arrays, like `statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.recording.statistics import Sampled

WINDOW_SAMPLES = 20
"""Samples of a window whose scatter is judged: 1 ms at the 20 kHz of a PowerSensor3."""

FEWEST_WINDOWS = 30
"""Fewer windows than this say nothing of the usual scatter."""

CLIPPED_SHARE = 0.95
"""Of a rail's full scale: from here on it is clipped. The full scale is that at the voltage of one
moment, and a supply sags by a few percent."""


@dataclass(frozen=True)
class SampleQuality:
    """What one run's samples say of their sensor.

    Attributes:
        scatter_watts: Median standard deviation within windows of `WINDOW_SAMPLES` fresh samples.
        longest_constant_seconds: The longest stretch of fresh samples that are all equal.
    """

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
    """Time in which a rail was at its full scale; None where none says where that is.

    Args:
        values: Watts, shape (n, rails).
        full_scales: Of each rail.
        period_ns: Between two samples.
    """
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
