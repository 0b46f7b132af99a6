"""Selects the recommended configuration, or no change, or none because no candidate is feasible.

Where today's configuration is stated and keeps every bound, a change is recommended only if it
saves with a probability of at least 0.9; of those that do, the one of the least expected objective.
Where today's breaks a bound, the least objective among those that are shown to keep all of them.
Where nothing was said about today, there is nothing to save against: the least expected objective.

With the drive's energy alone in scope, a watt of the drive is not bought with more than a watt of
the CPU, and where CPU power is unknown nothing starts to poll.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.model.evaluate.equal_work import race_or_pace
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.quantities import NORMAL_90, share_below
from iojoule.model.evaluate.uncertainty import (
    Saved,
    all_gradients,
    contrast,
    energies,
    idle_gradients,
    with_shared_surface,
)
from iojoule.recommender import pareto
from iojoule.recommender.evaluate import DEMAND, Evaluated, Judge, Judged, Predicted, together
from iojoule.recommender.factors import Objective
from iojoule.recommender.pareto import simplest_first_of
from iojoule.recommender.request import Scope
from iojoule.recommender.response import (
    TIE,
    Action,
    BoundSlack,
    BoundStep,
    Estimate,
    ReasonCode,
    Relaxation,
)
from iojoule.recommender.rows import LIKELY, WIDENING, Details, over, priced
from iojoule.recommender.sla import LATENCY_MAXIMA, Sla
from iojoule.recommender.space import configuration_of, join, knobs

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
        reached: The interval bound compared with the limit.
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
            values = objective[rows]
            if soft:
                # summed and not subtracted: what nobody knows is missed without bound
                beside = self.soft & (np.arange(len(self.soft)) != column)
                others = judged.violations[:, beside].sum(axis=1)[rows]
                for way, most in WAYS.items():
                    missed_by = np.maximum(ratio / most - 1.0, 0.0) if way != "without" else 0.0
                    self._offer((name, way), judged.frame, rows, others + missed_by, values)
                continue
            for way, most in WAYS.items():
                kept = np.flatnonzero(ratio <= most)
                now = None if preferred is None else preferred[rows[kept]]
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


MISSES_SHOWN = 5

POOL = 192
"""Candidates of the least objectives that are compared with today's one by one."""


@dataclass(frozen=True)
class SearchResult:
    """What is left of the candidates: the front, or the nearest misses.

    Attributes:
        feasible: How many candidates keep every bound.
        front: The Pareto set.
        costs: Its costs.
        pool: Candidates of the least objectives, the front among them; None without any.
        misses: The nearest misses where nothing is feasible.
        missed: By how much the front misses preferred bounds, relative and in all.
    """

    feasible: int
    front: Frame
    costs: Floats
    pool: Predicted | None
    misses: Frame | None
    missed: float


def search(judge: Judge, blocks: Iterable[Evaluated], steps: Steps, today: Frame) -> SearchResult:
    """Judge every candidate, block by block.

    The front of the blocks' fronts is the front of all, so that only few rows are kept.

    Args:
        judge: What holds them against the bounds.
        blocks: All candidates, evaluated.
        steps: Gathers what steps of the bounds would bring.
        today: Today's configuration: of equal ones those count that change least of it.
    """
    feasible = 0
    fronts: list[tuple[Predicted, Floats]] = []
    pools: list[tuple[Predicted, Floats]] = []
    misses: list[tuple[Frame, Floats]] = []
    known = ~judge.soft & ~judge.unknown
    for judged in map(judge.judge_evaluated, blocks):
        steps.see(judged)
        good = np.flatnonzero(judged.feasible)
        feasible += len(good)
        if len(good):
            costs = _costs(judged, good)
            kept = pareto.front(costs, judged.frame.take(good))
            fronts.append((judged.predicted.take(good[kept]), costs[kept]))
            order = _order(judged, good)
            least = _least_of(order, judged.frame.take(good), today)
            pools.append((judged.predicted.take(good[least]), order[least]))
        elif not fronts:
            close = _nearest(judged.violations[:, known], judged.costs[:, 0])
            amounts = np.column_stack([judged.violations[close][:, known], judged.costs[close, 0]])
            misses.append((judged.frame.take(close), amounts))
    if not fronts:
        frame, amounts = join([m[0] for m in misses]), np.concatenate([m[1] for m in misses])
        close = _nearest(amounts[:, :-1], amounts[:, -1])
        nothing = frame.take(np.zeros(0, dtype=np.intp))
        return SearchResult(0, nothing, np.zeros((0, 3)), None, frame.take(close), 0.0)
    front, costs = fronts[0]
    if len(fronts) > 1:
        front = together([part[0] for part in fronts])
        costs = np.concatenate([part[1] for part in fronts])
        kept = pareto.front(costs, front.frame)
        front, costs = front.take(kept), costs[kept]
    missed = 0.0
    if judged.soft.any():
        missed = float(costs[:, -1].min())
        kept = np.flatnonzero(costs[:, -1] <= missed + AS_GOOD)
        kept = kept[pareto.front(costs[kept, :-1], front.frame.take(kept))]
        front, costs = front.take(kept), costs[kept, :-1]
    pool = together([part[0] for part in pools])
    order = np.concatenate([part[1] for part in pools])
    near = np.flatnonzero(order[:, 0] <= missed + AS_GOOD)
    order = order[near]
    order[:, 0] = 0.0  # they all count as good
    near = near[_least_of(order, pool.frame.take(near), today)]
    pool = together([pool.take(near), front])
    return SearchResult(feasible, front.frame, costs, pool, None, missed)


