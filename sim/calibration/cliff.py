"""What marks a series of writes: how fast it begins, where it falls, and how fast it goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.sim.calibration.points import Series
from iojoule.sim.calibration.runs import Course

Floats = NDArray[np.float64]

FALLEN = 0.85
"""The cliff is where the rate, over SMOOTHED_SHARE of the series, falls to so much of its start."""

RISEN = 1.15
"""Watts that never get so much higher than at their start do not rise."""

SMOOTHED_SHARE = 0.03

OBSERVATION_SD = 0.03
"""Log sd of a mark."""


@dataclass(frozen=True)
class Marks:
    """Rates in bytes a second; the cliff and the rise in host bytes, NaN where there is none.

    Attributes:
        before: Median rate before the cliff.
        cliff: Bytes written until the rate falls.
        after: Mean rate from there on, as far as the fit may look.
        rise: Bytes written until the watts rise: the drive begins to collect.
    """

    before: float
    cliff: float
    after: float
    rise: float

    def logs(self) -> list[float]:
        """Logarithms, in this order; without the rise where no watts were measured."""
        return [
            float(np.log(one))
            for one in (self.before, self.cliff, self.after, self.rise)
            if not np.isnan(one)
        ]


def measured_marks(series: Series) -> Marks:
    """The marks of what was measured and not left out."""
    seen = ~series.held_out
    return _marks(series.written[seen], series.bytes_per_second[seen], series.watts[seen], np.inf)


def simulated_marks(course: Course, measured: Marks, series: Series) -> Marks:
    """The marks of a simulation, looking as far beyond its cliff as the measurement did.

    Where it has no cliff, one just beyond its end stands for it.
    """
    seen = series.written[~series.held_out]
    span = float(seen.max()) - measured.cliff
    found = _marks(course.written, course.bytes_per_second, course.watts, span)
    beyond = 1.1 * float(course.written[-1])
    rise = float("nan") if np.isnan(measured.rise) else found.rise
    if not np.isnan(measured.rise) and np.isnan(rise):
        rise = beyond
    if np.isnan(found.cliff):
        return Marks(found.before, beyond, found.before, rise)
    return replace(found, rise=rise)


def _smoothed(values: Floats) -> tuple[Floats, int]:
    width = max(1, round(SMOOTHED_SHARE * len(values)))
    padded = np.concatenate([values, np.full(width - 1, values[-1])])
    return np.convolve(padded, np.full(width, 1 / width), mode="valid"), width


def _rise(written: Floats, watts: Floats) -> float:
    """Where the smoothed watts first pass the middle between their start and their highest."""
    if not np.isfinite(watts).all():
        return float("nan")
    smooth, width = _smoothed(watts)
    start = float(np.median(watts[: max(3, len(watts) // 10)]))
    high = float(np.quantile(smooth, 0.95))
    if high < RISEN * start:
        return float("nan")
    first = int(np.argmax(smooth > 0.5 * (start + high)))
    return float(written[min(first + width // 2, len(written) - 1)])


def _marks(written: Floats, rate: Floats, watts: Floats, span: float) -> Marks:
    smooth, width = _smoothed(rate)
    rise = _rise(written, watts)
    start = float(np.median(rate[: max(3, len(rate) // 10)]))
    fallen = np.flatnonzero(smooth < FALLEN * start)
    if not fallen.size:
        return Marks(start, float("nan"), float("nan"), rise)
    first = min(int(fallen[0]) + width // 2, len(rate) - 1)
    cliff = float(written[first])
    after = (np.arange(len(rate)) >= first) & (written <= cliff + span)
    # mean over bytes, so that a step that is slow counts by what it moved
    return Marks(start, cliff, float(1 / np.mean(1 / np.maximum(rate[after], 1.0))), rise)
