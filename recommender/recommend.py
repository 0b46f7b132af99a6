"""Which configurations should this workload use?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.frame import Frame
from iojoule.model.predictor import Predictor
from iojoule.recommender import bounds, durability, notes, pareto, racing
from iojoule.recommender.answer import Counts, NotTaken, Place, Recommendation, Row, Saving
from iojoule.recommender.attribution import between
from iojoule.recommender.candidates import build_candidates
from iojoule.recommender.endurance import endurance_of
from iojoule.recommender.equal_work import demand_of, watts_of, work_of
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import SECONDS_A_YEAR, Year, rates_of
from iojoule.recommender.measure_next import measure_next
from iojoule.recommender.mixed_sizes import predictor_for
from iojoule.recommender.reasons import MeasureNext
from iojoule.recommender.rows import Details
from iojoule.recommender.screen import Judge, Judged, Question, check_answerable, scope_watts
from iojoule.recommender.sensitivity import Layout
from iojoule.recommender.shared_surface import with_shared_surface
from iojoule.recommender.space import Candidates, join, knobs
from iojoule.recommender.steps import AS_GOOD, Steps
from iojoule.recommender.why import attribution
from iojoule.recommender.workload import WorkloadProfile

Floats = NDArray[np.float64]

ROWS_SHOWN = 50
"""Rows of the front in an answer; a longer front is thinned evenly."""

MISSES_SHOWN = 5

MOST_RIVALS = 512
"""Least objectives that are kept; so many rivals more than double what a row errs by itself."""


class Recommender:
    """Answers workload profiles for one drive; built once from a device profile.

    Example:
        >>> from iojoule.datasets.profile import load_shipped_profile
        >>> from iojoule.recommender.workload import parse_workload
        >>> recommender = Recommender(load_shipped_profile("samsung-980-pro-1tb"))
        >>> answer = recommender.recommend(parse_workload({"workload": {"operation": "read"}}))
        >>> answer.mode
        'as_fast_as_possible'
    """

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.predictor = Predictor(profile)
        self.layout = Layout(profile)

    def recommend(self, workload: WorkloadProfile, *, rows: int = ROWS_SHOWN) -> Recommendation:
        """Evaluate every candidate and say which one to use.

        Args:
            workload: What the application does, what is free, what must hold.
            rows: Most rows of the Pareto set to return.

        Raises:
            InputError: The workload profile asks for something that this drive or its profile
                does not have; the message names the field and the remedy.
        """
        candidates = build_candidates(self.profile, self.predictor.performance.paths, workload)
        tried = [
            self._search(step, candidates) for step in durability.ladder(self.profile, workload)
        ]
        worth = max(pareto.TIE, workload.least_saving_percent / 100.0)
        place = durability.least_weak([_least(one) for one in tried], AS_GOOD, worth)
        return self._answer(workload, candidates, tried[0].judge.question, tried[place], rows)

    def _search(self, workload: WorkloadProfile, candidates: Candidates) -> _Tried:
        """Look through all candidates with the flushes of one step of durability."""
        judge, today = self._judge(workload, candidates)
        steps = Steps(judge)
        steps.see(today)
        return _Tried(workload, judge, today, steps, _search(judge, candidates, steps))

    def _beside_today(self, asked: Question, judge: Judge, rows: int) -> Judge:
        """The judge of rows of which the first is today's, with the flushes and year of today."""
        today, chosen = asked.demand, judge.question.demand
        if today.flush_ns == chosen.flush_ns:
            return judge
        each = np.full(rows, chosen.flush_ns)
        each[0] = today.flush_ns
        demand = replace(chosen, flush_ns=each, flush_log_sd=today.flush_log_sd)
        question = replace(judge.question, demand=demand, year=asked.year)
        return Judge(judge.predictor, self.layout, question)

    def _judge(self, workload: WorkloadProfile, candidates: Candidates) -> tuple[Judge, Judged]:
        """The judge, told what this profile can be asked, and today's configuration judged."""
        predictor, _ = predictor_for(self.predictor, workload, candidates.current.request_bytes)
        frame = candidates.current_frame()
        wait, wait_sd = durability.flush_wait(self.profile, workload)
        demand = replace(
            demand_of(workload, candidates.current.request_bytes),
            flush_ns=wait, flush_log_sd=wait_sd,
        )  # fmt: skip
        prediction = predictor.predict(frame)
        known = not np.isnan(prediction["latency_p99_ns"].value[0])
        work = work_of(frame, prediction, demand)
        watts = watts_of(self.profile, frame, prediction, work, demand.rest)
        powered = scope_watts(watts, workload.scope) is not None
        question = Question(
            demand, workload.sla, workload.scope,
            workload.effective_objective if powered else None,
            "latency_p99_ns" if known else "latency_mean_ns",
            workload.percentage_used,
            self._year(workload, demand.bytes_per_second or float(work.served_bytes[0])),
        )  # fmt: skip
        check_answerable(question, self.layout, prediction)
        judge = Judge(predictor, self.layout, question)
        return judge, judge.judge(frame, prediction)

    def _year(self, workload: WorkloadProfile, useful_bytes_per_second: float) -> Year:
        """A year of the work: of what is demanded, or of what is done today."""
        rates = rates_of(
            workload.factors, self.profile, workload.objective, writes=workload.read_fraction < 1.0
        )
        written = 1.0 - workload.read_fraction
        return Year(useful_bytes_per_second * SECONDS_A_YEAR, written, rates)

    def _answer(
        self,
        workload: WorkloadProfile,
        candidates: Candidates,
        asked: Question,
        tried: _Tried,
        most: int,
    ) -> Recommendation:
        """Put the rows that the answer shows through the full evaluation, today's first.

        `workload` and `asked` have the flushes of today, `tried` those that are recommended.
        """
        found, steps, today = tried.found, tried.steps, tried.today
        weaker = tried.workload is not workload
        least_saving = workload.least_saving_percent / 100.0
        best = _recommended(tried.judge.predictor, found, today, least_saving)
        shown = pareto.thin(found.costs, most) if len(found.front) else np.zeros(0, dtype=np.intp)
        same = best is None or bool((knobs(best)[0] == knobs(today.frame)[0]).all())
        same = same and not weaker
        passed = _passed_over(found, today) if same and best is not None else None
        way = None
        if best is not None and not same and not weaker and asked.objective is not None:
            paths = self.predictor.performance.paths
            way = between(today.frame, best, paths, workload.max_concurrency)
        stepped = [] if best is None else bounds.rows_of(steps)
        frame, at = _lay_out(
            today=today.frame,
            front=found.front.take(shown),
            best=best,
            between=None if way is None else way.frame,
            stepped=join([one.frame for one in stepped]) if stepped else None,
            passed=passed,
            misses=found.misses if best is None else None,
        )
        judge = self._beside_today(asked, tried.judge, len(frame))
        question, judged = judge.question, judge.judge(frame)
        shared = with_shared_surface(judge.predictor, judged.frame, judged.prediction, judged.work)
        # today's configuration was not chosen for its prediction
        chosen = at["passed" if same else "best"]
        details = Details(
            self.layout, question, replace(judged, work=shared),
            (chosen[0], found.near) if len(chosen) else None,
        )  # fmt: skip
        made = [details.row(index) for index in (*at["today"], *at["front"])]
        current, recommended, saving, endurance, why = made[0], None, None, None, None
        loses, place = None, 0
        if best is not None:
            place = at["best"][0]
            recommended = details.row(place)
            saving = details.saving(0, place, same=same)
            endurance = endurance_of(self.profile, workload, recommended, current)
            loses = durability.durability_of(
                self.profile, workload, tried.workload, current, recommended
            )
        if way is not None and saving is not None:
            why = attribution(details, way, 0, place, at["between"], saving)
        not_taken = None
        if passed is not None:
            not_taken = _not_taken(details, at["passed"][0])
            saving = _staying(saving, not_taken, workload.least_saving_percent)
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
            recommended=recommended,
            current=current,
            current_place=_place(found, today, shown),
            saving=saving,
            attribution=why,
            least_saving_percent=workload.least_saving_percent,
            not_taken=not_taken,
            endurance=endurance,
            durability=loses,
            pareto=made[1:],
            measure_next=_measure_next(details, at, workload, not_taken, saving, same=same),
            bounds=bounds.slacks(details, steps, workload.sla, place, at["stepped"])
            if stepped
            else [],
            preferred_missed=details.shortfalls(place) if best is not None else [],
            nearest_misses=[details.miss(index) for index in at["misses"]],
            relaxations=bounds.relaxations(steps) if best is None else [],
            counts=Counts(
                total=candidates.count, feasible=found.feasible, on_front=len(found.front),
                shown=len(shown), excluded=candidates.excluded,
            ),
            free=list(candidates.free),
            defaults_used=candidates.defaults_used,
            evidence=_evidence(recommended or current),
            notes=[
                *notes.write(
                    self.profile, workload, question, candidates, current, recommended, saving
                ),
                *predictor_for(self.predictor, workload, candidates.current.request_bytes)[1],
                *racing.notes(self.profile, judged, place),
            ],
        )  # fmt: skip


