"""Advises a campaign: what to recommend by now, how wrong that may be, and what to measure next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.store import Dataset
from iojoule.model.fit.gaussian_process import Hyperparameters, coordinates
from iojoule.recommender.adaptive.aims import Aims, Candidate
from iojoule.recommender.adaptive.beliefs import Beliefs, Choice
from iojoule.recommender.adaptive.value import batch, regrets
from iojoule.recommender.workload import WorkloadProfile

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
