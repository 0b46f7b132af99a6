"""What marks a series of writes: how fast it begins, where it falls, and how fast it goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.sim.calibration.points import Series
from iojoule.sim.calibration.runs import Course

Floats = NDArray[np.float64]

FALLEN = 0.85
"""The cliff is where the rate, over SMOOTHED_SHARE of the series, falls to so much of its start."""

SMOOTHED_SHARE = 0.03

OBSERVATION_SD = 0.03
"""Log sd of a mark."""


@dataclass(frozen=True)
class Marks:
    """Rates in bytes a second; the cliff in host bytes, NaN where there is none.

    Attributes:
        before: Median rate before the cliff.
        cliff: Bytes written until the rate falls.
        after: Mean rate from there on, as far as the fit may look.
    """

    before: float
    cliff: float
    after: float

    def logs(self) -> list[float]:
        """Logarithms, in this order."""
        return [float(np.log(one)) for one in (self.before, self.cliff, self.after)]


def measured_marks(series: Series) -> Marks:
    """The marks of what was measured and not left out."""
    seen = ~series.held_out
    return _marks(series.written[seen], series.bytes_per_second[seen], np.inf)


def simulated_marks(course: Course, measured: Marks, series: Series) -> Marks:
    """The marks of a simulation, looking as far beyond its cliff as the measurement did.

    Where it has no cliff, one just beyond its end stands for it.
    """
    seen = series.written[~series.held_out]
    span = float(seen.max()) - measured.cliff
    found = _marks(course.written, course.bytes_per_second, span)
    if np.isnan(found.cliff):
        return Marks(found.before, 1.1 * float(course.written[-1]), found.before)
    return found


def _marks(written: Floats, rate: Floats, span: float) -> Marks:
    width = max(1, round(SMOOTHED_SHARE * len(rate)))
    padded = np.concatenate([rate, np.full(width - 1, rate[-1])])
    smooth = np.convolve(padded, np.full(width, 1 / width), mode="valid")
    start = float(np.median(rate[: max(3, len(rate) // 10)]))
    fallen = np.flatnonzero(smooth < FALLEN * start)
    if not fallen.size:
        return Marks(start, float("nan"), float("nan"))
    first = min(int(fallen[0]) + width // 2, len(rate) - 1)
    cliff = float(written[first])
    after = (np.arange(len(rate)) >= first) & (written <= cliff + span)
    # mean over bytes, so that a step that is slow counts by what it moved
    return Marks(start, cliff, float(1 / np.mean(1 / np.maximum(rate[after], 1.0))))
