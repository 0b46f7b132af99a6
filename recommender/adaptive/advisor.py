"""Advises a campaign: what to recommend by now, how wrong that may be, and what to measure next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, qmc

from iojoule.datasets.errors import InputError
from iojoule.datasets.store import Dataset
from iojoule.model.fit.gaussian_process import GaussianProcess, Hyperparameters, coordinates
from iojoule.recommender.adaptive.aims import Aims, Candidate
from iojoule.recommender.adaptive.normal import LEAST_VARIANCE, Normal
from iojoule.recommender.request import WorkloadProfile

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


INFEASIBLE = 1.0
"""Log of the factor by which an infeasible configuration counts as costlier."""
DOUBT = 3.0
"""Every other choice is made as if the model were so many times as unsure as it says: lengths
and amplitudes that were estimated wrongly make it blind, and only a look elsewhere shows that."""
OUTCOMES = 32
SHORTLIST = 30
"""Candidates that are looked at closely: the best so many by each of two quick measures."""
RIVALS = 200
"""Candidates that may be recommended after a measurement."""


@dataclass(frozen=True)
class Regrets:
    """Joint draws of what the recommendation would lose.

    Attributes:
        draws: Cost of the recommended over the best feasible candidate, minus 1, shape (s,); 1
            where the recommended one breaks the SLA and another one would not.
        winners: Place of the best feasible candidate in each draw, shape (s,).
        gains: Mean log improvement over the recommended candidate, by candidate, shape (k,).
    """

    draws: Floats
    winners: NDArray[np.intp]
    gains: Floats

    def only(self, kept: NDArray[np.bool_]) -> Regrets:
        """The same without some candidates, which then win in no draw."""
        places = np.cumsum(kept) - 1
        still = kept[self.winners]
        return Regrets(self.draws[still], places[self.winners[still]], self.gains[kept])

    def bound(self, confidence: float) -> float:
        """The regret that is not exceeded with this probability."""
        return float(np.quantile(self.draws, confidence))


def regrets(
    aims: Aims, joint: Normal, place: int, count: int, source: np.random.Generator
) -> Regrets:
    """What recommending the candidate at `place` of `joint.rows` would lose, in joint draws."""
    outputs = joint.samples(count, source)
    costs = np.tensordot(aims.weights, outputs, axes=1) + aims.offset[joint.rows, None]
    kept = aims.keeps(outputs)
    priced = np.where(kept, costs, np.inf)
    winners = priced.argmin(axis=0)
    best = priced.min(axis=0)
    possible = np.isfinite(best)
    own = costs[place] + np.where(kept[place], 0.0, INFEASIBLE)
    lost = np.where(kept[place], np.expm1(costs[place] - np.where(possible, best, 0.0)), 1.0)
    # where nothing is feasible, no other choice would have been better
    draws = np.where(possible, np.maximum(lost, 0.0), 0.0)
    gains = np.where(kept, np.maximum(own - costs, 0.0), 0.0).mean(axis=1)
    return Regrets(draws, winners, gains)


def batch(
    aims: Aims,
    joint: Normal,
    noise: Floats,
    expected: Regrets,
    count: int,
    source: np.random.Generator,
) -> list[int]:
    """Candidates worth measuring next, best first, each given those before it.

    Args:
        aims: The question.
        joint: What is known.
        noise: Standard deviation of the log of one measured output, shape (q,).
        expected: Of the present recommendation.
        count: How many.
        source: Of the outcomes.

    Returns:
        Rows of the candidates; one may come twice, which is a repeat.
    """
    chosen: list[int] = []
    seconds = np.array([aims.candidates[row].seconds for row in joint.rows])
    for index in range(count):
        doubt = DOUBT if index % 2 else 1.0
        doubted = replace(joint, covariances=joint.covariances * doubt**2)
        places = _shortlist(aims, joint, expected)
        outcomes = qmc.Sobol(len(joint.means), scramble=True, rng=source).random(OUTCOMES)
        shifts = norm.ppf(np.clip(outcomes, 1e-6, 1 - 1e-6))
        worth = _worth(aims, doubted, noise, places, shifts) / seconds[places]
        place = int(places[worth.argmax()])
        chosen.append(int(joint.rows[place]))
        joint = joint.after(place, noise)
    return chosen


def _shortlist(aims: Aims, joint: Normal, expected: Regrets) -> NDArray[np.intp]:
    weights = np.maximum(expected.draws, 1e-6)
    wins = np.bincount(expected.winners, weights=weights, minlength=len(joint.rows))
    return np.unique(
        np.concatenate(
            [
                np.argsort(-expected.gains, kind="stable")[:SHORTLIST],
                np.argsort(-wins, kind="stable")[:SHORTLIST],
                np.argsort(_prices(aims, joint), kind="stable")[: SHORTLIST // 3],
            ]
        )
    )


def _prices(aims: Aims, joint: Normal) -> Floats:
    """Log cost, raised by the chance to break the SLA, shape (k,)."""
    chances = aims.chances(joint.means, joint.variances)
    return aims.log_costs(joint.means, joint.rows) + INFEASIBLE * (1 - chances)


def _worth(
    aims: Aims, joint: Normal, noise: Floats, places: NDArray[np.intp], shifts: Floats
) -> Floats:
    """Expected fall of the least price after one more measurement, shape (len(places),)."""
    prices = _prices(aims, joint)
    variances = joint.variances
    low = prices - 2.5 * np.sqrt(np.square(aims.weights) @ variances)
    rivals = np.union1d(np.argsort(low, kind="stable")[:RIVALS], [prices.argmin()])
    rows = joint.rows[rivals]
    worth = np.empty(len(places))
    for index, place in enumerate(places):
        step = joint.step(int(place), noise)[:, rivals]
        means = joint.means[:, rivals][:, None, :] + shifts.T[:, :, None] * step[:, None, :]
        left = np.maximum(variances[:, rivals] - step**2, 1e-12)[:, None, :]
        chances = aims.chances(means, left)
        after = aims.log_costs(means, rows) + INFEASIBLE * (1 - chances)
        worth[index] = prices.min() - after.min(axis=1).mean()
    return worth


LEAST_ROWS = 4
"""Fewer measurements say nothing about any other candidate."""
REGRET_CONFIDENCE = 0.9
DRAWS = 512


@dataclass(frozen=True)
class Proposal:
    """What to measure next, and what would be recommended now.

    Attributes:
        candidates: In the order in which to measure them; one may come twice.
        choice: The present recommendation.
        regret_bound: Cost of the recommendation over that of the best feasible candidate, minus
            1, which is not exceeded with a probability of 0.9, as far as the model goes.
        why: In words.
    """

    candidates: tuple[Candidate, ...]
    choice: Choice
    regret_bound: float
    why: str


class CandidateAdvisor:
    """Learns from measurements which candidate answers a question best.

    Args:
        question: Workload with SLA, objective and scope.
        candidates: What may be recommended and measured.
        seed: Of the draws: the same data and seed give the same advice.
        batch_size: Candidates proposed at a time.

    Raises:
        InputError: The question cannot be answered by such runs.
    """

    def __init__(
        self,
        question: WorkloadProfile,
        candidates: Sequence[Candidate],
        *,
        seed: int = 1,
        batch_size: int = 4,
    ) -> None:
        self.aims = Aims(question, candidates)
        self._inputs, _ = coordinates([one.configuration for one in candidates])
        self._seed = seed
        self._batch_size = batch_size
        self._start: dict[str, Hyperparameters] | None = None

    def beliefs(self, dataset: Dataset) -> Beliefs | None:
        """What the measurements say of all candidates; None where they are too few.

        Raises:
            InputError: None of the rows has what the question is about.
        """
        rows, values = self.aims.observed(dataset)
        missing = self.aims.missing(dataset) if len(dataset) >= LEAST_ROWS else []
        if missing:
            raise InputError(
                f"{self.aims.question.name}: no run measured {', '.join(missing)}, which the "
                "question is about; add the sensor, or ask for another scope"
            )
        if len(rows) < LEAST_ROWS:
            return None
        found = Beliefs(self.aims, self._inputs, rows, values, self._start)
        self._start = found.hyperparameters
        return found

    def choose(self, dataset: Dataset) -> Choice | None:
        """The recommendation made from measurements; None where they are too few."""
        found = self.beliefs(dataset)
        return None if found is None else found.choice()

    def propose(self, dataset: Dataset, avoid: Collection[Candidate] = ()) -> Proposal | None:
        """What to measure next; None where too little was measured to say.

        Args:
            dataset: What was measured.
            avoid: Candidates whose runs fail.

        Raises:
            InputError: None of the rows has what the question is about.
        """
        found = self.beliefs(dataset)
        if found is None:
            return None
        source = np.random.default_rng([self._seed, len(dataset)])
        choice = found.choice()
        joint = found.joint()
        place = int(np.searchsorted(joint.rows, choice.row))
        expected = regrets(self.aims, joint, place, DRAWS, source)
        bound = expected.bound(REGRET_CONFIDENCE)
        usable = joint
        if avoid:
            keys = {one.key for one in avoid}
            kept = np.array([self.aims.candidates[row].key not in keys for row in joint.rows])
            usable, expected = joint.only(kept), expected.only(kept)
        rows = batch(self.aims, usable, found.noise, expected, self._batch_size, source)
        return Proposal(
            tuple(self.aims.candidates[row] for row in rows),
            choice,
            bound,
            self._why(found, choice, bound, rows),
        )

    def _why(self, found: Beliefs, choice: Choice, bound: float, rows: Sequence[int]) -> str:
        seen = set(found.measured.tolist())
        again = sum(row in seen for row in rows)
        best = told(self.aims.candidates[choice.row])
        kept = (
            f"keeps the SLA with a probability of {choice.probability:.0%}"
            if choice.feasible
            else f"most probably keeps the SLA, at {choice.probability:.0%}: none is sure enough"
        )
        return (
            f"after {len(found.measured)} runs the best is {best}, which {kept} and costs at most "
            f"{bound:.1%} more than the true best (90 %); next {len(rows)} runs, {again} of them "
            "repeats"
        )


def told(candidate: Candidate) -> str:
    """A candidate in a few words."""
    stated = candidate.configuration.model_dump(mode="json", exclude_none=True)
    return ", ".join(f"{name}={value}" for name, value in stated.items())
