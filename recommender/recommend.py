"""Which configurations should this workload use?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import YEAR_SECONDS, Conditions
from iojoule.model.evaluate.equal_work import Demand, work_of
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.latency import Arrivals
from iojoule.model.evaluate.observed_latency import ObservedLatency
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.uncertainty import Layout, with_shared_surface
from iojoule.model.evaluate.validity import under
from iojoule.recommender import durability, explain, pareto
from iojoule.recommender.candidates import build_candidates, with_limits_of
from iojoule.recommender.evaluate import (
    DEMAND,
    OF_LATENCY,
    Evaluated,
    Judge,
    Judged,
    Predicted,
    Question,
    check_answerable,
    endurance_of,
    is_powered,
    predicted,
)
from iojoule.recommender.explain import Between, attribution, between
from iojoule.recommender.factors import Year, rates_of
from iojoule.recommender.measure_next import measure_next
from iojoule.recommender.mixed_sizes import predictor_for
from iojoule.recommender.request import DEMANDS, WorkloadProfile
from iojoule.recommender.response import (
    TIE,
    Attribution,
    Counts,
    DurabilityAnswer,
    Endurance,
    Estimate,
    MeasureNext,
    NotTaken,
    Place,
    Recommendation,
    Relaxation,
    Row,
    Saving,
)
from iojoule.recommender.rows import LIKELY, Details
from iojoule.recommender.select import (
    AS_GOOD,
    Choice,
    Least,
    SearchResult,
    Steps,
    choose,
    race_or_pace_notes,
    relaxations,
    search,
    slacks,
    step_rows,
)
from iojoule.recommender.sla import Sla
from iojoule.recommender.space import Candidates, configuration_of, join, knobs

ROWS_SHOWN = 50
"""Rows of the front in an answer; a longer front is thinned evenly."""


KEPT_CANDIDATES = 50_000
"""Most candidates whose evaluation is kept for the next question."""

DEMAND_HALVINGS = 10
"""The most demand that can be served is sought to a thousandth of what is asked."""

_KEPT: WeakKeyDictionary[Recommender, tuple[object, list[Evaluated]]] = WeakKeyDictionary()
"""The last evaluation of this process: who moves a bound asks again with nothing else changed."""

_KEPT_LOCK = Lock()


class Recommender:
    """Answers workload profiles for one drive; built once from a device profile.

    Example:
        >>> from iojoule.datasets.profile import load_shipped_profile
        >>> from iojoule.recommender.request import parse_workload
        >>> recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
        >>> answer = recommender.recommend(parse_workload({"workload": {"operation": "read"}}))
        >>> answer.mode
        'as_fast_as_possible'
    """

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.predictor = Predictor(profile)
        self.layout = Layout(profile)

    @classmethod
    def under(cls, profile: DeviceProfile, conditions: Conditions | None = None) -> Recommender:
        """Of a drive under some conditions, where none are stated of any specimen of its model.

        Raises:
            InputError: The drive cannot be under a condition; names it.
        """
        return cls(under(profile, conditions or Conditions()))

    def with_limits_of(self, workload: WorkloadProfile) -> Recommender:
        """This recommender, or that of the drive under the power limits of a workload profile.

        Raises:
            InputError: The drive takes no such limit; names the field.
        """
        limited = with_limits_of(self.profile, workload)
        return self if limited is self.profile else Recommender(limited)

    def recommend(
        self,
        workload: WorkloadProfile,
        *,
        rows: int = ROWS_SHOWN,
        least_probability: float = LIKELY,
    ) -> Recommendation:
        """Evaluate every candidate and say which one to use.

        Args:
            workload: What the application does, what is free, what must hold.
            rows: Most rows of the Pareto set to return.
            least_probability: With which a change must save where today's configuration keeps the
                bounds; 0 takes the least expected objective (studies compare with that).

        Raises:
            InputError: The workload profile asks for something that this drive or its profile
                does not have; the message names the field and the remedy.
        """
        limited = self.with_limits_of(workload)
        if limited is not self:
            return limited.recommend(workload, rows=rows, least_probability=least_probability)
        candidates = build_candidates(self.profile, self.predictor.performance.paths, workload)
        searches = [
            self._search(step, candidates) for step in durability.ladder(self.profile, workload)
        ]
        worth = max(TIE, workload.least_saving_percent / 100.0)
        place = durability.least_weak([_least(search) for search in searches], AS_GOOD, worth)
        request = _Request(workload, candidates, rows, least_probability)
        selection = self._select(request, searches[0], searches[place])
        shown = self._evaluate(request, selection)
        return self._respond(request, selection, shown, self._explain(request, selection, shown))

    def today(self, workload: WorkloadProfile) -> Row:
        """What the current configuration does: `current` of `recommend`, without a search.

        Raises:
            InputError: As `recommend`.
        """
        limited = self.with_limits_of(workload)
        if limited is not self:
            return limited.today(workload)
        return self._details(*self.as_configured(workload), None).row(0)

    def as_configured(self, workload: WorkloadProfile) -> tuple[Judge, Judged]:
        """The judge of a workload, and its current configuration judged."""
        paths = self.predictor.performance.paths
        return self._judge(workload, build_candidates(self.profile, paths, workload))

    def _search(self, workload: WorkloadProfile, candidates: Candidates) -> _Search:
        """Look through all candidates with the flushes of one step of durability."""
        judge, reference = self._judge(workload, candidates)
        steps = Steps(judge)
        if workload.has_current:
            steps.see(reference)
        blocks = self._evaluated(judge, workload, candidates)
        found = search(judge, blocks, steps, reference.frame)
        return _Search(workload, judge, reference, steps, found)

    def _evaluated(
        self, judge: Judge, workload: WorkloadProfile, candidates: Candidates
    ) -> Iterable[Evaluated]:
        """The candidates evaluated; those of the last question where only limits differ."""
        if candidates.count > KEPT_CANDIDATES:
            return judge.evaluate(candidates)
        asked = workload.model_copy(update={"sla": Sla(), "name": "", "notes": ()})
        key = (asked.model_dump_json(), judge.search_quantities)
        with _KEPT_LOCK:
            if (kept := _KEPT.get(self)) and kept[0] == key:
                return kept[1]
        blocks = list(judge.evaluate(candidates))
        with _KEPT_LOCK:
            _KEPT.clear()
            _KEPT[self] = (key, blocks)
        return blocks

    def _judge(self, workload: WorkloadProfile, candidates: Candidates) -> tuple[Judge, Judged]:
        """The judge, and today's configuration judged; the default one where none is stated."""
        current_bytes = candidates.current.request_bytes
        predictor, _ = predictor_for(self.predictor, workload, current_bytes)
        demand = durability.demand_with_flushes(self.profile, workload, current_bytes)
        today = predicted(predictor, candidates.current_frame(), demand)
        question = self._question(workload, demand, today)
        check_answerable(question, self.layout, today.prediction)
        judge = Judge(predictor, self.layout, question)
        judged, seen = judge.judge(today), workload.observed.stated
        if seen:
            known = {name: judged.work.latencies.band(name) for name in OF_LATENCY}
            by_chance = demand.arrivals is not Arrivals.BURSTS
            observed = ObservedLatency(seen, known, today.frame, open_loop=by_chance)
            judge = Judge(predictor, self.layout, replace(question, observed=observed))
            judged = judge.judge(today)
        return judge, judged

    def _question(self, workload: WorkloadProfile, demand: Demand, today: Predicted) -> Question:
        """What is asked, today's configuration being what it is."""
        frame, prediction = today.frame, today.prediction
        known = not np.isnan(prediction["latency_p99_ns"].value[0])
        rate = demand.bytes_per_second
        if rate is None and (workload.has_current or workload.objective is not None):
            rate = float(work_of(frame, prediction, demand).served_bytes[0])
        return Question(
            demand,
            workload.sla,
            workload.scope,
            workload.effective_objective if is_powered(self.profile, workload.scope) else None,
            "latency_p99_ns" if known else "latency_mean_ns",
            workload.percentage_used,
            None if rate is None else self._year(workload, rate),
        )

    def _year(self, workload: WorkloadProfile, useful_bytes_per_second: float) -> Year:
        """A year of the work: of what is demanded, or of what is done today."""
        rates = rates_of(
            workload.factors, self.profile, workload.objective, writes=workload.read_fraction < 1.0
        )
        written = 1.0 - workload.read_fraction
        return Year(useful_bytes_per_second * YEAR_SECONDS, written, rates)

    def _beside_today(self, asked: Question, judge: Judge, rows: int) -> Judge:
        """The judge of rows of which the first is today's, with the flushes and year of today."""
        today, chosen = asked.demand.flush, judge.question.demand.flush
        if today == chosen or today is None:
            return judge
        share = np.full(rows, 0.0 if chosen is None else chosen.share)
        share[0] = today.share
        demand = replace(judge.question.demand, flush=replace(today, share=share))
        question = replace(judge.question, demand=demand, year=asked.year)
        return Judge(judge.predictor, self.layout, question)

    def _select(self, request: _Request, first: _Search, last: _Search) -> _Selection:
        """What to use, and what the answer shows; `first` has the flushes of today."""
        workload, result, today = request.workload, last.result, first.reference
        asked, weaker = first.judge.question, last is not first
        choice = choose(
            last.judge,
            result,
            today,
            workload.least_saving_percent / 100.0,
            stated=workload.has_current,
            least_probability=request.least_probability,
            beside=partial(self._beside_today, asked, last.judge) if weaker else None,
        )
        best = choice.frame
        changes = choice.action == "change"
        if best is not None and changes and not weaker:
            changes = not bool((knobs(best)[0] == knobs(today.frame)[0]).all())
        way = None
        if best is not None and changes and not weaker and asked.objective is not None:
            paths = self.predictor.performance.paths
            room = workload.most_bytes_in_flight(request.candidates.current)
            way = between(today.frame, best, paths, room)
        none = np.zeros(0, dtype=np.intp)
        return _Selection(
            first,
            last,
            choice,
            changes,
            way,
            step_rows(last.steps) if best is not None else [],
            pareto.thin(result.costs, request.rows) if len(result.front) else none,
        )

    def _evaluate(self, request: _Request, selection: _Selection) -> _Shown:
        """Put the rows that the answer shows through the full evaluation, today's first."""
        choice, last = selection.choice, selection.last
        steps, way = selection.steps, selection.way
        frame, at = _lay_out(
            today=selection.first.reference.frame,
            front=last.result.front.take(selection.shown),
            best=choice.frame,
            between=None if way is None else way.frame,
            steps=join([step.frame for step in steps]) if steps else None,
            passed=choice.passed,
            misses=last.result.misses if choice.frame is None else None,
        )
        judge = self._beside_today(selection.first.judge.question, last.judge, len(frame))
        judged = judge.judge(frame)
        # today's configuration was not chosen for its prediction
        chosen = at.best if choice.action in ("change", "ranking") else at.passed
        place = chosen[0] if len(chosen) else None
        details = self._details(judge, judged, place)
        return _Shown(details, self._at_todays_rate(judge, judged, place) or details, judged, at)

    def _at_todays_rate(self, judge: Judge, judged: Judged, chosen: int | None) -> Details | None:
        """The rows at the rate that today's configuration serves; None where it serves the demand.

        Equal work is what both can do, and a configuration that could do more draws at that rate
        what it draws there, not a share of what it draws for all of the demand.
        """
        demand, served = judge.question.demand, float(judged.work.served_bytes[0])
        if demand.bytes_per_second is None or served >= demand.bytes_per_second:
            return None
        less = replace(demand, bytes_per_second=served)
        question = replace(judge.question, demand=less, observed=None)
        slower = Judge(judge.predictor, self.layout, question)
        return self._details(slower, slower.judge(judged.predicted), chosen)

    def _details(self, judge: Judge, judged: Judged, chosen: int | None) -> Details:
        shared = with_shared_surface(judge.predictor, judged.frame, judged.prediction, judged.work)
        return Details(self.layout, judge.question, replace(judged, work=shared), chosen)

    def _explain(self, request: _Request, selection: _Selection, shown: _Shown) -> _Explanation:
        """What the recommended row saves and costs beside today's, why, and what to measure."""
        workload, details, equally, at = request.workload, shown.details, shown.equally, shown.at
        current = details.row(0) if workload.has_current else None
        recommended = saving = why = endurance = loses = not_taken = next_runs = None
        if len(at.best):
            place = at.best[0]
            recommended = details.row(place)
            endurance = endurance_of(self.profile, workload, recommended, current)
            loses = durability.durability_of(
                self.profile, workload, selection.last.workload, current, recommended
            )
            if current is not None:
                saving = equally.saving(0, place, same=not selection.changes)
            if selection.way is not None and saving is not None:
                why = attribution(equally, selection.way, 0, place, at.between, saving)
        compared, pair = saving, at.best
        if len(at.passed):
            not_taken = _not_taken(details, at.passed[0])
            compared, pair = not_taken.saving, at.passed
        worth_measuring = selection.changes or not_taken is not None
        if compared is not None and len(pair) and worth_measuring:
            writes = workload.read_fraction < 1.0
            next_runs = measure_next(equally, 0, pair[0], at.front, compared, writes=writes)
        return _Explanation(
            current, recommended, saving, why, not_taken, endurance, loses, next_runs
        )

    def _relaxations(self, request: _Request, last: _Search) -> list[Relaxation]:
        """Bounds of which one alone, relaxed, lets something keep all the others."""
        found = relaxations(last.steps)
        if DEMAND not in {one.bound for one in found}:
            found += self._less_demand(request.candidates, last)
        return sorted(found, key=lambda one: one.by_percent)

    def _less_demand(self, candidates: Candidates, last: _Search) -> list[Relaxation]:
        """The most of the demand with which something keeps every bound, by bisection.

        With less to do latencies are shorter, too, so no single search tells it.
        """
        asked = last.workload.workload
        limit = last.judge.limits.get(DEMAND)
        if limit is None or candidates.count > KEPT_CANDIDATES:
            return []
        blocks = list(self._evaluated(last.judge, last.workload, candidates))
        today, current_bytes = last.reference.predicted, candidates.current.request_bytes
        least, most, kept = 0.0, 1.0, None
        for _ in range(DEMAND_HALVINGS):
            share = 0.5 * (least + most)
            less = {name: share * value for name in DEMANDS if (value := getattr(asked, name))}
            scaled = last.workload.model_copy(update={"workload": asked.model_copy(update=less)})
            demand = durability.demand_with_flushes(self.profile, scaled, current_bytes)
            question = self._question(scaled, demand, today)
            judge = Judge(last.judge.predictor, self.layout, question)
            steps = Steps(judge)
            if scaled.has_current:
                steps.see(judge.judge(today))
            found = search(judge, judge.evaluate_again(blocks), steps, today.frame)
            if len(found.front) and steps.now is not None:
                least, kept = share, steps.now.frame
            else:
                most = share
        if kept is None:
            return []
        return [
            Relaxation(
                bound=DEMAND,
                limit=limit,
                needed=least * limit,
                by_percent=100.0 * (1.0 - least),
                configuration=configuration_of(kept, 0),
            )
        ]

    def _respond(
        self,
        request: _Request,
        selection: _Selection,
        shown: _Shown,
        explanation: _Explanation,
    ) -> Recommendation:
        workload, candidates = request.workload, request.candidates
        choice, last, details = selection.choice, selection.last, shown.details
        question, result, at = details.question, last.result, shown.at
        current, recommended = explanation.current, explanation.recommended
        place = at.best[0] if recommended is not None else 0
        kept = selection.changes or choice.action != "change"
        today = selection.first.reference
        return Recommendation(
            workload=workload.name,
            device=self.profile.device,
            model_name=self.profile.model_name,
            profile_version=self.profile.profile_version,
            mode="as_fast_as_possible" if workload.as_fast_as_possible else "equal_work",
            scope=workload.scope,
            objective=workload.effective_objective,
            ranked_by="performance" if question.objective is None else question.objective.value,
            confidence=workload.sla.confidence,
            factors=workload.factors,
            demand_bytes_per_second=question.demand.bytes_per_second,
            sla=workload.sla,
            action=choice.action if kept else "no change",
            reason_code=choice.reason_code,
            recommended=recommended,
            current=current,
            current_place=_place(result, today, selection.shown) if current is not None else None,
            saving=explanation.saving,
            attribution=explanation.attribution,
            least_saving_percent=workload.least_saving_percent,
            not_taken=explanation.not_taken,
            endurance=explanation.endurance,
            durability=explanation.durability,
            pareto=[details.row(index) for index in at.front],
            measure_next=explanation.measure_next,
            bounds=slacks(details, last.steps, workload.sla, place, at.steps)
            if selection.steps
            else [],
            preferred_missed=details.shortfalls(place) if recommended is not None else [],
            nearest_misses=[details.miss(index) for index in at.misses],
            relaxations=self._relaxations(request, last) if recommended is None else [],
            counts=Counts(
                total=candidates.count,
                feasible=result.feasible,
                on_front=len(result.front),
                shown=len(selection.shown),
                excluded=candidates.excluded,
            ),
            free=list(candidates.free),
            defaults_used=candidates.defaults_used,
            evidence=_evidence(recommended or current),
            notes=[
                *explain.write(
                    self.profile, workload, question, candidates, current, recommended, choice
                ),
                *predictor_for(self.predictor, workload, candidates.current.request_bytes)[1],
                *race_or_pace_notes(self.profile, shown.judged, place),
            ],
        )


