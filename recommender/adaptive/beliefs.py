"""What measurements say of every candidate: costs, chances to keep the SLA, and how far off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from iojoule.model.fit.gaussian_process import GaussianProcess, Hyperparameters
from iojoule.recommender.adaptive.aims import Aims
from iojoule.recommender.adaptive.normal import LEAST_VARIANCE, Normal

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

JOINT_MAX = 1_500
"""Candidates whose joint distribution is kept; of more, those that may be the best."""
OPTIMISM = 3.0
"""A candidate may be the best where its cost less so many sd is low, and its chance is not nil."""
_LEAST_CHANCE = 1e-3


@dataclass(frozen=True)
class Choice:
    """A recommended candidate.

    Attributes:
        row: Of the candidates.
        cost: Predicted, in the units of the objective.
        probability: That it keeps every bound.
        feasible: Whether each bound is kept with the stated confidence; if not, this is merely
            the candidate that most probably keeps them.
    """

    row: int
    cost: float
    probability: float
    feasible: bool


class Beliefs:
    """Gaussian processes of all outputs of a question, fitted to what was measured.

    Each process' standard deviations are widened by how much it was surprised at measurements
    that it was not shown, one at a time.

    Args:
        aims: The question.
        inputs: Coordinates of the candidates, shape (m, d).
        rows: Measured candidates, shape (n,).
        values: Logs of their outputs, shape (n, q).
        start: Hyperparameters of an earlier fit by output.
    """

    def __init__(
        self,
        aims: Aims,
        inputs: Floats,
        rows: Rows,
        values: Floats,
        start: Mapping[str, Hyperparameters] | None = None,
    ) -> None:
        self.aims = aims
        self.measured = rows
        self._inputs = inputs
        begin = start or {}
        self._processes = [
            GaussianProcess(inputs[rows], values[:, place], begin.get(name))
            for place, name in enumerate(aims.outputs)
        ]
        self._widened = np.array([max(1.0, one.surprise()) ** 2 for one in self._processes])
        found = [one.marginal(inputs) for one in self._processes]
        self.means = np.stack([mean for mean, _ in found])
        self.variances = np.maximum(
            np.stack([variance for _, variance in found]) * self._widened[:, None],
            LEAST_VARIANCE,
        )

    @property
    def hyperparameters(self) -> dict[str, Hyperparameters]:
        """By output, to begin the next fit at."""
        pairs = zip(self.aims.outputs, self._processes, strict=True)
        return {name: one.hyperparameters for name, one in pairs}

    @property
    def noise(self) -> Floats:
        """Standard deviation of the log of one measured output, shape (q,)."""
        return np.array([one.noise for one in self._processes])

    def choice(self) -> Choice:
        """The cheapest candidate of those that keep each bound with the stated confidence."""
        costs = self.aims.log_costs(self.means)
        margin = NormalDist().inv_cdf(self.aims.question.sla.confidence)
        allowed = self.aims.keeps(self.means + margin * np.sqrt(self.variances))
        chances = self.aims.chances(self.means, self.variances)
        row = int(np.where(allowed, costs, np.inf).argmin() if allowed.any() else chances.argmax())
        return Choice(row, float(np.exp(costs[row])), float(chances[row]), bool(allowed[row]))

    def joint(self) -> Normal:
        """The joint distribution over the candidates that may be the best."""
        rows = self._contenders()
        found = [one.posterior(self._inputs[rows]) for one in self._processes]
        wide = self._widened[:, None, None]
        return Normal(
            rows,
            np.stack([mean for mean, _ in found]),
            np.stack([covariance for _, covariance in found]) * wide,
        )

    def _contenders(self) -> Rows:
        count = self._inputs.shape[0]
        if count <= JOINT_MAX:
            return np.arange(count)
        costs = self.aims.log_costs(self.means)
        sds = np.sqrt(np.square(self.aims.weights) @ self.variances)
        chances = self.aims.chances(self.means, self.variances)
        hopeless = np.where(chances < _LEAST_CHANCE, 1e3, 0.0)
        order = np.argsort(costs - OPTIMISM * sds + hopeless, kind="stable")
        keep = np.union1d(order[: JOINT_MAX - 1], [self.choice().row])
        return keep.astype(np.intp)
