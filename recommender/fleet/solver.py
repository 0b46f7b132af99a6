"""HiGHS as the fleet needs it: quiet, and its answers checked before they are believed."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array

from iojoule.datasets.errors import IojouleError

Floats = NDArray[np.float64]

NODES = (1_000, 30_000)
"""Nodes of the search after which the best plan so far is taken, and its gap stated, first the one,
and the other where there is none yet. A count, so that a busy machine gives the same plan. Of 360
drives the plan after one node was within 0.07 % of that after a minute."""

SECONDS = 60.0
"""Guard against a node that never ends."""

TOLERANCE = 1e-5
"""Amount by which a constraint may be missed, relative to its largest term: HiGHS' own is 1e-6
(absolute, on a scaled problem)."""

INFEASIBLE = 2
"""`scipy.optimize.milp`'s status of a program without a solution."""

_QUIET = threading.Lock()


class SolverError(IojouleError):
    """HiGHS ended without an answer although there is one, or with a wrong one."""

    exit_code = 31
    title = "Optimisation failed"


@dataclass(frozen=True)
class Solution:
    """What HiGHS found.

    Attributes:
        values: Of all variables.
        objective: Theirs.
        bound: What no solution can be below, as proven.
        relaxed: What none can be below even if nothing had to be whole.
    """

    values: Floats
    objective: float
    bound: float
    relaxed: float

    @property
    def gap(self) -> float:
        """How far the objective may be from the best, relative."""
        return abs(self.objective - self.bound) / max(abs(self.objective), 1e-12)


def solve(
    cost: Floats,
    integer: NDArray[np.intp],
    low: Floats,
    high: Floats,
    matrix: csr_array,
    row_low: Floats,
    row_high: Floats,
    *,
    gap: float,
) -> Solution | None:
    """Minimise cost x under row_low <= matrix x <= row_high; None where nothing satisfies that.

    Args:
        cost: Shape (n,).
        integer: 1 for variables that must be whole, shape (n,).
        low: Least values of the variables, shape (n,).
        high: Most, likewise.
        matrix: Shape (m, n).
        row_low: Least sums of the rows, shape (m,).
        row_high: Most, likewise.
        gap: Relative gap at which to stop.

    Raises:
        SolverError: HiGHS gave up, or its solution breaks a constraint.
    """
    for nodes in NODES:
        with _no_chatter():
            result: OptimizeResult = milp(
                cost,
                integrality=integer,
                bounds=Bounds(low, high),
                constraints=LinearConstraint(matrix, row_low, row_high),
                options={"mip_rel_gap": gap, "time_limit": SECONDS, "node_limit": nodes},
            )
        if result.status == INFEASIBLE:
            return None
        if result.x is not None:
            break
    if result.x is None:
        raise SolverError(
            f"the optimiser ended without a plan: {result.message}; allow a wider gap, or plan "
            "parts of the fleet by themselves"
        )
    values = np.asarray(result.x)
    _check(values, low, high, matrix, row_low, row_high)
    found = float(cost @ values)
    proven = result.get("mip_dual_bound") if integer.any() else None
    bound = found if proven is None else float(proven)
    return Solution(values, found, bound, bound)


def _check(
    values: Floats, low: Floats, high: Floats, matrix: csr_array, row_low: Floats, row_high: Floats
) -> None:
    """HiGHS has called solutions optimal that broke constraints (scipy issue 24141)."""
    sums = matrix @ values
    terms = abs(matrix).max(axis=1).toarray().ravel() * max(float(np.abs(values).max()), 1.0)
    room = TOLERANCE * np.maximum(terms, 1.0)
    missed = np.maximum(row_low - sums, sums - row_high) - room
    outside = np.maximum(low - values, values - high)
    if missed.max(initial=0.0) > 0.0 or outside.max(initial=0.0) > TOLERANCE * max(
        1.0, float(np.abs(values).max())
    ):
        raise SolverError(
            "the optimiser's plan breaks a constraint of its own program; change --gap a little, "
            "or plan parts of the fleet by themselves"
        )


@contextmanager
def _no_chatter() -> Iterator[None]:
    """Send what HiGHS prints to standard error.

    Some of its lines ignore that it is told to be silent, and standard output is the answer's.
    """
    with _QUIET:
        sys.stdout.flush()
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
            yield
        finally:
            ctypes.CDLL(None).fflush(None)  # what C has buffered belongs there too
            os.dup2(kept, 1)
            os.close(kept)
