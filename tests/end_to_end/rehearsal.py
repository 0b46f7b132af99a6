"""Campaigns on simulated drives with a simulated clock: adaptive, Sobol and full factorial.

A bench answers with the truth of `simulated_drives` and a measurement's noise. Its clock counts
what a real campaign takes: filling and writing until steady, idle baselines, settling, ramps,
the runs, and the wait for housekeeping after writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from iojoule.api.application.adaptive_campaign import PlanAdvisor
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.steady_state import WINDOW_ROUNDS
from iojoule.datasets.store import Dataset
from iojoule.measure.campaign.adaptive import ADAPTIVE_FILE, Budget, Progress, conduct_adaptively
from iojoule.measure.campaign.conduct import Store
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    CampaignState,
    RunRecord,
    Status,
)
from iojoule.measure.campaign.runs import OVERHEAD_SECONDS, Run, run_seconds, space_filling
from iojoule.measure.point import Point
from iojoule.recommender.adaptive.advisor import CandidateAdvisor
from iojoule.recommender.adaptive.aims import Candidate
from tests.end_to_end.simulated_drives import STATES, Case, regret_of

FILL_SECONDS = 1e12 / 3e9
"""One pass over 1 TB at 3 GB/s."""
NOISE = {"throughput": 0.015, "latency": 0.01, "p99": 0.04, "device": 0.015, "cpu": 0.02}
"""Log standard deviations of one run's throughput, of latency besides, of its p99, of power."""
AT_DEMAND = 0.1
"""A rate that is set varies by so much less."""


class SimulatedBench:
    """A `Bench` for a case; `clock` gives its seconds."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._source = np.random.default_rng([case.number, seed])
        self._rows = {point.key: row for row, point in enumerate(case.points)}
        self.seconds = 0.0
        self.runs = 0

    def clock(self) -> float:
        """Seconds since the drive was unpacked."""
        return self.seconds

    def prepare(self, state: CampaignState, store: Store) -> None:
        """Fill once, and measure idle power in every state."""
        if not state.filled:
            self.seconds += self._case.plan.precondition.fill_passes * FILL_SECONDS
            self._baselines()
            state.filled = True
            store(state)

    def before(self, run: Run, state: CampaignState, store: Store) -> None:
        """Write until steady, once for each pattern."""
        asked, pattern = self._case.plan.precondition, run.point.workload.pattern.value
        if asked.until_steady and pattern not in state.steady:
            self.seconds += 2 * WINDOW_ROUNDS * asked.round_seconds
            state.steady[pattern] = True
            store(state)

    def finish(self, state: CampaignState, store: Store) -> None:
        """Measure idle power again."""
        self._baselines()

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """The truth with noise."""
        took = run.seconds + run.ramp_seconds + self._case.plan.settle.seconds + OVERHEAD_SECONDS
        if run.point.writes:
            # housekeeping takes 7 to over 100 s, longer in lower power states
            usual = 20 * 1.4 ** (run.point.configuration.power_state or 0)
            took += min(180.0, usual * float(np.exp(0.6 * self._source.standard_normal())))
        self.seconds += took
        self.runs += 1
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.DONE,
            started_utc=datetime.now(UTC),
            wall_seconds=took,
            measurement=self.measure(run.point),
        )

    def shown(self, row: int) -> Mapping[str, float]:
        """What a run of a candidate shows without noise: its truth."""
        return {name: float(one[row]) for name, one in self._case.truth.items()}

    def measure(self, point: Point) -> Measurement:
        """One noisy measurement of a point; throughput and mean latency keep Little's law."""
        truth = self.shown(self._rows[point.key])
        draws = dict(zip(NOISE, self._source.standard_normal(len(NOISE)), strict=True))
        by = {name: float(np.exp(NOISE[name] * draw)) for name, draw in draws.items()}
        faster = by["throughput"]
        if point.workload.demand_bytes_per_second:
            faster **= AT_DEMAND
        seen = Observations(
            throughput_bytes_per_second=truth["throughput_bytes_per_second"] * faster,
            iops=truth["iops"] * faster,
            latency_mean_ns=truth["latency_mean_ns"] / faster * by["latency"],
            latency_p99_ns=truth["latency_p99_ns"] * by["p99"],
            device_power_watts=truth["device_power_watts"] * by["device"],
            cpu_power_watts=truth["cpu_power_watts"] * by["cpu"],
        )
        return Measurement(
            workload=point.workload, configuration=point.configuration, observations=seen
        )

    def _baselines(self) -> None:
        self.seconds += len(STATES) * self._case.plan.settle.baseline_seconds


