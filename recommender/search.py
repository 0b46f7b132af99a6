"""Looking through every candidate: the Pareto set, and what to choose from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.frame import Frame
from iojoule.recommender import pareto
from iojoule.recommender.screen import Judge, Judged
from iojoule.recommender.space import Candidates, join
from iojoule.recommender.steps import AS_GOOD, Steps

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

MISSES_SHOWN = 5

POOL = 192
"""Candidates of the least objectives that are compared with today's one by one."""


@dataclass(frozen=True)
class Found:
    """What is left of the candidates: the front, or the nearest misses.

    Attributes:
        feasible: How many candidates keep every bound.
        front: The Pareto set.
        costs: Its costs.
        pool: Candidates of the least objectives, the front among them; empty without any.
        misses: The nearest misses where nothing is feasible.
        missed: By how much the front misses preferred bounds, relative and in all.
    """

    feasible: int
    front: Frame
    costs: Floats
    pool: Frame
    misses: Frame | None
    missed: float


def search(judge: Judge, candidates: Candidates, steps: Steps) -> Found:
    """Judge every candidate, block by block.

    The front of the blocks' fronts is the front of all, so that only few rows are kept.

    Args:
        judge: What evaluates and judges.
        candidates: All of them.
        steps: Gathers what steps of the bounds would bring.
    """
    feasible = 0
    fronts: list[tuple[Frame, Floats]] = []
    pools: list[tuple[Frame, Floats]] = []
    misses: list[tuple[Frame, Floats]] = []
    known = ~judge.soft & ~judge.unknown
    for judged in judge.search(candidates):
        steps.see(judged)
        good = np.flatnonzero(judged.feasible)
        feasible += len(good)
        if len(good):
            costs = _costs(judged, good)
            frame = judged.frame.take(good)
            kept = pareto.front(costs, frame)
            fronts.append((frame.take(kept), costs[kept]))
            least = _least(judged, good)
            pools.append((frame.take(least), _order(judged, good[least])))
        elif not fronts:
            close = _nearest(judged.violations[:, known], judged.costs[:, 0])
            amounts = np.column_stack([judged.violations[close][:, known], judged.costs[close, 0]])
            misses.append((judged.frame.take(close), amounts))
    if not fronts:
        frame, amounts = join([m[0] for m in misses]), np.concatenate([m[1] for m in misses])
        close = _nearest(amounts[:, :-1], amounts[:, -1])
        nothing = frame.take(np.zeros(0, dtype=np.intp))
        return Found(0, nothing, np.zeros((0, 3)), nothing, frame.take(close), 0.0)
    frame, costs = fronts[0]
    if len(fronts) > 1:
        frame = join([part[0] for part in fronts])
        costs = np.concatenate([part[1] for part in fronts])
        kept = pareto.front(costs, frame)
        frame, costs = frame.take(kept), costs[kept]
    missed = 0.0
    if judge.soft.any():
        missed = float(costs[:, -1].min())
        kept = np.flatnonzero(costs[:, -1] <= missed + AS_GOOD)
        kept = kept[pareto.front(costs[kept, :-1], frame.take(kept))]
        frame, costs = frame.take(kept), costs[kept, :-1]
    pool = join([part[0] for part in pools])
    order = np.concatenate([part[1] for part in pools])
    order = np.flatnonzero(order[:, 0] <= missed + AS_GOOD)[
        np.argsort(order[order[:, 0] <= missed + AS_GOOD, 1], kind="stable")
    ]
    pool = join([pool.take(order[:POOL]), frame])
    return Found(feasible, frame, costs, pool, None, missed)


def _costs(judged: Judged, good: Rows) -> Floats:
    costs = judged.costs[good]
    if judged.soft.any():  # what comes closest to the preferred bounds stays too
        costs = np.column_stack([costs, judged.preferred_missed[good]])
    return costs


def _least(judged: Judged, good: Rows) -> Rows:
    """Places within `good` of the least missed preferred bounds and objectives."""
    if len(good) <= POOL:
        return np.arange(len(good))
    order = _order(judged, good)
    if judged.soft.any():
        level = np.round(order[:, 0] / AS_GOOD)
        return np.lexsort((order[:, 1], level))[:POOL]
    return np.argpartition(order[:, 1], POOL)[:POOL]


def _order(judged: Judged, rows: Rows) -> Floats:
    """Missed preferred bounds and objective of some rows, shape (n, 2)."""
    return np.column_stack([judged.preferred_missed[rows], judged.costs[rows, 0]])


def _nearest(violations: Floats, objective: Floats) -> Rows:
    """Rows that miss the bounds by the least; of those that miss nothing the least objective."""
    whole = np.flatnonzero(~violations.any(axis=1))
    if len(whole):  # only what nobody knows stands in the way
        return whole[np.argsort(objective[whole], kind="stable")[:MISSES_SHOWN]]
    return pareto.nearest(violations, MISSES_SHOWN)
