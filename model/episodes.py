"""How often collecting comes and goes while the host writes, in many runs of one time line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.interval import Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Episodes:
    """Stretches of collecting, each a pause of the host's full speed.

    Attributes:
        pauses: How many begin.
        pause_seconds: Mean length of those that end in time, else of the one that does not; None
            where none begins.
        second_start_seconds: When the second one begins, None where none does. A run without one
            counts as if it began at the end.
        second_seconds: Length of the second one, as far as it was seen.
    """

    pauses: Interval
    pause_seconds: Interval | None
    second_start_seconds: Interval | None
    second_seconds: Interval | None


def episodes(collecting: NDArray[np.bool_], steps: Floats) -> Episodes:
    """Count and measure the stretches of collecting.

    Args:
        collecting: Of each run and step; shape (runs, steps), the undisturbed run first.
        steps: Seconds of each step.
    """
    ends = np.cumsum(steps)
    found = np.array([_one(row, ends) for row in collecting])
    counts, lengths, starts, seconds = found.T
    starts = np.where(np.isnan(starts), ends[-1], starts)
    second = counts[0] >= 2
    return Episodes(
        pauses=Interval.of(counts[0], counts),
        pause_seconds=_of(lengths) if counts[0] else None,
        second_start_seconds=_of(starts) if second else None,
        second_seconds=_of(seconds) if second else None,
    )


def _of(draws: Floats) -> Interval:
    return Interval.of(float(draws[0]), draws[np.isfinite(draws)])


def _one(collecting: NDArray[np.bool_], ends: Floats) -> tuple[float, float, float, float]:
    """Count, mean length, start of the second and its length; NaN for what does not happen."""
    edges = np.diff(collecting.astype(int), prepend=0, append=0)
    times = np.concatenate([[0.0], ends])
    starts, stops = times[edges == 1], times[edges == -1]
    if not len(starts):
        return 0.0, np.nan, np.nan, np.nan
    lengths = stops - starts
    over = stops < ends[-1]
    mean = lengths[over].mean() if over.any() else lengths.mean()
    if len(starts) == 1:
        return 1.0, mean, np.nan, np.nan
    return float(len(starts)), mean, starts[1], lengths[1]