class Silent:
    """An observer."""

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None: ...

    def end(self, run: Run, record: RunRecord) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """What a plan of measurements led to.

    Attributes:
        regret: True cost of the recommendation over the best feasible one, minus 1; 1 where the
            recommendation breaks the SLA.
        feasible: Whether it keeps the SLA in truth.
        runs: That were made.
        hours: That they took.
        bound: The advisor's own bound on the regret; NaN = none.
    """

    regret: float
    feasible: bool
    runs: int
    hours: float
    bound: float = float("nan")


def runs_of(case: Case) -> list[Run]:
    """Every candidate once, in random order."""
    order = np.random.default_rng(case.plan.seed).permutation(len(case.points))
    timing = case.plan.run
    return [
        Run(number, "all", case.points[row], 0, timing.seconds, timing.ramp_seconds)
        for number, row in enumerate(order, start=1)
    ]


def adaptive(case: Case, hours: float, folder: Path, seed: int = 1, regret: float = 0.0) -> Outcome:
    """A campaign of so many hours, conducted by the advisor."""
    bench = SimulatedBench(case, seed)
    kept = CampaignFolder(folder)
    kept.create(case.plan_text, CampaignOptions(drive="/dev/simulated", serial=f"S{case.number}"))
    runs = runs_of(case)
    conduct_adaptively(
        case.plan.model_copy(update={"seed": seed}),
        runs,
        kept,
        bench,
        Silent(),
        advisor=PlanAdvisor(case.plan, runs, case.question),
        budget=Budget(hours, regret),
        clock=bench.clock,
    )
    last = kept.read(ADAPTIVE_FILE, Progress).last_bound
    measured = [one.measurement for one in kept.records() if one.measurement is not None]
    return _outcome(case, measured, bench, float("inf") if last is None else last)


def sobol(case: Case, hours: float, seed: int = 1) -> Outcome:
    """A Sobol plan over the same points that takes as many hours; the same recommender after it."""
    most = int(hours * 3600 / run_seconds(case.plan, runs_of(case)[0])) + 1
    rows = space_filling(case.points, most, seed)
    return _planned(case, [case.points[row] for row in rows], seed, hours)


def factorial(case: Case, seed: int = 1) -> Outcome:
    """Every point once; the same recommender after it."""
    return _planned(case, [run.point for run in runs_of(case)], seed, float("inf"))


def factorial_hours(case: Case) -> float:
    """What measuring every point once takes."""
    bench = SimulatedBench(case, 0)
    _drive_through(bench, case, [run.point for run in runs_of(case)], float("inf"))
    return bench.seconds / 3600


def _planned(case: Case, points: Sequence[Point], seed: int, hours: float) -> Outcome:
    bench = SimulatedBench(case, seed)
    return _outcome(case, _drive_through(bench, case, points, hours), bench)


def _drive_through(
    bench: SimulatedBench, case: Case, points: Sequence[Point], hours: float
) -> list[Measurement]:
    """Measure the points in order, as long as there is time."""
    state, timing = CampaignState(), case.plan.run
    bench.prepare(state, lambda _: None)
    measured: list[Measurement] = []
    for number, point in enumerate(points, start=1):
        run = Run(number, "all", point, 0, timing.seconds, timing.ramp_seconds)
        bench.before(run, state, lambda _: None)
        last = len(STATES) * case.plan.settle.baseline_seconds
        if bench.seconds + run_seconds(case.plan, run) + last > hours * 3600:
            break
        record = bench.perform(run, Path(), state)
        measured += [record.measurement] if record.measurement is not None else []
    bench.finish(state, lambda _: None)
    return measured


def _outcome(
    case: Case,
    measured: Sequence[Measurement],
    bench: SimulatedBench,
    bound: float = float("nan"),
) -> Outcome:
    candidates = [Candidate(one.workload, one.configuration, 1.0) for one in case.points]
    dataset = Dataset.from_measurements(list(measured), Provenance(importer="rehearsal"))
    choice = CandidateAdvisor(case.question, candidates).choose(dataset)
    # a candidate that is not sure enough to keep the SLA is recommended nevertheless: the least bad
    regret, feasible = regret_of(case, None if choice is None else choice.row)
    return Outcome(regret, feasible, bench.runs, bench.seconds / 3600, bound)
