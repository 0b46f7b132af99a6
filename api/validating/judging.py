"""What is picked for a question, and what was true of the pick.

Two pickers answer each: the recommender as it is, and the same on point predictions, which takes
every prediction for the truth (confidence 0.5: no margin to any bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from iojoule.api.validating.questions import Asked
from iojoule.recommender.answer import Recommendation
from iojoule.recommender.recommend import Recommender

Picker = Literal["intervals", "points"]
PICKERS: tuple[Picker, ...] = get_args(Picker)
"""With the stated confidence, and on point predictions."""


@dataclass(frozen=True)
class Outcome:
    """One picker's answer to one question.

    Attributes:
        question: Number of the question.
        drive: Whose.
        picker: Which of the two.
        picked: Whether a configuration was recommended.
        possible: Whether any candidate truly keeps demand and bounds.
        stated: By bound, the share of cases in which it may be broken.
        broken: Bounds that the pick truly breaks.
        regret: True objective of the pick over that of the best candidate that keeps all, minus 1;
            below 0 where the pick is cheaper because it breaks a bound. None where there is no
            pick or no such candidate.
        saving_covered: Whether the true saving, percent of today's energy, lies in its interval;
            None where nothing changes or nothing is said.
        saving_proven: Whether a saving was called proven or likely.
        saving_percent: The true saving.
        saving_width: Width of its interval, percentage points.
    """

    question: int
    drive: str
    picker: Picker
    picked: bool
    possible: bool
    stated: dict[str, float]
    broken: tuple[str, ...]
    regret: float | None
    saving_covered: bool | None = None
    saving_proven: bool | None = None
    saving_percent: float | None = None
    saving_width: float | None = None


def judge(recommender: Recommender, asked: Asked, picker: Picker) -> Outcome:
    """Ask, and compare the answer with the truth."""
    workload = asked.workload
    if picker == "points":
        sla = workload.sla.model_copy(update={"confidence": 0.5, "confidences": {}})
        workload = workload.model_copy(update={"sla": sla})
    answer = recommender.recommend(workload, rows=1)
    breaks, costs = asked.broken(), asked.costs()
    keeps = ~np.any(list(breaks.values()), axis=0)
    able = asked.candidates[keeps[asked.candidates]]
    stated = {name: 1.0 - confidence for name, confidence in asked.confidences().items()}
    drive = asked.table.drive.name
    if answer.recommended is None:
        return Outcome(asked.number, drive, picker, False, bool(len(able)), stated, (), None)
    row = asked.table.grid.place(answer.recommended.configuration)
    regret = float(costs[row] / costs[able].min() - 1.0) if len(able) else None
    return Outcome(
        asked.number, drive, picker, True, bool(len(able)), stated,
        tuple(name for name, rows in breaks.items() if rows[row]),
        regret, **_saving(asked, answer, row),
    )  # fmt: skip


def _saving(asked: Asked, answer: Recommendation, row: int) -> dict[str, Any]:
    said = answer.saving
    if said is None or answer.current is None or said.verdict == "no change":
        return {}
    energy = asked.energy()
    true = float(
        100.0 * (1.0 - energy[row] / energy[asked.table.grid.place(answer.current.configuration)])
    )
    return {
        "saving_covered": bool(said.percent.low <= true <= said.percent.high),
        "saving_proven": said.verdict == "proven",
        "saving_percent": true,
        "saving_width": said.percent.high - said.percent.low,
    }