def _costs(judged: Judged, good: Rows) -> Floats:
    costs = judged.costs[good]
    if judged.soft.any():  # what comes closest to the preferred bounds stays too
        costs = np.column_stack([costs, judged.preferred_missed[good]])
    return costs


def _least_of(order: Floats, frame: Frame, today: Frame) -> Rows:
    """The first `POOL` rows, sorted: least missed preferred bounds, then objectives.

    Of equal ones those that change least of today's configuration, then the simplest.
    """
    level = np.round(order[:, 0] / AS_GOOD)
    if level.any():
        by_order = np.lexsort((order[:, 1], level))
    else:  # the usual case, and quick
        by_order = np.argpartition(order[:, 1], min(POOL, len(order)) - 1)
    edge = by_order[min(POOL, len(order)) - 1]
    least = np.flatnonzero(
        (level < level[edge]) | ((level == level[edge]) & (order[:, 1] <= order[edge, 1]))
    )
    near = frame.take(least)
    simplest = np.empty(len(least), dtype=np.intp)
    simplest[pareto.simplest_first(near)] = np.arange(len(least))
    changed = (knobs(near) != knobs(today)[0]).sum(axis=1)
    return least[np.lexsort((simplest, changed, order[least, 1], level[least]))[:POOL]]


def _order(judged: Judged, rows: Rows) -> Floats:
    """Missed preferred bounds and objective of some rows, shape (n, 2)."""
    return np.column_stack([judged.preferred_missed[rows], judged.costs[rows, 0]])


def _nearest(violations: Floats, objective: Floats) -> Rows:
    """Rows that miss the bounds by the least; of those that miss nothing the least objective."""
    whole = np.flatnonzero(~violations.any(axis=1))
    if len(whole):  # only what nobody knows stands in the way
        return whole[np.argsort(objective[whole], kind="stable")[:MISSES_SHOWN]]
    return pareto.nearest(violations, MISSES_SHOWN)


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
    found: SearchResult,
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
    if found.pool is None:
        if stated and here:
            return Choice("no change", None, reference.frame)
        return Choice("none", _reason(judge, found), None)
    compared = _Compared(judge, reference, found.pool, beside)
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
        pool: Predicted,
        beside: Callable[[int], Judge] | None,
    ) -> None:
        self._pool = pool.frame
        both = together([reference.predicted, pool])
        frame = both.frame
        judged = (judge if beside is None else beside(len(frame))).judge(both)
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
        same = (knobs(pool.frame) == knobs(reference.frame)[0]).all(axis=1)
        self.fair |= same
        if beside is None:
            self.probability[same] = 0.0

    def frame(self, row: int) -> Frame:
        """One row of the pool."""
        return self._pool.take(slice(row, row + 1))

    def frames(self, rows: Rows) -> Frame:
        """Some rows of the pool."""
        return self._pool.take(rows)


def _probability(judge: Judge, judged: Judged, saved: Saved) -> Floats:
    """Probability that each row takes less of the objective than the first one.

    0.5 where the objective counts latency and that of one of both may be without bound.
    """
    question = judge.question
    value, sd = saved.percent
    if question.objective in (Objective.COST, Objective.CO2):
        assert question.year is not None
        written = judged.work.host_writes / judged.work.served_bytes
        costs = question.year.rates[question.objective]
        value, sd = priced(saved, costs, written[0] - written[1:])
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


def _reason(judge: Judge, found: SearchResult) -> ReasonCode:
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


NOTICEABLE_PERCENT = 0.1
"""A bound whose absence would bring less has no price: no profile tells so little apart."""


def step_rows(steps: Steps) -> list[Least]:
    """What an answer judges for the steps: the least as it is, then that by bound and way."""
    if steps.now is None:
        return []
    return [steps.now, *(one for key, one in steps.least.items() if key[1] != "now")]


