"""The exact Pareto set, its thinning, and the nearest misses where nothing is feasible."""

from __future__ import annotations

from collections.abc import Callable

import moocore
import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.vocabulary import Scheduler
from iojoule.model.evaluate.frame import COMPLETIONS, SCHEDULERS, Frame
from iojoule.recommender.response import TIE

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


_LOST_BITS = 22
"""Bits of the mantissa of a cost that count for nothing: 30 of 52 are left, 1e-9 of its value."""


def without_rounding_errors(costs: Floats) -> Floats:
    """Costs to 1e-9 of their values, so that what is equal but for rounding errors is equal.

    Else the last bits decide which of two equal configurations beats the other, and another
    processor decides otherwise.
    """
    bits = np.ascontiguousarray(costs).view(np.int64)
    half = np.int64(1 << (_LOST_BITS - 1))
    return ((bits + half) & -np.int64(1 << _LOST_BITS)).view(np.float64)


def simplest_first(frame: Frame) -> Rows:
    """Order from simple to involved, deterministic.

    Fewer jobs, lower depth, no scheduler, interrupts, no submission polling, PS0, then size and
    engine, then as few settings of the host as may be.
    """
    keys = (
        np.isfinite(frame.host).sum(axis=1),
        frame.engine,
        frame.request_bytes,
        frame.power_state,
        frame.submission_polling.astype(np.intp),
        frame.completion != COMPLETIONS.index("interrupt"),
        (frame.scheduler != SCHEDULERS.index(Scheduler.NONE.value)) * (1 + frame.scheduler),
        frame.queue_depth,
        frame.jobs,
    )
    return np.lexsort(keys)


def non_dominated(costs: Floats) -> NDArray[np.bool_]:
    """Which rows no other row beats; the first of equal rows stands for all of them.

    Args:
        costs: Shape (n, objectives), all to be minimised, finite.
    """
    return _marked(costs, copies=False)


def _marked(costs: Floats, *, copies: bool) -> NDArray[np.bool_]:
    """As `non_dominated`; with `copies` all of the rows that are equal."""
    if len(costs) == 0:
        return np.zeros(0, dtype=bool)
    costs = np.ascontiguousarray(costs)
    return np.asarray(moocore.is_nondominated(costs, keep_weakly=copies), dtype=bool)


def front(costs: Floats, frame: Frame) -> Rows:
    """Rows of the Pareto set; of configurations with equal costs the simplest."""
    rows = np.flatnonzero(_marked(costs, copies=True))
    if len(rows) == 0:
        return rows
    rows = rows[simplest_first_of(frame, rows)]
    return np.sort(rows[non_dominated(costs[rows])])


def simplest_first_of(frame: Frame, rows: Rows) -> Rows:
    """As `simplest_first`, for some rows: positions within `rows`."""
    return simplest_first(frame.take(rows))


def thin(costs: Floats, most: int) -> Rows:
    """At most `most` rows spread evenly along the front by the first cost, both ends kept."""
    order = np.lexsort(costs.T[::-1])
    if len(order) <= most:
        return order
    return order[np.unique(np.linspace(0, len(order) - 1, most).round().astype(np.intp))]


def nearest(violations: Floats, most: int) -> Rows:
    """Rows that miss the bounds by the least.

    Args:
        violations: Relative amount by which each bound is missed, 0 where it holds; shape
            (n, bounds).
        most: How many rows.

    Returns:
        Rows by their largest violation, then by the sum; the first ones not dominated by another
        miss, so that they show different ways out.
    """
    worst, total = violations.max(axis=1), violations.sum(axis=1)
    shown = np.flatnonzero(non_dominated(violations))
    shown = shown[np.lexsort((total[shown], worst[shown]))][:most]
    if len(shown) < most:
        order = np.lexsort((total, worst))
        rest = order[~np.isin(order, shown)][: most - len(shown)]
        shown = np.concatenate([shown, rest])
        shown = shown[np.lexsort((total[shown], worst[shown]))]
    return shown


def choose(
    objective: Floats,
    evidence: Callable[[Rows], Rows],
    current: Rows,
    frame: Frame,
    least_saving: float,
) -> int:
    """The row to recommend among feasible, non-dominated rows (and today's).

    Today's configuration, unless another takes less than it by the least saving. Of those that do:
    least objective; within `TIE` of it the strongest evidence, then the simplest.

    Args:
        objective: To be minimised, shape (n,).
        evidence: Tells the evidence codes of rows, higher is weaker.
        current: Rows that are today's configuration.
        frame: The configurations.
        least_saving: Share of today's objective that a change must save.
    """
    best = objective.min()
    most = best + TIE * abs(best)
    if len(current):
        here = objective[current].min()
        if best >= here or best > (1.0 - least_saving) * here:
            return int(current[0])
        most = min(most, (1.0 - least_saving) * here)
    near = np.flatnonzero(objective <= most)
    if len(near) == 1:
        return int(near[0])
    codes = evidence(near)
    near = near[codes == codes.min()]
    return int(near[simplest_first_of(frame, near)[0]])


def beating(costs: Floats, row: Floats) -> Rows:
    """Rows that are no worse than another in every cost, and better in one.

    Args:
        costs: Shape (n, objectives), to be minimised.
        row: Costs of the other, shape (objectives,).
    """
    return np.flatnonzero((costs <= row).all(axis=1) & (costs < row).any(axis=1))
