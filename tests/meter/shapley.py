"""Shapley values by definition, against which the closed form of `meter.attribution` is checked.

A value function gives the dynamic joules of a coalition: what the drive would draw if only these
groups used it. The Shapley value is a group's mean marginal joules over all orders of arrival; it
alone is efficient, symmetric, additive, and gives nothing to a group that adds nothing (Shapley
1953; for power: Dong, Lan, Zhong 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from iojoule.meter.attribution import saturating_fractions

Floats = NDArray[np.float64]
Value = Callable[[NDArray[np.bool_]], float]
"""From the members of a coalition, shape (n,), to its joules; of the empty one it must be 0."""


@dataclass(frozen=True)
class SampledShares:
    """Joules of n groups from random orders, which sum to those of all groups, and their error."""

    joules: Floats
    standard_error: Floats


def exact_shapley(value: Value, players: int) -> Floats:
    """The Shapley value of every player, shape (n,), from the values of all 2^n coalitions."""
    coalitions = np.arange(1 << players)
    members = (coalitions[:, None] >> np.arange(players)) & 1 == 1
    joules = np.array([value(row) for row in members])
    sizes = members.sum(axis=1)
    orders = factorial(players)
    weight = np.array(
        [factorial(size) * factorial(players - size - 1) / orders for size in range(players)]
    )
    shares = np.empty(players)
    for player in range(players):
        without = coalitions[~members[:, player]]
        marginal = joules[without | (1 << player)] - joules[without]
        shares[player] = weight[sizes[without]] @ marginal
    return shares


def sampled_shapley(
    value: Value, players: int, *, orders: int, generator: np.random.Generator
) -> SampledShares:
    """The Shapley value from random orders of arrival, each with its reverse.

    A concave value makes the marginals of an order and of its reverse vary oppositely, so a pair
    has less variance than two independent orders (Mitchell et al. 2022). Costs `orders` x n values.
    """
    pairs = np.array(
        [
            (_marginal(value, order) + _marginal(value, order[::-1])) / 2
            for order in (generator.permutation(players) for _ in range(orders // 2))
        ]
    )
    error = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return SampledShares(pairs.mean(axis=0), error)


def saturating_shapley(loads: Floats, scale: float, amplitude: float = 1.0) -> Floats:
    """Shapley values of any number of groups for `amplitude * (1 - exp(-load / scale))`."""
    scaled = np.asarray(loads, dtype=np.float64) / scale
    drive = np.zeros(len(scaled), dtype=np.intp)
    fractions, _ = saturating_fractions(drive, scaled, np.zeros(1))
    return np.asarray(-amplitude * np.expm1(-scaled.sum()) * fractions, dtype=np.float64)


def _marginal(value: Value, order: NDArray[np.intp]) -> Floats:
    members = np.zeros(len(order), dtype=bool)
    marginal = np.empty(len(order))
    before = 0.0
    for player in order:
        members[player] = True
        joules = value(members)
        marginal[player] = joules - before
        before = joules
    return marginal
