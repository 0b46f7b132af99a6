"""What is picked for a question, and what was true of the pick.

Three pickers answer each: the recommender as it is; the same, told what latency today's
configuration has (mean and p99, with the error of a measurement, where it serves the demand); and
on point predictions, which takes every prediction for the truth (confidence 0.5: no margin to any
bound) and the least expected objective, however little and however surely it saves.

"No change" is a pick: today's configuration. A pick is judged beside the best candidate that truly
keeps demand and bounds, and whose CPU does not take more than its drive saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from iojoule.api.validating.questions import Asked
from iojoule.model.evaluate.observed_latency import MEASURED_SD
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Observed
from iojoule.recommender.response import Action, ReasonCode, Recommendation
from iojoule.recommender.rows import LIKELY

Picker = Literal["intervals", "measured", "points"]
PICKERS: tuple[Picker, ...] = get_args(Picker)
"""With the stated confidence, likewise beside today's latency, and on point predictions."""

MEAN, TAIL = "latency_mean_ns", "latency_p99_ns"


@dataclass(frozen=True)
class Outcome:
    """One picker's answer to one question.

    Attributes:
        question: Number of the question.
        drive: Whose.
        picker: Which of them.
        arrivals: How the demand arrives; "none" without one.
        objective: What is made small.
        action: As answered: "change", "no change" or "none".
        reason_code: Why nothing is recommended.
        picked: Whether a configuration was recommended, today's among them.
        today_keeps: Whether today's configuration truly keeps demand and bounds.
        possible: Whether any candidate truly keeps demand and bounds.
        headroom: How far the candidate that is farthest from its nearest bound is from it, as a
            share of the bound; 0 where nothing keeps all.
        stated: By bound, the share of cases in which it may be broken.
        broken: Bounds that the pick truly breaks.
        regret: True objective of the pick over that of the best candidate that keeps all, minus 1;
            below 0 where the pick is cheaper because it breaks a bound. None where there is no
            pick or no such candidate.
        today_regret: The same of today's configuration, where it truly keeps all.
        optional: Whether a change is recommended although today's was shown to keep all, so that
            only what it saves speaks for it.
        cheaper: Whether the pick's true objective is below today's; None where nothing changes.
        saving_covered: Whether the true saving, percent of today's energy, lies in its interval;
            None where nothing changes or nothing is said.
        saving_proven: Whether a saving was called proven or expected.
        saving_percent: The true saving.
        saving_width: Width of its interval, percentage points.
    """

    question: int
    drive: str
    picker: Picker
    arrivals: str
    objective: str
    action: Action
    reason_code: ReasonCode | None
    picked: bool
    today_keeps: bool
    possible: bool
    headroom: float
    stated: dict[str, float]
    broken: tuple[str, ...]
    regret: float | None
    today_regret: float | None = None
    optional: bool = False
    cheaper: bool | None = None
    saving_covered: bool | None = None
    saving_proven: bool | None = None
    saving_percent: float | None = None
    saving_width: float | None = None


def judge(recommender: Recommender, asked: Asked, picker: Picker) -> Outcome:
    """Ask, and compare the answer with the truth."""
    workload, least = asked.workload, LIKELY
    if picker == "points":
        sla = workload.sla.model_copy(update={"confidence": 0.5, "confidences": {}})
        workload = workload.model_copy(update={"sla": sla, "least_saving_percent": 0.0})
        least = 0.0
    elif picker == "measured":
        workload = workload.model_copy(update={"observed": _measured(asked)})
    answer = recommender.recommend(workload, rows=1, least_probability=least)
    breaks, costs = asked.broken(), asked.costs()
    keeps = ~np.any(list(breaks.values()), axis=0)
    able = asked.candidates[keeps[asked.candidates]]
    fair = able[asked.fair()[able]]
    if len(fair):
        able = fair
    known: dict[str, Any] = {
        "question": asked.number,
        "drive": asked.table.drive.name,
        "picker": picker,
        "arrivals": asked.arrivals,
        "objective": workload.effective_objective.value,
        "action": answer.action,
        "reason_code": answer.reason_code,
        "today_keeps": bool(keeps[asked.today]),
        "possible": bool(len(able)),
        "headroom": asked.headroom(able),
        "stated": {name: 1.0 - sure for name, sure in asked.confidences().items()},
    }
    if answer.recommended is None:
        return Outcome(**known, picked=False, broken=(), regret=None)
    row = asked.table.grid.place(answer.recommended.configuration)
    beyond = costs / costs[able].min() - 1.0 if len(able) else None
    changes = answer.action == "change"
    return Outcome(
        **known,
        picked=True,
        broken=tuple(name for name, rows in breaks.items() if rows[row]),
        regret=None if beyond is None else float(beyond[row]),
        today_regret=float(beyond[asked.today])
        if beyond is not None and keeps[asked.today]
        else None,
        optional=changes and answer.current is not None and answer.current.meets_sla,
        cheaper=bool(costs[row] < costs[asked.today]) if changes else None,
        **_saving(asked, answer, row),
    )


def _measured(asked: Asked) -> Observed:
    """Latency of today's configuration; nothing where it does not serve the demand."""
    capacity = float(asked.truth["capacity_bytes_per_second"][asked.today])
    if asked.demand is None or capacity < asked.demand:
        return Observed()
    source = np.random.default_rng([5, asked.number])
    errors = np.exp(source.normal(0.0, MEASURED_SD, 2))
    values = [float(asked.truth[name][asked.today]) for name in (MEAN, TAIL)]
    known = dict(zip((MEAN, TAIL), np.sort(values * errors), strict=True))
    return Observed(**known) if np.isfinite(values).all() else Observed()


def _saving(asked: Asked, answer: Recommendation, row: int) -> dict[str, Any]:
    said = answer.saving
    if said is None or said.verdict == "no change":
        return {}
    true = asked.saving_percent(row)
    return {
        "saving_covered": bool(said.percent.low <= true <= said.percent.high),
        "saving_proven": said.verdict in ("proven", "expected"),
        "saving_percent": true,
        "saving_width": said.percent.high - said.percent.low,
    }