@dataclass(frozen=True)
class _Request:
    """What is asked: the workload, its candidates, how many rows, and how sure a change must be."""

    workload: WorkloadProfile
    candidates: Candidates
    rows: int
    least_probability: float


@dataclass(frozen=True)
class _Search:
    """All candidates with the flushes of one step of durability, and the result."""

    workload: WorkloadProfile
    judge: Judge
    reference: Judged
    steps: Steps
    result: SearchResult


@dataclass(frozen=True)
class _Selection:
    """What to use, and what is shown beside it.

    Attributes:
        first: The search with the flushes of today.
        last: That with the flushes that are recommended.
        changes: Whether what is recommended differs from today's configuration.
        way: What lies between the two, where the saving is explained by it.
        steps: The least for each bound and way of relaxing it.
        shown: Rows of the front in the answer.
    """

    first: _Search
    last: _Search
    choice: Choice
    changes: bool
    way: Between | None
    steps: list[Least]
    shown: NDArray[np.intp]


@dataclass(frozen=True)
class _Places:
    """Which rows of the evaluation are which."""

    today: range
    front: range
    best: range
    between: range
    steps: range
    passed: range
    misses: range


@dataclass(frozen=True)
class _Shown:
    """The rows that the answer shows, evaluated, and which of them are which.

    Attributes:
        details: At the demand.
        equally: At the rate that today's configuration serves of it.
        judged: Rows of `details`.
        at: Which are which.
    """

    details: Details
    equally: Details
    judged: Judged
    at: _Places


