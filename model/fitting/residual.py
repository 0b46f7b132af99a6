"""Learning residuals: a Gaussian process with a shared part and a part of each session."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    WhiteKernel,
)

from iojoule.model.fitting.rows import Rows, stands_apart
from iojoule.model.fitting.sparse import SparseProcess
from iojoule.model.surface import Points

Floats = NDArray[np.float64]

MEAN_VARIANCE = (4e-4, 1e-6, 9e-4)
"""Start and bounds of the variance of mean latency between steady sessions, log units squared: 3 %
at most, so that what differs more is a property of the drive."""

TAIL_VARIANCE = (4e-4, 1e-6, 9e-4)
"""As above for percentiles over the mean, which follow a host's other work from day to day."""

EXACT_ROWS = 400
"""More rows than this go through inducing points: the exact solve is cubic."""

SCALE_ROWS = 200
"""So many rows, drawn at random, tell the scales where there are more than `EXACT_ROWS`."""

COORDINATES = 4
"""Depth, request size, jobs and requests in flight come first in every feature matrix."""


@dataclass(frozen=True)
class SessionFeatures:
    """Lays out feature columns: log4 coordinates, then one-hot path, then session.

    The reference belongs to no session.
    """

    paths: list[str]
    sessions: list[str]

    def of(self, rows: Rows, points: Points) -> Floats:
        """Features of rows, shape (n, 3 + paths + sessions)."""
        keys = np.array(rows.path_keys(), dtype=object)
        columns = [
            points.log2_depth / 2,
            points.log2_request / 2,
            points.log2_jobs / 2,
            (points.log2_depth + points.log2_jobs) / 2,
        ]
        columns += [(keys == path).astype(float) for path in self.paths]
        columns += [(rows.session == name).astype(float) for name in self.sessions]
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


def _session_part(columns: list[int], variance: tuple[float, float, float]) -> Kernel:
    """What sessions add, smooth over depth and size; nothing for the reference, which is in none.

    Args:
        columns: One-hot columns of the sessions.
        variance: Where the variance starts, and its bounds.
    """
    start, low, high = variance
    smooth = ConstantKernel(start, (low, high)) * Matern(
        [1.0, 3.0], length_scale_bounds=[(0.8, 8.0), (1.0, 20.0)], nu=1.5
    )
    own = DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
    return OnColumns(smooth, (0, 1)) * OnColumns(own, tuple(columns))


MEAN_BOUNDS = (0.3, 5e-3)
"""Greatest variance of the residual of mean latency, and of a single row's chance error."""

TAIL_BOUNDS = (4.0, 0.2)
"""As above for percentiles: where a queue in the host overflows, the 99th percentile of neighbours
differs by a factor of ten, and no surface passes through all of them (860 PRO beyond 32)."""


def _kernel(
    features: SessionFeatures,
    sd: float,
    between: tuple[float, float, float],
    most: tuple[float, float],
) -> Kernel:
    first = COORDINATES + len(features.paths)
    shared = tuple(range(first))
    kernel = OnColumns(
        ConstantKernel(sd**2, (1e-5, most[0]))
        * Matern(
            [1.0] * len(shared),
            length_scale_bounds=[(0.8, 8.0)] * COORDINATES + [(0.7, 5.0)] * len(features.paths),
            nu=1.5,
        ),
        shared,
    ) + WhiteKernel(3e-4, (2e-5, most[1]))
    apart = [first + i for i, name in enumerate(features.sessions) if stands_apart(name)]
    steady = [first + i for i, name in enumerate(features.sessions) if not stands_apart(name)]
    if len(steady) > 1:  # a lone session is the reference
        kernel = kernel + _session_part(steady, between)
    if apart:
        kernel = kernel + _session_part(apart, (sd**2, 1e-5, 0.3))
    return kernel


def _noise_variance(kernel: Kernel) -> float:
    parts = kernel.get_params()
    return float(next(value for name, value in parts.items() if name.endswith("noise_level")))


@dataclass(frozen=True)
class ResidualModel:
    """A fitted residual in log units."""

    process: GaussianProcessRegressor | SparseProcess

    @classmethod
    def fit(
        cls,
        x: Floats,
        y: Floats,
        features: SessionFeatures,
        between: tuple[float, float, float],
        most: tuple[float, float],
        like: ResidualModel | None = None,
    ) -> ResidualModel:
        """Learn y over x.

        Args:
            x: Features, shape (n, m).
            y: Residuals, shape (n,).
            features: Layout of the features.
            between: Start and bounds of the variance between steady sessions.
            most: Greatest variance of the residual and of one row's error.
            like: Take the scales from this model; None finds them by marginal likelihood.
        """
        if like is not None:
            kernel = like.process.kernel_
            if len(x) > EXACT_ROWS:
                known = like.process.inducing if isinstance(like.process, SparseProcess) else None
                return cls(SparseProcess.fit(kernel, x, y, _noise_variance(kernel), known))
            return cls(GaussianProcessRegressor(kernel, optimizer=None).fit(x, y))
        if len(x) > EXACT_ROWS:
            some = np.random.default_rng(0).permutation(len(x))[:SCALE_ROWS]
            scales = cls.fit(x[some], y[some], features, between, most)
            return cls.fit(x, y, features, between, most, scales)
        with warnings.catch_warnings():
            # a length scale at its bound is expected: a column that does not matter
            warnings.simplefilter("ignore", ConvergenceWarning)
            process = GaussianProcessRegressor(_kernel(features, 0.1, between, most)).fit(x, y)
        return cls(process)

    @property
    def noise_variance(self) -> float:
        """Variance of a single row around the surface, log units squared."""
        return _noise_variance(self.process.kernel_)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included, at features x."""
        mean, sd = self.process.predict(x, return_std=True)
        return mean, sd
