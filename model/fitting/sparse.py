"""A Gaussian process of many rows: inducing points instead of a cubic solve.

The deterministic training conditional (Seeger, Williams and Lawrence 2003; Quinonero-Candela and
Rasmussen 2005, section 5): m inducing rows Z stand for n rows X,

    S = (Kzz + Kzx Kxz / noise)^-1,    mean = K*z S Kzx y / noise,
    variance = k** - K*z Kzz^-1 Kz* + K*z S Kz*,

in time n m^2. The inducing rows are those that leave the least variance, one after the other
(pivoted Cholesky; Burt, Rasmussen and van der Wilk 2020, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

Floats = NDArray[np.float64]

INDUCING_ROWS = 256
"""Inducing rows; a surface over depth, jobs and size with a few paths has fewer bends."""

ENOUGH = 0.05
"""Where the largest variance left is this share of the noise, more rows would tell nothing."""

JITTER = 1e-8
"""Added to the diagonal, log units squared, against rounding."""


@dataclass(frozen=True)
class SparseProcess:
    """A fitted process; like scikit-learn's exact one it has `kernel_` and `predict`."""

    kernel_: Kernel
    inducing: Floats
    weights: Floats
    half: Floats
    half_posterior: Floats

    @classmethod
    def fit(
        cls, kernel: Kernel, x: Floats, y: Floats, noise: float, inducing: Floats | None = None
    ) -> SparseProcess:
        """Condition a kernel with known scales on n rows.

        Args:
            kernel: With a white part of variance `noise`.
            x: Shape (n, d).
            y: Shape (n,).
            noise: Variance of a single row.
            inducing: Where to put the inducing rows, shape (m, d); chosen among x by default.
        """
        if inducing is None:
            inducing = x[pivots(kernel, x, noise)]
        cross = kernel(inducing, x)
        prior = kernel(inducing, inducing.copy()) + JITTER * np.eye(len(inducing))
        posterior = prior + cross @ cross.T / noise
        half = np.linalg.cholesky(prior)
        half_posterior, lower = cho_factor(posterior, lower=True)
        weights = cho_solve((half_posterior, lower), cross @ y / noise)
        return cls(kernel, inducing, weights, half, np.tril(half_posterior))

    def predict(self, x: Floats, return_std: bool = True) -> tuple[Floats, Floats]:
        """Mean and standard deviation of single rows, noise included, at x."""
        assert return_std
        cross = self.kernel_(self.inducing, x)
        known = (solve_triangular(self.half, cross, lower=True) ** 2).sum(axis=0)
        left = (solve_triangular(self.half_posterior, cross, lower=True) ** 2).sum(axis=0)
        variance = np.maximum(self.kernel_.diag(x) - known + left, JITTER)
        return cross.T @ self.weights, np.sqrt(variance)


def pivots(kernel: Kernel, x: Floats, noise: float, most: int = INDUCING_ROWS) -> NDArray[np.intp]:
    """Rows that leave the least variance of the others, by pivoted Cholesky; at most `most`."""
    left = kernel.diag(x) - noise
    factor = np.zeros((min(most, len(x)), len(x)))
    chosen: list[int] = []
    for step in range(len(factor)):
        row = int(np.argmax(left))
        if left[row] <= ENOUGH * noise and chosen:
            break
        column = kernel(x[row : row + 1], x)[0] - factor[:step, row] @ factor[:step]
        factor[step] = column / np.sqrt(left[row])
        left = np.maximum(left - factor[step] ** 2, 0.0)
        left[row] = 0.0
        chosen.append(row)
    return np.array(chosen, dtype=np.intp)
