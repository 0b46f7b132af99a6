"""Choosing: the configuration to use, or that nothing changes, or that nothing can be recommended.

Where today's configuration is stated and keeps every bound, a change is recommended only if it
saves with a probability of at least 0.9; of those that do, the one of the least expected objective.
Where today's breaks a bound, the least objective among those that are shown to keep all of them.
Where nothing was said about today, there is nothing to save against: the least expected objective.

With the drive's energy alone in scope, a watt of the drive is not bought with more than a watt of
the CPU, and where CPU power is unknown nothing starts to poll.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.quantities import NORMAL_90, share_below
from iojoule.model.evaluate.uncertainty import (
    Contrast,
    all_gradients,
    contrast,
    energies,
    idle_gradients,
    with_shared_surface,
)
from iojoule.recommender.answer import Action, ReasonCode
from iojoule.recommender.factors import JOULES_A_KWH
from iojoule.recommender.objective import Objective
from iojoule.recommender.pareto import TIE, simplest_first_of
from iojoule.recommender.rows import LIKELY
from iojoule.recommender.screen import DEMAND, Judge, Judged
from iojoule.recommender.search import Found
from iojoule.recommender.selection import WIDENING
from iojoule.recommender.sla import LATENCY_MAXIMA
from iojoule.recommender.space import join, knobs
from iojoule.recommender.steps import AS_GOOD
from iojoule.recommender.workload import Scope

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

WORTH_TELLING = 1e-3
"""Share of today's objective that a configuration must save in expectation to be named at all."""


@dataclass(frozen=True)
class Choice:
    """What to do.

    Attributes:
        action: As in the answer.
        reason_code: Why nothing is recommended; None where something is.
        frame: The configuration to use, as a frame of one; None where there is none.
        passed: The best in expectation, where today's configuration stays though something may
            save; None otherwise.
    """

    action: Action
    reason_code: ReasonCode | None
    frame: Frame | None
    passed: Frame | None = None


def choose(
    judge: Judge,
    found: Found,
    reference: Judged,
    least_saving: float,
    *,
    stated: bool,
    least_probability: float = LIKELY,
    beside: Callable[[int], Judge] | None = None,
) -> Choice:
    """Choose among what a search found.

    Args:
        judge: What judged it.
        found: The feasible candidates of the least objectives, or the nearest misses.
        reference: Today's configuration, or the profile's default one where nothing was said.
        least_saving: Share of today's objective that a change must save.
        stated: Whether `reference` is what runs today.
        least_probability: With which a change must save where the reference keeps the bounds.
        beside: Gives a judge of so many rows of which the first is today's with today's flushes,
            where the candidates flush otherwise; None: they flush alike.
    """
    here = bool(reference.feasible[0])
    keeps = stated and here and bool(reference.preferred_missed[0] <= found.missed + AS_GOOD)
    if not len(found.pool):
        if stated and here:
            return Choice("no change", None, reference.frame)
        return Choice("none", _reason(judge, found), None)
    compared = _Compared(judge, reference, found, beside)
    usable = compared.fair
    if keeps:
        today = float(reference.costs[0, 0])
        worth = compared.objective <= (1.0 - least_saving) * today
        usable = usable & worth & (compared.probability >= least_probability)
        if not usable.any():
            best = int(compared.objective.argmin())
            better = compared.objective[best] < (1.0 - WORTH_TELLING) * today
            passed = compared.frame(best) if better else None
            return Choice("no change", None, reference.frame, passed)
    elif not usable.any():
        usable = np.ones_like(usable)
    row = _least(compared, np.flatnonzero(usable), reference.frame if stated else None)
    return Choice("change" if stated else "ranking", None, compared.frame(row))


