"""Shapley values of joules: the definition of a fair share, to check the closed form against.

A value function gives the dynamic joules of a coalition: what the drive would draw if only these
groups used it. The Shapley value is a group's mean marginal joules over all orders of arrival; it
alone is efficient, symmetric, additive, and gives nothing to a group that adds nothing (Shapley
1953; for power: Dong, Lan, Zhong 2012). It needs 2^n values, so it is for tests and small studies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError

Floats = NDArray[np.float64]
Value = Callable[[NDArray[np.bool_]], float]
"""From the members of a coalition, shape (n,), to its joules; of the empty one it must be 0."""

PLAYERS_MAX = 12
"""4,096 coalitions."""

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class SampledShares:
    """Shares of n groups from random orders.

    Attributes:
        joules: Shape (n,); they sum to the joules of all groups exactly.
        standard_error: Shape (n,); of the mean over independent pairs of orders.
    """

    joules: Floats
    standard_error: Floats


def exact_shapley(value: Value, players: int) -> Floats:
    """The Shapley value of every player, shape (n,), from the values of all 2^n coalitions.

    Raises:
        InputError: More than 12 players; use `sampled_shapley`.
    """
    if not 1 <= players <= PLAYERS_MAX:
        raise InputError(
            f"exact Shapley values are computed for 1 to {PLAYERS_MAX} groups, not {players}: "
            "sample permutations instead"
        )
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

    Raises:
        InputError: Fewer than 4 orders, or no player.
    """
    if orders < 4 or players < 1:
        raise InputError(f"{orders} orders of {players} groups: at least 4 orders and 1 group")
    pairs = np.array(
        [
            (_marginal(value, order) + _marginal(value, order[::-1])) / 2
            for order in (generator.permutation(players) for _ in range(orders // 2))
        ]
    )
    error = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return SampledShares(pairs.mean(axis=0), error)


def saturating_shapley(loads: Floats, scale: float, amplitude: float = 1.0) -> Floats:
    """Exact Shapley values of any number of groups for `amplitude * (1 - exp(-load / scale))`.

    Args:
        loads: Shape (n,), not negative.
        scale: Load at which 63 % of `amplitude` is reached.
        amplitude: Joules at unlimited load.

    Returns:
        Shape (n,), joules.
    """
    scaled = np.asarray(loads, dtype=np.float64) / scale
    drive = np.zeros(len(scaled), dtype=np.intp)
    fractions, _ = saturating_fractions(drive, scaled, np.zeros(1))
    return np.asarray(-amplitude * np.expm1(-scaled.sum()) * fractions, dtype=np.float64)


def saturating_fractions(
    drive: NDArray[np.intp], loads: Floats, others: Floats
) -> tuple[Floats, Floats]:
    """Shapley values as fractions of each drive's joules, where these are 1 - exp(-load).

    The multilinear extension (Owen 1972) is a product for this value: a coalition that holds each
    other group with probability t is worth 1 - prod(1 - t + t exp(-x_j)), so a value is one
    integral over t, here by Gauss-Legendre quadrature.

    Args:
        drive: Shape (R,), index of the drive.
        loads: Shape (R,), in scales of the drive.
        others: Shape (D,), load of one more group on each drive.

    Returns:
        Fractions of shape (R,) and, for the others, (D,); 0 on a drive without load.
    """
    drives = len(others)
    index = np.concatenate([drive, np.arange(drives)])
    falls = -np.expm1(-np.concatenate([loads, others]))
    values = np.zeros(len(index))
    for node, weight in zip((_NODES + 1) / 2, _NODE_WEIGHTS / 2, strict=True):
        logarithms = np.log1p(-node * falls)
        of_drive = np.bincount(index, logarithms, drives)
        values += weight * np.exp(of_drive[index] - logarithms)
    values *= falls
    whole = np.bincount(index, values, drives)[index]
    fractions = np.divide(values, whole, where=whole > 0, out=np.zeros_like(values))
    return fractions[: len(drive)], fractions[len(drive) :]


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
