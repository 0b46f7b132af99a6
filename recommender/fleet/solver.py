"""HiGHS as the fleet needs it: quiet, and its answers checked before they are believed."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import highspy
import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import SolverError
from iojoule.recommender.pareto import without_rounding_errors

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

_QUIET = threading.Lock()


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix of `shape`; cells of one place add up.

    Attributes:
        rows: Of the cells, shape (k,).
        columns: Likewise.
        values: Likewise.
        shape: Rows and columns.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Floats
    shape: tuple[int, int]

    def __matmul__(self, vector: Floats) -> Floats:
        """The product with a vector of shape (n,)."""
        terms = self.values * vector[self.columns]
        return np.bincount(self.rows, weights=terms, minlength=self.shape[0]).astype(np.float64)

    def largest(self) -> Floats:
        """Largest absolute value of each row."""
        most = np.zeros(self.shape[0])
        np.maximum.at(most, self.rows, np.abs(self.values))
        return most

    def compressed(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """Starts, row indices and values by column, each place once."""
        place, cell = np.unique(self.columns * self.shape[0] + self.rows, return_inverse=True)
        starts = np.searchsorted(place, np.arange(self.shape[1] + 1) * self.shape[0])
        values = np.bincount(cell, weights=self.values).astype(np.float64)
        return starts.astype(np.int32), (place % self.shape[0]).astype(np.int32), values


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
    matrix: Matrix,
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
    # the last bits, which differ between processors, would decide between equal plans
    cost, row_low, row_high = map(without_rounding_errors, (cost, row_low, row_high))
    matrix = replace(matrix, values=without_rounding_errors(matrix.values))
    program = _program(cost, integer, low, high, matrix, row_low, row_high)
    for nodes in NODES:
        with _no_output():
            solver = highspy.Highs()
            for name, value in (
                ("output_flag", False),
                ("mip_rel_gap", gap),
                ("time_limit", SECONDS),
                ("mip_max_nodes", nodes),
                ("threads", 1),  # as many as there are cores would give each machine its own plan
            ):
                solver.setOptionValue(name, value)
            solver.passModel(program)
            solver.run()
            if solver.getModelStatus() == highspy.HighsModelStatus.kUnknown:
                # what presolve left of a program was neither solved nor shown to be infeasible
                solver.clearSolver()
                solver.setOptionValue("presolve", "off")
                solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        if status in _WITHOUT_SOLUTION:
            return None
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if found:
            break
    if not found:
        raise SolverError(
            "the optimiser ended without a plan: "
            f"{solver.modelStatusToString(status)}; allow a wider gap, or plan parts of the fleet "
            "by themselves"
        )
    values = np.array(solver.getSolution().col_value)
    _check(values, low, high, matrix, row_low, row_high)
    objective = float(without_rounding_errors(cost @ values)[0])
    bound = float(info.mip_dual_bound) if integer.any() else objective
    return Solution(values, objective, bound, bound)


_WITHOUT_SOLUTION = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)


def _program(
    cost: Floats,
    integer: NDArray[np.intp],
    low: Floats,
    high: Floats,
    matrix: Matrix,
    row_low: Floats,
    row_high: Floats,
) -> highspy.HighsLp:
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
    program.row_lower_, program.row_upper_ = row_low, row_high
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.num_row_, program.a_matrix_.num_col_ = matrix.shape
    starts, rows, values = matrix.compressed()
    program.a_matrix_.start_, program.a_matrix_.index_ = starts, rows
    program.a_matrix_.value_ = values
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    program.integrality_ = [kinds[whole] for whole in integer.tolist()]
    return program


def _check(
    values: Floats, low: Floats, high: Floats, matrix: Matrix, row_low: Floats, row_high: Floats
) -> None:
    """HiGHS has called solutions optimal that broke constraints (scipy issue 24141)."""
    sums = matrix @ values
    terms = matrix.largest() * max(float(np.abs(values).max()), 1.0)
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
def _no_output() -> Iterator[None]:
    """Drop what HiGHS prints.

    Its banner ignores `output_flag`, and standard output is the answer's.
    """
    with _QUIET:
        sys.stdout.flush()
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 1)
            yield
        finally:
            ctypes.CDLL(None).fflush(None)  # what C has buffered belongs there too
            os.dup2(kept, 1)
            os.close(kept)
            os.close(nowhere)