class _Compared:
    """The pool beside the reference.

    Attributes:
        objective: Of each row of the pool.
        evidence: Codes of the evidence of its performance.
        probability: That it saves against the reference; 0 where power is unknown.
        fair: Whether its drive's saving is not bought with more of the CPU.
    """

    def __init__(
        self,
        judge: Judge,
        reference: Judged,
        found: Found,
        beside: Callable[[int], Judge] | None,
    ) -> None:
        self._pool = found.pool
        frame = join([reference.frame, found.pool])
        judged = (judge if beside is None else beside(len(frame))).judge_lightly(frame)
        self.objective: Floats = judged.costs[1:, 0]
        self.evidence = judged.prediction.evidence[1:]
        question, layout = judge.question, judge.layout
        prediction = judged.prediction
        # what a whole surface errs moves all of them alike
        work = with_shared_surface(judge.predictor, frame, prediction, judged.work)
        rest = question.demand.rest
        power = all_gradients(layout, frame, prediction, work, judged.watts, rest)
        idle = idle_gradients(layout, frame, prediction, work, rest)
        others = np.arange(1, len(frame))
        self.probability = np.zeros(len(others))
        scope = question.scope.value
        if scope in power and question.objective is not None:
            every = energies(layout, power[scope], idle[scope], work, 0)
            saved = contrast(layout, every, 0, others.tolist(), WIDENING)
            self.probability = _probability(judge, judged, saved)
        self.fair = np.ones(len(others), dtype=bool)
        if question.scope is Scope.DEVICE:
            self.fair = ~frame.polls[1:] | frame.polls[0]
            if "cpu" in power and "device" in power:
                drive, cpu = (
                    energies(layout, power[name], idle[name], work, 0).joules_per_byte
                    for name in ("device", "cpu")
                )
                self.fair = cpu[1:] - cpu[0] <= np.maximum(drive[0] - drive[1:], 0.0)
        same = (knobs(found.pool) == knobs(reference.frame)[0]).all(axis=1)
        self.fair |= same
        if beside is None:
            self.probability[same] = 0.0

    def frame(self, row: int) -> Frame:
        """One row of the pool."""
        return self._pool.take(slice(row, row + 1))

    def frames(self, rows: Rows) -> Frame:
        """Some rows of the pool."""
        return self._pool.take(rows)


def _probability(judge: Judge, judged: Judged, saved: Contrast) -> Floats:
    """Probability that each row takes less of the objective than the first one.

    0.5 where the objective counts latency and that of one of both may be without bound.
    """
    question = judge.question
    # an error of the scale that both share does not change which one takes less
    value, sd = saved.percent
    if question.objective in (Objective.COST, Objective.CO2):
        assert question.year is not None
        value, sd = saved.joules_per_byte
        rate = question.year.rates[question.objective]
        written = judged.work.host_writes / judged.work.served_bytes
        value = value * rate.per_kwh / JOULES_A_KWH
        value = value + rate.per_written_byte * (written[0] - written[1:])
        sd = sd * rate.per_kwh / JOULES_A_KWH
    elif question.objective is Objective.EDP:
        share, share_sd = (part / 100.0 for part in saved.percent)
        late = judged.work.latencies.band("latency_mean_ns")
        with np.errstate(invalid="ignore"):  # what cannot serve the demand is late for ever
            later = np.log(late.value[0] / late.value[1:])
            unsure = np.log(late.high / late.value) / NORMAL_90
        value = -np.log1p(-np.minimum(share, 1.0 - 1e-9)) + later
        sd = np.sqrt((share_sd / (1.0 - share)) ** 2 + unsure[0] ** 2 + unsure[1:] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(sd > 0.0, np.nan_to_num(value / sd), np.sign(value) * np.inf)
    return np.array([share_below(one) for one in z.tolist()])


def _least(compared: _Compared, rows: Rows, today: Frame | None) -> int:
    """The least objective.

    Within `TIE` of it the strongest evidence, then the fewest changes of today's configuration,
    then the simplest.
    """
    objective = compared.objective[rows]
    best = objective.min()
    near = rows[objective <= best + TIE * abs(best)]
    if len(near) > 1:
        codes = compared.evidence[near]
        near = near[codes == codes.min()]
        if today is not None:
            changed = (knobs(compared.frames(near)) != knobs(today)[0]).sum(axis=1)
            near = near[changed == changed.min()]
        near = near[simplest_first_of(compared.frames(near), np.arange(len(near)))]
    return int(near[0])


def _reason(judge: Judge, found: Found) -> ReasonCode:
    """Why nothing is recommended, from the nearest misses."""
    assert found.misses is not None
    judged = judge.judge_lightly(found.misses)
    if judge.unknown.any():
        return "not_shown_to_hold"
    rate = judge.question.demand.bytes_per_second
    serves = np.ones(len(found.misses), dtype=bool)
    if rate is not None:
        serves = judged.work.capacity_bytes >= rate
        if not serves.any():
            return "demand_exceeds_capacity"
    holds = serves.copy()
    for column, name in enumerate(judge.limits):
        if name == DEMAND or judge.soft[column]:
            continue
        missed = judged.violations[:, column] > 0
        if name in LATENCY_MAXIMA:
            missed = judged.work.latencies.at(LATENCY_MAXIMA[name]) > judge.limits[name]
        holds &= ~missed
    return "not_shown_to_hold" if holds.any() else "infeasible"
