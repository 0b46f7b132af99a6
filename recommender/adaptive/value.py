"""What a further measurement is worth: the regret that it is expected to take away, by the hour.

The knowledge gradient over a finite set (Frazier, Powell, Dayanik, INFORMS Journal on Computing
21(4), 2009), with constraints: a measurement of candidate i would move the joint posterior along
one known direction per output, so what would be recommended after it is computed for a number of
outcomes, and compared with what is recommended now. A configuration that breaks the SLA counts
as costing e (2.7) times as much as it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, qmc

from iojoule.recommender.adaptive.aims import Aims
from iojoule.recommender.adaptive.normal import Normal

Floats = NDArray[np.float64]

INFEASIBLE = 1.0
"""Log of the factor by which an infeasible configuration counts as dearer."""
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
    """Log cost, dearer by the chance to break the SLA, shape (k,)."""
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
