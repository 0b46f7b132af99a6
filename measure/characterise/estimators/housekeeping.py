"""What a drive does by itself after writes, read off its watts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LASTING_SECONDS = 0.25
"""What lasts less is neither work nor rest."""


@dataclass(frozen=True)
class Housekeeping:
    """Work after the end of the last write.

    Attributes:
        joules: Above idle, from the end of the writes until all is quiet.
        joules_error: Standard error: that of the idle power over the time of the work.
        seconds: From the end of the writes until the last work ends; 0 = none was seen.
        deferred_seconds: From the end of the writes until work begins that followed a rest; None =
            there was none, or it followed at once.
        deferred_work_seconds: How long that took.
        step_seconds: What the times are accurate to.
    """

    joules: float
    joules_error: float
    seconds: float
    deferred_seconds: float | None
    deferred_work_seconds: float | None
    step_seconds: float


def housekeeping(
    seconds: Floats, watts: Floats, idle_watts: float, idle_error: float
) -> Housekeeping:
    """Find the work in the watts after the last write.

    A bin works where it draws more than idle by 5 % or five standard deviations of the quietest
    quarter of the bins, whichever is more; single bins that disagree with both neighbours
    follow them.

    Args:
        seconds: End of each bin since the end of the writes, evenly spaced, shape (n,).
        watts: Mean power in it, shape (n,).
        idle_watts: What the drive draws at rest.
        idle_error: Standard error of that.
    """
    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else 0.0
    quietest = np.sort(watts)[: max(4, len(watts) // 4)]
    scatter = float(quietest.std(ddof=1)) if len(quietest) > 1 else 0.0
    works = watts > idle_watts + max(0.05 * idle_watts, min(5 * scatter, 0.15 * idle_watts))
    lasting = max(1, round(LASTING_SECONDS / step)) if step else 1
    stretches = _stretches(works, lasting)
    working = [(begin, end) for begin, end, busy in stretches if busy]
    if not working:
        return Housekeeping(0.0, idle_error * step, 0.0, None, None, step)
    until = working[-1][1]
    spent = float(((watts[:until] - idle_watts) * step).sum())
    deferred = next(((begin, end) for begin, end in working if begin >= lasting), None)
    return Housekeeping(
        joules=max(spent, 0.0),
        joules_error=idle_error * until * step + step * idle_watts * 0.05,
        seconds=until * step,
        deferred_seconds=deferred[0] * step if deferred else None,
        deferred_work_seconds=(until - deferred[0]) * step if deferred else None,
        step_seconds=step,
    )


def _stretches(works: NDArray[np.bool_], lasting: int) -> list[tuple[int, int, bool]]:
    """Stretches of work and rest as (begin, end, works); short ones belong to their neighbours."""
    edges = np.flatnonzero(np.diff(works.astype(int))) + 1
    bounds = [0, *edges.tolist(), len(works)]
    found = [(a, b, bool(works[a])) for a, b in pairwise(bounds) if b > a]
    while True:
        short = next(
            (
                place
                for place, (begin, end, _) in enumerate(found)
                if end - begin < lasting and 0 < place < len(found) - 1
            ),
            None,
        )
        if short is None:
            return found
        before, _, after = found[short - 1 : short + 2]
        found[short - 1 : short + 2] = [(before[0], after[1], before[2])]


@dataclass(frozen=True)
class Line:
    """y = a + b x by weighted least squares.

    Attributes:
        start: a.
        start_error: Its standard error.
        slope: b.
        slope_error: Its standard error.
    """

    start: float
    start_error: float
    slope: float
    slope_error: float


def fit_line(places: Floats, values: Floats, errors: Floats) -> Line | None:
    """A straight line; None with fewer than two places. Errors grow with what it misses."""
    if len(np.unique(places)) < 2:
        return None
    weight = 1 / np.maximum(errors, 1e-12)
    design = np.column_stack([np.ones_like(places), places]) * weight[:, None]
    normal = np.linalg.inv(design.T @ design)
    start, slope = normal @ design.T @ (values * weight)
    missed = (values - start - slope * places) * weight
    freedom = len(places) - 2
    widening = max(1.0, float(missed @ missed) / freedom) if freedom > 0 else 1.0
    return Line(
        start=float(start),
        start_error=float(np.sqrt(normal[0, 0] * widening)),
        slope=float(slope),
        slope_error=float(np.sqrt(normal[1, 1] * widening)),
    )