@dataclass(frozen=True)
class _Found:
    """What is left of the candidates: the front, or the nearest misses.

    `near` holds the least objectives of all that is feasible, what the best was chosen from;
    `missed` by how much the front misses preferred bounds, relative and in all.
    """

    feasible: int
    front: Frame
    costs: Floats
    misses: Frame | None
    near: Floats
    missed: float


def _search(judge: Judge, candidates: Candidates, steps: Steps) -> _Found:
    """Judge every candidate, block by block.

    The front of the blocks' fronts is the front of all, so that only few rows are kept.
    """
    feasible = 0
    fronts: list[tuple[Frame, Floats]] = []
    misses: list[tuple[Frame, Floats]] = []
    near = np.zeros(0)
    for frame in candidates.blocks():
        judged = judge.screen(frame, len(candidates.states))
        steps.see(judged)
        good = np.flatnonzero(judged.feasible)
        feasible += len(good)
        if len(good):
            fronts.append(_front(judged, good))
            near = _least_values(np.append(near, judged.costs[good, 0]))
        elif not fronts:
            hard = judged.violations[:, ~judged.soft]
            close = pareto.nearest(hard, MISSES_SHOWN)
            misses.append((judged.frame.take(close), hard[close]))
    if not fronts:
        frame, violations = join([m[0] for m in misses]), np.concatenate([m[1] for m in misses])
        close = pareto.nearest(violations, MISSES_SHOWN)
        nothing = frame.take(np.zeros(0, dtype=np.intp))
        return _Found(0, nothing, np.zeros((0, 3)), frame.take(close), near, 0.0)
    frame, costs = fronts[0]
    if len(fronts) > 1:
        frame = join([part[0] for part in fronts])
        costs = np.concatenate([part[1] for part in fronts])
        kept = pareto.front(costs, frame)
        frame, costs = frame.take(kept), costs[kept]
    missed = 0.0
    if judge.soft.any():
        missed = float(costs[:, -1].min())
        kept = np.flatnonzero(costs[:, -1] <= missed + AS_GOOD)
        kept = kept[pareto.front(costs[kept, :-1], frame.take(kept))]
        frame, costs = frame.take(kept), costs[kept, :-1]
    return _Found(feasible, frame, costs, None, near, missed)


