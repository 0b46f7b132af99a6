"""What one step of a bound costs or brings, found among candidates that are judged anyway.

A step is a factor of `STEP` on the limit. Looser, tighter and without the bound, the least
objective is looked for among the same candidates; what they reach does not depend on the limit.
Preferred bounds come first, as in the search: of what misses them by as little as can be, the least
objective.

The demand is no such bound: another demand is other work. It is only asked how much of it could be
carried where nothing carries it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.frame import Frame
from iojoule.recommender.pareto import simplest_first_of
from iojoule.recommender.screen import DEMAND, Judge, Judged

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

STEP = 1.1
"""Factor on a limit: 10 % more, or as much less."""

AS_GOOD = 1e-3
"""Relative amount in all by which preferred bounds may be missed beyond the least that can be."""

Way = Literal["now", "looser", "tighter", "without"]

WAYS: dict[Way, float] = {"looser": STEP, "tighter": 1.0 / STEP, "without": np.inf}
"""The most that reached over limit (limit over reached for a minimum) may be."""


@dataclass(frozen=True)
class Least:
    """The best row found so far under some bounds.

    Attributes:
        missed: By how much it misses preferred bounds, in units of `AS_GOOD`.
        objective: Its objective.
        frame: The row.
    """

    missed: float
    objective: float
    frame: Frame


@dataclass(frozen=True)
class Nearest:
    """The row that misses one bound by the least and keeps all others.

    Attributes:
        ratio: Reached over limit, or limit over reached for a minimum.
        reached: The interval bound held against the limit.
        frame: The row.
    """

    ratio: float
    reached: float
    frame: Frame


class Steps:
    """Gathers, block by block, the best candidates under every changed bound."""

    def __init__(self, judge: Judge) -> None:
        self.limits = judge.limits
        self.soft, self.unknown = judge.soft, judge.unknown
        self.least: dict[tuple[str, Way], Least] = {}
        self.nearest: dict[str, Nearest] = {}

    @property
    def now(self) -> Least | None:
        """The least objective under the bounds as they are; None where nothing keeps them."""
        return self.least.get(("", "now"))

    def see(self, judged: Judged) -> None:
        """Take a block of judged candidates into account."""
        # one bound after the other, as they lie in memory
        missed = [judged.violations[:, column] > 0 for column in range(len(self.limits))]
        wrong = np.zeros(len(judged.costs), dtype=np.int8)
        for hard in np.flatnonzero(~self.soft):
            wrong += missed[hard]
        preferred = judged.preferred_missed if self.soft.any() else None
        objective = np.ascontiguousarray(judged.costs[:, 0])
        whole = np.flatnonzero(wrong == 0)
        now = None if preferred is None else preferred[whole]
        self._offer(("", "now"), judged.frame, whole, now, objective[whole])
        for column, name in enumerate(self.limits):
            soft = bool(self.soft[column])
            rows = whole if soft else np.flatnonzero(wrong == missed[column])
            if not len(rows):
                continue
            ratio = self._ratio(column, judged.reached[:, column][rows])
            if not soft:
                self._come_close(name, judged, rows, ratio, column)
            if name == DEMAND:
                continue
            others = None if preferred is None else preferred[rows]
            if others is not None and soft:
                others = others - judged.violations[:, column][rows]
            values = objective[rows]
            for way, most in WAYS.items():
                if others is not None and soft:
                    total = others + np.maximum(ratio / most - 1.0, 0.0)
                    self._offer((name, way), judged.frame, rows, total, values)
                    continue
                kept = np.flatnonzero(ratio <= most)
                now = None if others is None else others[kept]
                self._offer((name, way), judged.frame, rows[kept], now, values[kept])

    def _ratio(self, column: int, reached: Floats) -> Floats:
        """Reached over limit; infinite, however loose the bound, where nobody knows if it holds."""
        name, limit = list(self.limits.items())[column]
        if self.unknown[column]:
            return np.full(len(reached), np.inf)
        return reached / limit if name.endswith("_max") else limit / reached

    def _offer(
        self,
        key: tuple[str, Way],
        frame: Frame,
        rows: Rows,
        preferred: Floats | None,
        objective: Floats,
    ) -> None:
        if not len(rows):
            return
        known = self.least.get(key)
        missed = 0.0
        if preferred is not None:
            level = np.round(preferred / AS_GOOD)
            missed = float(level.min())
            objective = np.where(level == missed, objective, np.inf)
        value = float(objective.min())
        if known is not None and (known.missed, known.objective) <= (missed, value):
            return
        equal = rows[objective == value]
        row = int(equal[simplest_first_of(frame, equal)[0]] if len(equal) > 1 else equal[0])
        self.least[key] = Least(missed, value, frame.take(slice(row, row + 1)))

    def _come_close(
        self, name: str, judged: Judged, rows: Rows, ratio: Floats, column: int
    ) -> None:
        known = self.nearest.get(name)
        least = ratio.min()
        if known is not None and known.ratio <= least:
            return
        near = np.flatnonzero(ratio == least)
        place = int(near[judged.costs[rows[near], 0].argmin()])
        row = int(rows[place])
        self.nearest[name] = Nearest(
            float(ratio[place]),
            float(judged.reached[row, column]),
            judged.frame.take(slice(row, row + 1)),
        )
