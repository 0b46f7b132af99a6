"""What pairs of runs, before and after a change, prove about its saving at equal work.

Every pair is one run with either configuration, one right after the other, in an order drawn at
random but balanced: of two consecutive pairs one begins with the change and one without. What is
compared is the logarithm of joules per byte of useful work, so that a saving is a ratio.

Test: that of a two-period crossover (Hills and Armitage, British Journal of Clinical Pharmacology
8, 1979; Senn, Cross-over Trials in Clinical Research). The difference between first and second run
of a pair, such as a linear drift of temperature, is estimated from the two orders and taken out; of
n pairs n - 2 degrees of freedom are left for Student's t. Slow noise is common to both runs of a
pair, and whatever is left of it has, by the random order, no side.

Stopping: at fixed numbers of pairs. Each look has its own share of the allowed error, in proportion
to the pairs that came new; the shares add up to it, so that by Bonferroni's inequality all
intervals together hold with the stated confidence, wherever it is stopped (error spending in
proportion to information: Lan and DeMets, Biometrika 70, 1983; repeated confidence intervals:
Jennison and Turnbull, Journal of the Royal Statistical Society B 51, 1989).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from scipy.stats import t as student

FEWEST_PAIRS = 4
"""Two of each order: the least that leaves degrees of freedom after the effect of the order."""

PAIRS_MAX = 24

Verdict = Literal["proven", "likely", "not proven", "costs more"]


@dataclass(frozen=True)
class Pair:
    """Energy of the same work before and after the change, in joules per byte.

    Attributes:
        before: With today's configuration.
        after: With the recommended one.
        after_first: Whether the recommended one ran first.
    """

    before: float
    after: float
    after_first: bool

    @property
    def log_ratio(self) -> float:
        """ln(after / before); below zero where it saves."""
        return math.log(self.after / self.before)


@dataclass(frozen=True)
class Saving:
    """What is known of the saving after some pairs; shares of the energy before, 0.1 = 10 %.

    Attributes:
        value: Estimate.
        low: Lower end of its interval.
        high: Upper end.
        level: Confidence of this interval alone.
        pairs: How many pairs it rests on.
    """

    value: float
    low: float
    high: float
    level: float
    pairs: int

    @property
    def verdict(self) -> Verdict:
        """`proven`: the interval excludes zero and is at most half the saving to either side."""
        if self.low > 0:
            return "proven" if self._amount_known else "likely"
        return "costs more" if self.high < 0 else "not proven"

    @property
    def is_clear(self) -> bool:
        """Whether more pairs would only make it more exact."""
        return (self.low > 0 or self.high < 0) and self._amount_known

    @property
    def _amount_known(self) -> bool:
        return (self.high - self.low) / 2 <= abs(self.value) / 2


@dataclass(frozen=True)
class Trial:
    """How many pairs are made at the most, and with which confidence it is said what they prove.

    Attributes:
        pairs_max: Even, at least `FEWEST_PAIRS`.
        confidence: That all intervals of all looks hold together.
    """

    pairs_max: int = PAIRS_MAX
    confidence: float = 0.95

    @property
    def looks(self) -> tuple[int, ...]:
        """After so many pairs it is looked: a quarter, half and all of them, in even numbers."""
        parts = (2 * math.ceil(self.pairs_max / divisor / 2) for divisor in (4, 2, 1))
        return tuple(sorted({max(FEWEST_PAIRS, one) for one in parts}))

    def error_of(self, look: int) -> float:
        """The share of the error that a look may spend."""
        before = max((one for one in self.looks if one < look), default=0)
        return (1 - self.confidence) * (look - before) / self.looks[-1]

    def orders(self, seed: int) -> list[bool]:
        """Whether the change runs first, pair by pair."""
        source = random.Random(seed)
        found: list[bool] = []
        while len(found) < self.pairs_max:
            first = source.random() < 0.5
            found += [first, not first]
        return found[: self.pairs_max]

    def saving(self, pairs: Sequence[Pair]) -> Saving | None:
        """What the pairs say, with the error that the next look may spend.

        Returns:
            None where they are too few, or all of one order.
        """
        # between two looks, as when runs have failed, it is the next one that is spent early
        look = min((one for one in self.looks if one >= len(pairs)), default=self.looks[-1])
        groups = [[p.log_ratio for p in pairs if p.after_first is first] for first in (False, True)]
        if len(pairs) < FEWEST_PAIRS or not all(groups):
            return None
        middle = fmean(fmean(group) for group in groups)
        squares = sum((one - fmean(group)) ** 2 for group in groups for one in group)
        freedom = len(pairs) - 2
        spread = math.sqrt(squares / freedom * sum(1 / len(group) for group in groups)) / 2
        error = self.error_of(look)
        half = float(student.ppf(1 - error / 2, freedom)) * spread
        return Saving(
            value=-math.expm1(middle),
            low=-math.expm1(middle + half),
            high=-math.expm1(middle - half),
            level=1 - error,
            pairs=len(pairs),
        )