@dataclass(frozen=True)
class _Tried:
    """All candidates with the flushes of one step of durability: today's, the judge, the search."""

    workload: WorkloadProfile
    judge: Judge
    today: Judged
    steps: Steps
    found: _Found


def _least(tried: _Tried) -> tuple[float, float]:
    """By how much preferred bounds are missed, and the least objective; infinite without any."""
    found, today = tried.found, tried.today
    if len(found.front):
        return found.missed, float(found.costs[:, 0].min())
    missed = float(today.preferred_missed[0])
    return missed, float(today.costs[0, 0]) if today.feasible[0] else np.inf


def _least_values(values: Floats) -> Floats:
    """The `MOST_RIVALS` least values."""
    return values if len(values) <= MOST_RIVALS else np.partition(values, MOST_RIVALS)[:MOST_RIVALS]


def _front(judged: Judged, good: NDArray[np.intp]) -> tuple[Frame, Floats]:
    costs = judged.costs[good]
    if judged.soft.any():  # what comes closest to the preferred bounds stays too
        costs = np.column_stack([costs, judged.preferred_missed[good]])
    frame = judged.frame.take(good)
    kept = pareto.front(costs, frame)
    return frame.take(kept), costs[kept]


def _recommended(
    predictor: Predictor, found: _Found, today: Judged, least_saving: float
) -> Frame | None:
    """The row to use, as a frame of one; None where nothing is feasible."""
    compete = bool(today.feasible[0] and today.preferred_missed[0] <= found.missed + AS_GOOD)
    if not len(found.front):
        return today.frame if today.feasible[0] else None
    frame, objective = found.front, found.costs[:, 0]
    here = np.flatnonzero((knobs(frame) == knobs(today.frame)).all(axis=1))
    if compete and not len(here):
        frame = join([frame, today.frame])
        objective = np.append(objective, today.costs[0, 0])
        here = np.array([len(objective) - 1])

    def evidence(rows: NDArray[np.intp]) -> NDArray[np.intp]:
        return predictor.predict(frame.take(rows), only=()).evidence

    row = pareto.choose(objective, evidence, here, frame, least_saving)
    return frame.take(slice(row, row + 1))