@dataclass(frozen=True)
class _Explanation:
    """Fields of the answer about the recommended row beside today's; None where there is none."""

    current: Row | None
    recommended: Row | None
    saving: Saving | None
    attribution: Attribution | None
    not_taken: NotTaken | None
    endurance: Endurance | None
    durability: DurabilityAnswer | None
    measure_next: MeasureNext | None


def _least(search: _Search) -> tuple[float, float]:
    """By how much preferred bounds are missed, and the least objective; infinite without any."""
    result, today = search.result, search.reference
    if len(result.front):
        return result.missed, float(result.costs[:, 0].min())
    missed = float(today.preferred_missed[0])
    return missed, float(today.costs[0, 0]) if today.feasible[0] else np.inf


def _lay_out(**parts: Frame | None) -> tuple[Frame, _Places]:
    """Frames below each other, and where each of them went."""
    at: dict[str, range] = {}
    end = 0
    for name, part in parts.items():
        at[name] = range(end, end + (0 if part is None else len(part)))
        end = at[name].stop
    return join([part for part in parts.values() if part is not None]), _Places(**at)


def _not_taken(details: Details, place: int) -> NotTaken:
    costs = details.judged.costs[:, 0]
    return NotTaken(
        row=details.row(place),
        objective_saved_percent=100.0 * float(1.0 - costs[place] / costs[0]),
        saving=details.saving(0, place, same=False),
    )


def _place(result: SearchResult, today: Judged, shown: NDArray[np.intp]) -> Place:
    """Where today's configuration stands beside the front; `shown` are the rows of the answer."""
    better = pareto.beating(result.costs, today.costs[0])
    seen = np.flatnonzero(np.isin(shown, better)).tolist()
    feasible = bool(today.feasible[0])
    return Place(on_front=feasible and not len(better), beaten_by=len(better), beaten_by_rows=seen)


def _evidence(row: Row | None) -> dict[str, str]:
    if row is None:
        return {}
    return {
        name: value.evidence.value
        for name in Row.model_fields
        if isinstance(value := getattr(row, name), Estimate)
    }
