"""Gaussian processes that answer for the simulator.

An output is a quadratic trend in the parameters plus a Gaussian process on what it leaves (a
common form for computer models: Vernon et al., Bayesian Analysis 5(4), 2010, section 3).
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

Floats = NDArray[np.float64]

NOISE = 1e-3
"""Log sd of a short simulation by chance: the start of its estimate."""


KEPT_VARIANCE = 0.9995
"""Principal components are kept until they explain so much of what the trend leaves."""


class Emulator:
    """The simulator's outputs over the unit cube of its parameters.

    The outputs move together, so that few principal components stand for all of them (Higdon et
    al., JASA 103(482), 2008); what the components leave out is added to the variance.

    Args:
        cubes: Design points, shape (n, d).
        outputs: What was simulated there, shape (n, m).
    """

    def __init__(self, cubes: Floats, outputs: Floats) -> None:
        self._squares = len(cubes) > 4 * cubes.shape[1]
        x = self._basis(cubes)
        # ridge-stabilised, for designs that hardly differ in a parameter
        self._trend = np.linalg.solve(x.T @ x + 1e-6 * np.eye(x.shape[1]), x.T @ outputs)
        rest = outputs - x @ self._trend
        scores, sizes, self._loadings = np.linalg.svd(rest, full_matrices=False)
        share = np.cumsum(sizes**2) / max(float(np.sum(sizes**2)), 1e-30)
        kept = min(int(np.searchsorted(share, KEPT_VARIANCE)) + 1, len(sizes))
        self._loadings = self._loadings[:kept]
        self._left_out = np.mean((rest - rest @ self._loadings.T @ self._loadings) ** 2, axis=0)
        columns = (scores * sizes)[:, :kept]
        self._processes = [_process(cubes, columns[:, index]) for index in range(kept)]

    def __call__(self, cubes: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the outputs, each of shape (k, m)."""
        told = [process.predict(cubes, return_std=True) for process in self._processes]
        means = np.stack([mean for mean, _ in told], axis=1)
        variances = np.stack([deviation**2 for _, deviation in told], axis=1)
        mean = self._basis(cubes) @ self._trend + means @ self._loadings
        return mean, np.sqrt(variances @ self._loadings**2 + self._left_out)

    def _basis(self, cubes: Floats) -> Floats:
        """Quadratic without interactions; linear where points are few."""
        centred = 2 * cubes - 1
        parts = [np.ones((len(cubes), 1)), centred]
        if self._squares:
            parts.append(centred**2)
        return np.concatenate(parts, axis=1)


def _process(cubes: Floats, rest: Floats) -> GaussianProcessRegressor:
    scale = max(float(np.std(rest)), NOISE)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * RBF(
        np.full(cubes.shape[1], 1.0), (0.1, 20.0)
    ) + WhiteKernel((NOISE / scale) ** 2, (1e-8, 1.0))
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    with warnings.catch_warnings():
        # a parameter without effect on an output has a length at its bound: that is the answer
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(cubes, rest)
    return process