def _passed_over(found: _Found, today: Judged) -> Frame | None:
    """The least of all, as a frame of one; None where that is today's configuration."""
    if not len(found.front) or found.costs[:, 0].min() >= today.costs[0, 0]:
        return None
    row = int(found.costs[:, 0].argmin())
    return found.front.take(slice(row, row + 1))


def _lay_out(**parts: Frame | None) -> tuple[Frame, dict[str, range]]:
    """Frames below each other, and where each of them went."""
    at: dict[str, range] = {}
    end = 0
    for name, part in parts.items():
        at[name] = range(end, end + (0 if part is None else len(part)))
        end = at[name].stop
    return join([part for part in parts.values() if part is not None]), at


def _not_taken(details: Details, place: int) -> NotTaken:
    costs = details.judged.costs[:, 0]
    return NotTaken(
        row=details.row(place),
        objective_saved_percent=100.0 * float(1.0 - costs[place] / costs[0]),
        saving=details.saving(0, place, same=False),
    )


def _measure_next(
    details: Details,
    at: dict[str, range],
    workload: WorkloadProfile,
    not_taken: NotTaken | None,
    saving: Saving | None,
    *,
    same: bool,
) -> MeasureNext | None:
    """What would make the saving surer: that of the recommended row, or of the one not taken."""
    about = not_taken.saving if not_taken is not None else saving
    places = at["passed" if same else "best"]
    if about is None or not len(places):
        return None
    return measure_next(
        details, 0, places[0], at["front"], about, writes=workload.read_fraction < 1.0
    )


def _staying(saving: Saving | None, not_taken: NotTaken, least_percent: float) -> Saving | None:
    """No saving, and why the best candidate was not taken."""
    if saving is None:
        return None
    said = (
        f"the best candidate saves {not_taken.objective_saved_percent:.2g} %, less than the "
        f"{least_percent:g} % for which a change is made"
    )
    return saving.model_copy(update={"reason": said})


def _place(found: _Found, today: Judged, shown: NDArray[np.intp]) -> Place:
    """Where today's configuration stands beside the front; `shown` are the rows of the answer."""
    better = pareto.beating(found.costs, today.costs[0])
    seen = np.flatnonzero(np.isin(shown, better)).tolist()
    feasible = bool(today.feasible[0])
    return Place(on_front=feasible and not len(better), beaten_by=len(better), beaten_by_rows=seen)


def _evidence(row: Row) -> dict[str, str]:
    return {
        name: value.evidence.value
        for name in Row.model_fields
        if isinstance(value := getattr(row, name), Estimate)
    }
