"""What the calibrated simulator still misses: a Gaussian process over size, depth, jobs and host.

Features are log2 of size, depth and jobs, and a column for each host, engine and kind of operation.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.estimate import FIRST_DISCREPANCY_SD

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor

LEAST_POINTS = 6
"""With fewer the residual is not learned: its sd is all that is said."""

NORMAL_90 = 1.645
"""Standard deviations on each side of a 90 % interval."""

APART = 4.0
"""Octaves that stand for running another engine, host, operation or pattern."""


@dataclass(frozen=True)
class Residual:
    """The learned residual of one quantity, in log units.

    Attributes:
        process: None where there were too few points.
        sd: Root mean square of the residual at the points of the fit.
        left_out_sd: Joined with the process' own sd, so that sizes and depths that are left out
            lie within it as often as they should.
        length_octaves: How far it reaches, by feature.
    """

    process: GaussianProcessRegressor | None
    sd: float
    length_octaves: tuple[float, ...]
    left_out_sd: float = 0.0

    def __call__(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and sd at points, each of shape (k,); far from what was learned the sd is more."""
        if self.process is None:
            return np.zeros(len(features)), np.full(len(features), self.sd)
        mean, deviation = self.process.predict(features, return_std=True)
        deviation = np.hypot(deviation, self.left_out_sd)
        far = np.minimum(1.0, deviation / self.sd)
        return np.asarray(mean), np.hypot(deviation, far**2 * FIRST_DISCREPANCY_SD)


def place_of(features: Sequence[float], group: str, groups: Sequence[str]) -> list[float]:
    """A point's features with the group that it belongs to, as octaves apart."""
    return [*features, *(APART * (group == each) for each in groups)]


def learn(features: Floats, errors: Floats) -> Residual:
    """Learn log(measured / simulated), shape (n,), over features, shape (n, f)."""
    # here, because workers, which only simulate, start a second sooner without it
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    known = np.isfinite(errors)
    features, errors = features[known], errors[known]
    size = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.3
    if len(errors) < LEAST_POINTS or size < 1e-6:
        return Residual(None, max(size, 0.02), ())
    variance = size**2
    kernel = ConstantKernel(variance, (variance / 20, variance * 20)) * RBF(
        np.full(features.shape[1], 2.0), (0.7, 30.0)
    ) + WhiteKernel(variance / 10, (max(variance / 200, 1e-6), variance * 2))
    process = GaussianProcessRegressor(kernel, random_state=0, n_restarts_optimizer=1)
    with warnings.catch_warnings():
        # what does not matter ends at the bound of its length
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(features, errors)
    lengths = np.atleast_1d(process.kernel_.k1.k2.length_scale)
    left_out_sd = _left_out_sd(process, features, errors)
    return Residual(process, size, tuple(float(one) for one in lengths), left_out_sd)


def _left_out_sd(process: GaussianProcessRegressor, features: Floats, errors: Floats) -> float:
    """What the sd lacks where whole sizes and depths are left out, in nine of ten cases.

    Each group of host and engine is judged by itself, and the worst counts: one that was sampled
    densely must not speak for the others.
    """
    lacking = np.full(len(errors), np.nan)
    for column in (0, 1):
        for value in np.unique(features[:, column]):
            out = features[:, column] == value
            if out.all():
                continue
            kept = type(process)(process.kernel_, optimizer=None)
            mean, deviation = kept.fit(features[~out], errors[~out]).predict(
                features[out], return_std=True
            )
            needed = (errors[out] - mean) ** 2 / NORMAL_90**2 - deviation**2
            lacking[out] = np.fmax(lacking[out], needed)
    worst = 0.0
    for group in np.unique(features[:, 3:], axis=0):
        own = lacking[(features[:, 3:] == group).all(axis=1)]
        own = own[np.isfinite(own)]
        if len(own) >= LEAST_POINTS:
            worst = max(worst, float(np.quantile(own, 0.9)))
    return float(np.sqrt(worst))
