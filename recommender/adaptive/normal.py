"""Joint normal distributions of what candidates do, and what a measurement does to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Normal:
    """Joint normal distributions of the outputs, independent of each other.

    Attributes:
        rows: The candidates that it is about, shape (k,).
        means: Shape (q, k).
        covariances: Shape (q, k, k).
    """

    rows: Rows
    means: Floats
    covariances: Floats

    @property
    def variances(self) -> Floats:
        """Shape (q, k)."""
        return np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2), LEAST_VARIANCE)

    def only(self, kept: NDArray[np.bool_]) -> Normal:
        """The same without some candidates."""
        return Normal(self.rows[kept], self.means[:, kept], self.covariances[:, kept][:, :, kept])

    def samples(self, count: int, source: np.random.Generator) -> Floats:
        """Draws of the outputs, shape (q, k, count)."""
        size = len(self.rows)
        found = []
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            # rounding makes the matrix slightly indefinite where candidates hardly differ
            ridge = 1e-9 + 1e-8 * float(np.diag(covariance).max())
            factor = np.linalg.cholesky(covariance + ridge * np.eye(size))
            found.append(mean[:, None] + factor @ source.standard_normal((size, count)))
        return np.stack(found)

    def step(self, place: int, noise: Floats) -> Floats:
        """How far one sd of surprise at a candidate moves all means, shape (q, k).

        Args:
            place: The candidate that is measured.
            noise: Standard deviation of one measured output, shape (q,).
        """
        column = self.covariances[:, :, place]
        return np.asarray(column / np.sqrt(column[:, place] + noise**2)[:, None])

    def after(self, place: int, noise: Floats) -> Normal:
        """What is known after measuring a candidate, if it turns out as expected; as `step`."""
        step = self.step(place, noise)
        return replace(self, covariances=self.covariances - step[:, :, None] * step[:, None, :])
