"""Moves a least-squares solution onto the optimum itself, so that every machine fits the same.

A trust-region solver stops when a step gains little. Where an optimum is flat, that is up to 1e-4
away from it, in a direction that the rounding of the machine's linear algebra decides. Here
the iteration goes on until the step itself is nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 1e-8
"""Done when no parameter moves by more: some times what rounding leaves, a tenth of what profiles
keep."""

STEPS_MAX = 150
MEMORY = 15
"""Steps that the extrapolation looks back on."""

RANK = 1e-10
"""Directions of past steps that are shorter than this share of the longest are rounding."""

ROUNDING = 1e-9
"""Costs closer than this are the same."""


def polish(loss: Callable[[Floats], Floats], vector: Floats, f_scale: float) -> Floats:
    """Minimise the soft-L1 cost of `loss` from nearby, to eight digits.

    The fixed point of reweighted Gauss-Newton steps, found with Anderson's extrapolation (D. G.
    Anderson, J. ACM 12(4), 1965), which needs no values of the cost: those are flat to half of the
    digits around an optimum. What does not converge, or ends higher, is returned as it came.

    Args:
        loss: Residuals of parameter vectors, in standard deviations: from (..., parameters) to
            (..., residuals).
        vector: Where a solver stopped.
        f_scale: Residual at which squares become lines, as in `scipy.optimize.least_squares`.
    """
    at = vector
    visited: list[Floats] = []
    steps: list[Floats] = []
    for _ in range(STEPS_MAX):
        step = _gauss_newton_step(loss, at, f_scale)
        if step is None:
            break
        visited = [*visited, at][-MEMORY:]
        steps = [*steps, step][-MEMORY:]
        at = at + step
        if np.abs(step).max() < STEP:
            lower = _cost(loss, at, f_scale) <= _cost(loss, vector, f_scale) * (1.0 + ROUNDING)
            return at if lower else vector
        if len(steps) > 1:
            moved = np.diff(np.array(visited), axis=0).T
            changed = np.diff(np.array(steps), axis=0).T
            at = at - (moved + changed) @ np.linalg.lstsq(changed, step, rcond=RANK)[0]
    return vector


def _gauss_newton_step(
    loss: Callable[[Floats], Floats], at: Floats, f_scale: float
) -> Floats | None:
    residual, slopes = loss(at), jacobian(loss, at)
    if not (np.isfinite(residual).all() and np.isfinite(slopes).all()):
        return None
    weight = 1.0 / np.sqrt(1.0 + (residual / f_scale) ** 2)  # derivative of soft L1
    weighted = slopes * weight[:, None]
    step = np.linalg.lstsq(weighted.T @ slopes, -weighted.T @ residual, rcond=None)[0]
    return np.asarray(step, dtype=np.float64)


def jacobian(loss: Callable[[Floats], Floats], at: Floats) -> Floats:
    """Central differences, whose error is the square of that of one-sided ones.

    Args:
        loss: As in `polish`; asked for all vectors at once.
        at: The parameters, shape (p,).

    Returns:
        Shape (residuals, p).
    """
    width = np.diag(np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(at)))
    above, below = at + width, at - width
    apart = np.diagonal(above) - np.diagonal(below)
    # in a row of memory each, as the solver's products of matrices want them
    return np.ascontiguousarray(((loss(above) - loss(below)) / apart[:, None]).T)


def _cost(loss: Callable[[Floats], Floats], at: Floats, f_scale: float) -> float:
    return float(np.sum(np.sqrt(1.0 + (loss(at) / f_scale) ** 2) - 1.0))
