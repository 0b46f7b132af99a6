"""Budget: the exact Pareto set of 10^6 points in three objectives in 1 s, whatever they are."""

from __future__ import annotations

import time

import moocore
import numpy as np
import pytest

from iojoule.recommender import pareto

POINTS = 1_000_000
SECONDS = 1.0
REPEATS = 3


def cloud(kind: str) -> np.ndarray:
    random = np.random.default_rng(1)
    free = random.random((POINTS, 3))
    if kind == "on a sphere":  # every point is on the front
        return np.asarray(-free / np.linalg.norm(free, axis=1, keepdims=True))
    if kind == "falling":  # two objectives against each other: again all of them
        return np.stack([free[:, 0], 1.0 - free[:, 0], free[:, 2]], axis=1)
    if kind == "correlated":
        return np.asarray(free[:, :1] + 0.01 * free)
    if kind == "copies":
        sphere = free[:1000] / np.linalg.norm(free[:1000], axis=1, keepdims=True)
        return np.asarray(-sphere[random.integers(0, 1000, POINTS)])
    return free


@pytest.mark.parametrize("kind", ["free", "on a sphere", "falling", "correlated", "copies"])
def test_the_front_of_a_million_points(kind: str) -> None:
    costs = cloud(kind)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        marked = pareto.non_dominated(costs)
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    known = moocore.is_nondominated(costs)
    reference = time.perf_counter() - start
    print(
        f"\npareto {kind}: {POINTS:,} points, front {marked.sum():,}, least "
        f"{min(seconds):.3f} s, most {max(seconds):.3f} s; moocore {reference:.3f} s"
    )
    assert (marked == known).all()
    assert min(seconds) <= SECONDS
