"""Wires the recommender's advisor into campaigns: a question decides what is measured next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.store import Dataset
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.campaign.adaptive import Advice, Budget, conduct_adaptively
from iojoule.measure.campaign.conduct import Bench, Conduct, Observer, Summary
from iojoule.measure.campaign.folder import AdaptiveOptions, CampaignFolder
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.runs import Run, run_seconds
from iojoule.measure.point import Point
from iojoule.recommender.adaptive.advisor import CandidateAdvisor
from iojoule.recommender.adaptive.aims import Candidate
from iojoule.recommender.request import (
    Free,
    WorkloadProfile,
    load_workload,
    parse_workload,
)

_KIND = ("operation", "pattern", "mix_dispatch", "flush_every_writes", "force_unit_access")
"""What a point must have in common with the question, beside the share of reads."""


class PlanAdvisor:
    """The recommender's advice in the words of a campaign: an `Advisor`.

    Args:
        plan: The plan, for what a run takes.
        runs: The candidates, each point once (see `candidates_of`).
        question: What the campaign is to answer.
    """

    def __init__(self, plan: Plan, runs: Sequence[Run], question: WorkloadProfile) -> None:
        candidates = [
            Candidate(run.point.workload, run.point.configuration, run_seconds(plan, run))
            for run in runs
        ]
        self._advisor = CandidateAdvisor(question, candidates, seed=plan.seed)

    def next_points(self, dataset: Dataset, failed: Sequence[Point]) -> Advice:
        """See `Advisor.next_points`; where too little is known it asks for nothing."""
        avoid = [Candidate(one.workload, one.configuration, 0.0) for one in failed]
        found = self._advisor.propose(dataset, avoid)
        if found is None:
            return Advice((), float("inf"), "too few runs are done to say anything")
        points = tuple(Point(one.workload, one.configuration) for one in found.candidates)
        return Advice(points, found.regret_bound, found.why)


def candidates_of(runs: Sequence[Run], question: WorkloadProfile) -> list[Run]:
    """The runs of a plan that measure a question's candidates, each point once.

    A point is a candidate when its workload is the question's, and its configuration one that the
    question leaves free. A demand of the question is put into the point, in bytes of its size of
    request.

    Raises:
        InputError: None is.
    """
    found: dict[str, Run] = {}
    for run in runs:
        if _asked(run.point.workload, question) and _allowed(run.point.configuration, question):
            point = at_demand(run.point, question)
            found.setdefault(point.key, replace(run, point=point, repeat=0))
    if not found:
        raise InputError(
            f"{question.name}: the plan sweeps no point of this question's operation, pattern and "
            "share of reads with a configuration that the question leaves free"
        )
    return list(found.values())


def adaptive_options(
    question_file: Path, hours: float, regret: float
) -> tuple[AdaptiveOptions, WorkloadProfile]:
    """What is kept of an adaptive campaign for resuming it, and the question.

    Raises:
        InputError: The file holds no question.
    """
    question = load_workload(question_file)
    stated = question.model_dump(mode="json", exclude_none=True)
    return AdaptiveOptions(hours=hours, regret=regret, question=stated), question


def adaptive_conduct(options: AdaptiveOptions) -> Conduct:
    """How `run_campaign` is to conduct a campaign with these options.

    Raises:
        InputError: The stored question is damaged.
    """
    question = parse_workload(options.question, "campaign.json: adaptive.question")
    return partial(_conduct, question=question, budget=Budget(options.hours, options.regret))


def _conduct(
    plan: Plan,
    runs: Sequence[Run],
    folder: CampaignFolder,
    bench: Bench,
    observer: Observer,
    *,
    question: WorkloadProfile,
    budget: Budget,
    clock: Callable[[], float] | None = None,
) -> Summary:
    candidates = candidates_of(runs, question)
    advisor = PlanAdvisor(plan, candidates, question)
    timed = {} if clock is None else {"clock": clock}
    return conduct_adaptively(
        plan, candidates, folder, bench, observer, advisor=advisor, budget=budget, **timed
    )


def _asked(workload: Workload, question: WorkloadProfile) -> bool:
    wanted = question.workload
    same = all(getattr(workload, name) == getattr(wanted, name) for name in _KIND)
    if wanted.operation is Operation.MIXED:
        same = same and workload.read_fraction == wanted.read_fraction
    return same


def _allowed(configuration: Configuration, question: WorkloadProfile) -> bool:
    useful = question.workload.useful_request_bytes
    most = question.concurrency_max
    in_flight = configuration.queue_depth * configuration.jobs
    merged = configuration.request_bytes / useful if useful else 1.0
    if isinstance(most, int) and in_flight * merged > most:
        return False
    if useful is not None and configuration.request_bytes < useful:
        return False
    free = question.free
    for name in Free.model_fields:
        value, today = getattr(configuration, name), getattr(question.current, name)
        choices = getattr(free, name) if free is not None else ()
        if choices is None:
            if today is not None and value is not None and value != today:
                return False
        elif choices and value is not None and value not in choices:
            return False
    return True


def at_demand(point: Point, question: WorkloadProfile) -> Point:
    """A point that has to serve the demand of a question, in bytes of its own size of request."""
    stated = question.workload
    size = point.configuration.request_bytes
    operation = stated.useful_request_bytes or question.current.request_bytes or size
    demand = stated.demand_bytes_per_second
    if stated.demand_operations_per_second is not None:
        demand = stated.demand_operations_per_second * operation
    if demand is None:
        return point
    useful = min(size, stated.request_bytes_coalescible or operation)
    changes = {
        "demand_bytes_per_second": demand * size / useful,
        "demand_operations_per_second": None,
        "arrival_process": stated.arrival_process,
    }
    return Point(point.workload.model_copy(update=changes), point.configuration)
