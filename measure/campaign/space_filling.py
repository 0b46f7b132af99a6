"""Spreads a first handful of runs over all points of a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import qmc

from iojoule.measure.point import Point
from iojoule.model.coordinates import coordinates


def space_filling(points: Sequence[Point], count: int, seed: int) -> list[int]:
    """Places of `count` of the points, spread evenly over the knobs that vary.

    Each element of a scrambled Sobol sequence takes the nearest point that is still free; where
    there are more elements than points, points come again.
    """
    places, _ = coordinates([one.configuration for one in points])
    # a power of two keeps the sequence balanced; what is too much is cut off at the end
    power = int(np.ceil(np.log2(max(2, count))))
    sequence = qmc.Sobol(places.shape[1], scramble=True, rng=seed).random_base2(power)
    free = np.ones(len(points), dtype=bool)
    chosen: list[int] = []
    for element in sequence[:count]:
        distance = ((places - element) ** 2).sum(axis=1)
        place = int(np.where(free, distance, np.inf).argmin())
        free[place] = False
        chosen.append(place)
        if not free.any():
            free[:] = True
    return chosen