def slacks(
    details: Details, steps: Steps, sla: Sla, best: int, rows: Sequence[int]
) -> list[BoundSlack]:
    """How the recommended row stands to every bound.

    Args:
        details: The judged rows.
        steps: What was found under other bounds.
        sla: The bounds.
        best: Row of the recommended configuration.
        rows: Rows of `step_rows(steps)`.
    """
    keys = [key for key in steps.least if key[1] != "now"]
    settings = knobs(details.judged.frame)
    now = best if (settings[rows[0]] == settings[best]).all() else rows[0]
    saved = dict(zip(keys, _saved(details, settings, now, rows[1:]), strict=True))
    found = []
    for column, (name, limit) in enumerate(steps.limits.items()):
        reached = float(details.judged.reached[best, column])
        spare = 1.0 - reached / limit if name.endswith("_max") else reached / limit - 1.0
        ways: dict[Way, BoundStep] = {}
        if name != DEMAND:
            ways = {way: _step(steps, name, way, saved.get((name, way))) for way in WAYS}
        change = ways["without"].objective_change_percent if ways else None
        found.append(
            BoundSlack(
                bound=name,
                limit=limit,
                confidence=sla.confidence_of(name),
                preferred=bool(steps.soft[column]),
                reached=reached if np.isfinite(reached) else None,
                slack_percent=100.0 * spare if np.isfinite(spare) else None,
                binds=None if change is None else change < -NOTICEABLE_PERCENT,
                looser=ways.get("looser"),
                tighter=ways.get("tighter"),
                without=ways.get("without"),
            )
        )
    return found


def _step(steps: Steps, name: str, way: Way, saved: Estimate | None) -> BoundStep:
    looser = STEP if name.endswith("_max") else 1.0 / STEP
    factor = looser if way == "looser" else 1.0 / looser
    limit = None if way == "without" else steps.limits[name] * factor
    least, before = steps.least.get((name, way)), steps.now
    if least is None or before is None:
        return BoundStep(
            limit=limit, configuration=None, objective_change_percent=None, saves_percent=None
        )
    return BoundStep(
        limit=limit,
        configuration=configuration_of(least.frame, 0),
        objective_change_percent=100.0 * (least.objective / before.objective - 1.0),
        saves_percent=saved,
    )


def _saved(
    details: Details, settings: Floats, now: int, others: Sequence[int]
) -> list[Estimate] | list[None]:
    """Energy that each row saves against another, percent."""
    places = np.array(others, dtype=np.intp)
    weights = np.zeros((len(places), len(settings)))
    differ = np.flatnonzero((settings[places] != settings[now]).any(axis=1))
    weights[differ, now] = 1.0  # one configuration errs as itself
    weights[differ, places[differ]] = -1.0
    found = details.sums(weights, now, others)
    if found is None:
        return [None] * len(places)
    codes = details.evidence_codes(details.question.scope.value)
    words = [Evidence(EVIDENCE[int(code)]) for code in np.maximum(codes[places], codes[now])]
    return over(found.percent, 1.0, words, 100.0)


def relaxations(steps: Steps) -> list[Relaxation]:
    """Bounds of which one alone, relaxed, lets something keep all the others."""
    found = []
    for name, near in steps.nearest.items():
        if near.ratio <= 1.0 or not np.isfinite(near.ratio):
            continue
        limit = steps.limits[name]
        found.append(
            Relaxation(
                bound=name,
                limit=limit,
                needed=near.reached,
                by_percent=100.0 * abs(near.reached / limit - 1.0),
                configuration=configuration_of(near.frame, 0),
            )
        )
    return found


def race_or_pace_notes(profile: DeviceProfile, judged: Judged, row: int) -> list[str]:
    """One note where the work comes in stated bursts and the drive's power is known, else none."""
    gap = float(judged.work.gap_seconds[row])
    if profile.device_power is None or not gap > 0:
        return []
    choice = race_or_pace(profile, judged.frame, judged.prediction, judged.work)
    saved, from_gap = float(choice.saved_joules[row]), float(choice.break_even_seconds[row])
    known = profile.idle.settle_seconds.evidence if profile.idle is not None else Evidence.DATASHEET
    pays = f"racing pays from {from_gap:.3g} s on" if np.isfinite(from_gap) else "racing never pays"
    if choice.races[row]:
        word = "race to idle: finish each burst at full speed and let the drive rest"
        more = f"saves {saved:.3g} J a gap over pacing" if saved > 0 else "as good as pacing"
    else:
        word = "pace the requests over the gap: it is shorter than settling and background work"
        more = f"saves {-saved:.3g} J a gap over racing"
    return [f"gaps of {gap:.3g} s: {word}; {more}; {pays} (evidence: {known.value})"]
