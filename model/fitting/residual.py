"""Learning residuals: a Gaussian process with a shared part and a part of each session."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from iojoule.model.fitting.rows import Rows, stands_apart
from iojoule.model.surface import Points

Floats = NDArray[np.float64]

COORDINATES = 4
"""Depth, request size, jobs and requests in flight come first in every feature matrix."""


@dataclass(frozen=True)
class SessionFeatures:
    """Lays out feature columns: log4 coordinates, then one-hot path, then session.

    A session that stands apart lies far from the others, so that little is learned
    from it about them; the reference stands at zero.
    """

    paths: list[str]
    sessions: list[str]

    def of(self, rows: Rows, points: Points) -> Floats:
        """Features of rows, shape (n, 3 + paths + sessions)."""
        keys = rows.path_keys()
        columns = [
            points.log2_depth / 2,
            points.log2_request / 2,
            points.log2_jobs / 2,
            (points.log2_depth + points.log2_jobs) / 2,
        ]
        columns += [np.array([key == path for key in keys], float) for path in self.paths]
        columns += [
            (3.0 if stands_apart(name) else 0.5) * (rows.session == name).astype(float)
            for name in self.sessions
        ]
        return np.stack(columns, axis=1)

    def at(self, log2_depth: Floats, log2_bytes: Floats, log2_jobs: Floats, path: str) -> Floats:
        """Features of the reference (no session) on one path."""
        matrix = np.zeros((len(log2_depth), COORDINATES + len(self.paths) + len(self.sessions)))
        matrix[:, 0], matrix[:, 1], matrix[:, 2] = log2_depth / 2, log2_bytes / 2, log2_jobs / 2
        matrix[:, 3] = matrix[:, 0] + matrix[:, 2]
        if path in self.paths:
            matrix[:, COORDINATES + self.paths.index(path)] = 1.0
        return matrix


class OnColumns(Kernel):  # type: ignore[misc]
    """A scikit-learn kernel that sees only some columns."""

    def __init__(self, kernel: Kernel, columns: tuple[int, ...]) -> None:
        self.kernel = kernel
        self.columns = columns

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments, as scikit-learn's clone wants them."""
        return {"kernel": self.kernel, "columns": self.columns}

    @property
    def hyperparameters(self) -> Any:
        """Those of the inner kernel."""
        return self.kernel.hyperparameters

    @property
    def theta(self) -> Any:
        """Log hyperparameters of the inner kernel."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: Any) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Any:
        """Bounds of theta."""
        return self.kernel.bounds

    def clone_with_theta(self, theta: Any) -> OnColumns:
        """Copy with other hyperparameters."""
        return OnColumns(self.kernel.clone_with_theta(theta), self.columns)

    def __call__(  # scikit-learn's own argument names
        self,
        X: Floats,  # noqa: N803
        Y: Floats | None = None,  # noqa: N803
        eval_gradient: bool = False,
    ) -> Any:
        """Evaluate the inner kernel on the chosen columns."""
        columns = list(self.columns)
        return self.kernel(X[:, columns], None if Y is None else Y[:, columns], eval_gradient)

    def diag(self, X: Floats) -> Any:  # noqa: N803
        """Diagonal of the kernel matrix."""
        return self.kernel.diag(X[:, list(self.columns)])

    def is_stationary(self) -> bool:
        """As the inner kernel."""
        return bool(self.kernel.is_stationary())


def _kernel(features: SessionFeatures, sd: float) -> Kernel:
    paths, sessions = len(features.paths), len(features.sessions)
    shared = tuple(range(COORDINATES + paths))
    own = (0, 1, *range(COORDINATES + paths, COORDINATES + paths + sessions))
    common = ConstantKernel(sd**2, (1e-5, 0.3)) * Matern(
        [1.0] * len(shared),
        length_scale_bounds=[(0.8, 8.0)] * COORDINATES + [(0.7, 5.0)] * paths,
        nu=1.5,
    )
    session = ConstantKernel(sd**2, (1e-5, 0.3)) * Matern(
        [1.0, 3.0] + [0.7] * sessions,
        length_scale_bounds=[(0.8, 8.0), (1.0, 20.0)] + [(0.3, 2.0)] * sessions,
        nu=1.5,
    )
    return OnColumns(common, shared) + OnColumns(session, own) + WhiteKernel(3e-4, (2e-5, 5e-3))


@dataclass(frozen=True)
class ResidualModel:
    """A fitted residual in log units."""

    process: GaussianProcessRegressor

    @classmethod
    def fit(
        cls, x: Floats, y: Floats, features: SessionFeatures, like: ResidualModel | None = None
    ) -> ResidualModel:
        """Learn y (n,) over features x (n, m); scales by marginal likelihood or as in `like`."""
        if like is not None:
            kernel, optimizer = like.process.kernel_, None
            return cls(GaussianProcessRegressor(kernel, optimizer=optimizer).fit(x, y))
        with warnings.catch_warnings():
            # a length scale at its bound is expected: a column that does not matter
            warnings.simplefilter("ignore", ConvergenceWarning)
            process = GaussianProcessRegressor(_kernel(features, 0.1)).fit(x, y)
        return cls(process)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included, at features x."""
        mean, sd = self.process.predict(x, return_std=True)
        return mean, sd
