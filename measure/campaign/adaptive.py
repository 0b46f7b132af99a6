"""Adaptive campaigns: a first design, then the points that an advisor requests.

Every choice is stored (adaptive.json) before it is run, so that an interrupted campaign resumes
with it. Hours count drive time: from the first purge to the last run, waits included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import ConfigDict, Field

from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Section
from iojoule.datasets.store import Dataset
from iojoule.measure.campaign.conduct import Bench, Conductor, Observer, Summary, counts
from iojoule.measure.campaign.folder import CampaignFolder
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.runs import Run, run_seconds, space_filling
from iojoule.measure.campaign.settings import resting_powers
from iojoule.measure.errors import CampaignError
from iojoule.measure.point import Point
from iojoule.model.fit.gaussian_process import coordinates

ADAPTIVE_FILE = "adaptive.json"

FIRST_PER_KNOB = 2
FIRST_BESIDES = 4
"""The first design has so many runs per knob that varies, and so many besides."""

SETTLED_TIMES = 2
"""The regret bound must be low so often in a row: one low bound may be luck."""


@dataclass(frozen=True)
class Advice:
    """What to measure next, in order (a point may repeat), and why.

    `regret_bound` is the most that the present recommendation costs above the best one, as a
    fraction; infinite where nothing is known.
    """

    points: tuple[Point, ...]
    regret_bound: float
    why: str


class Advisor(Protocol):
    """Says what to measure next."""

    def next_points(self, dataset: Dataset, failed: Sequence[Point]) -> Advice:
        """Advice from the measurements so far; points that failed are not requested again."""


@dataclass(frozen=True)
class Budget:
    """When an adaptive campaign ends.

    Attributes:
        hours: Drive time, preparation included.
        regret: Ends it once the regret bound is below this fraction; 0 = never.
        first: Runs of the first design; None = by the number of knobs.
    """

    hours: float
    regret: float = 0.0
    first: int | None = None


class Chosen(Section):
    """A run that was chosen."""

    point: str
    repeat: int


class Progress(Section):
    """What was chosen and why, and the time used: adaptive.json.

    A regret bound may be unknown (None).
    """

    model_config = ConfigDict(extra="forbid", frozen=False, validate_assignment=True)

    schema_version: int = 1
    seconds_used: float = 0.0
    chosen: list[Chosen] = Field(default_factory=list)
    regret_bounds: list[float | None] = Field(default_factory=list)
    told: list[str] = Field(default_factory=list)
    answer: str = ""
    last_bound: float | None = None


def conduct_adaptively(
    plan: Plan,
    runs: Sequence[Run],
    folder: CampaignFolder,
    bench: Bench,
    observer: Observer,
    *,
    advisor: Advisor,
    budget: Budget,
    clock: Callable[[], float] = time.monotonic,
) -> Summary:
    """Run a first design, then what the advisor requests, until the budget ends.

    Simulated drives bring their own `clock` (seconds).

    Raises:
        RunsFailedError: No run counts, or too many failed; the others are stored.
        DriveError: The drive has vanished; what was measured is stored.
        CampaignError: The folder cannot be written, or was begun with other points.
    """
    return _Adaptive(plan, runs, folder, bench, observer, advisor, budget, clock).conduct()


@dataclass
class _Adaptive:
    plan: Plan
    runs: Sequence[Run]
    folder: CampaignFolder
    bench: Bench
    observer: Observer
    advisor: Advisor
    budget: Budget
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._candidates: dict[str, Run] = {}
        for run in self.runs:
            self._candidates.setdefault(run.point.key, run)
        self._progress = _read(self.folder)
        self._used_before = self._progress.seconds_used
        self._began = self.clock()
        self._chosen = [self._run(number) for number in range(1, len(self._progress.chosen) + 1)]
        known = {
            run.number: record
            for run in self._chosen
            if (record := self.folder.record(run)) is not None
        }
        self._conductor = Conductor(
            self.plan, self.folder, self.bench, self.observer, known, len(self.runs)
        )
        powers = resting_powers(run.point for run in self.runs)
        self._last_seconds = len(powers) * self.plan.settle.baseline_seconds

    def conduct(self) -> Summary:
        conductor = self._conductor
        left = [run for run in self._chosen if not counts(conductor.known.get(run.number))]
        stopped: str | None = None
        end_reason = self._ended() or self._used_up(left)
        try:
            if end_reason is None:
                conductor.prepare()
                self._store()
                stopped, end_reason = self._all(left)
                conductor.finish()
                if conductor.measured():
                    self._ask()
                self._store()
        finally:
            conductor.write_measurements()
        words = ". ".join(part for part in (end_reason, self._progress.answer) if part)
        return conductor.summary(stopped, len(self._chosen), words, all_needed=False)

    def _all(self, left: Sequence[Run]) -> tuple[str | None, str | None]:
        """Why it had to stop, and why it ended."""
        while True:
            for run in left:
                stopped = self._conductor.must_stop()
                if stopped is not None:
                    return stopped, None
                end_reason = self._used_up([run])
                if end_reason is not None:
                    return None, end_reason
                total = len(self._conductor.known) + self._runs_left(run)
                self._conductor.make(run, total, self._seconds_left())
                self._store()
            for run in left:
                if self._used_up([run]) is None and self._conductor.ended(run):
                    self._conductor.repeat([run], len(self._conductor.known))
                    self._store()
            end_reason = self._ended()
            if end_reason is not None:
                return None, end_reason
            left = self._choose()
            if not left:
                return "every point that is asked for fails", None

    def _choose(self) -> list[Run]:
        points: Sequence[Point] = self._first() if not self._chosen else ()
        if not points:
            advice, failed = self._ask(), {point.key for point in self._failed()}
            points = [point for point in advice.points if point.key not in failed]
            self._progress.regret_bounds.append(self._progress.last_bound)
            self._progress.told.append(advice.why)
        begin = len(self._chosen)
        for point in points:
            if point.key not in self._candidates:
                raise CampaignError(
                    f"{self.folder.path}: the advisor asks for a point that the plan does not have"
                )
            repeat = sum(choice.point == point.key for choice in self._progress.chosen)
            self._progress.chosen.append(Chosen(point=point.key, repeat=repeat))
            self._chosen.append(self._run(len(self._progress.chosen)))
        self._store()
        return self._chosen[begin:]

    def _ask(self) -> Advice:
        advice = self.advisor.next_points(self._dataset(), self._failed())
        bound = advice.regret_bound
        self._progress.answer = advice.why
        self._progress.last_bound = bound if math.isfinite(bound) else None
        return advice

    def _first(self) -> list[Point]:
        points = [run.point for run in self._candidates.values()]
        count = self.budget.first
        if count is None:
            _, knobs = coordinates([point.configuration for point in points])
            count = FIRST_PER_KNOB * len(knobs) + FIRST_BESIDES
        chosen = space_filling(points, min(count, len(points)), self.plan.seed)
        return [points[place] for place in chosen]

    def _ended(self) -> str | None:
        """Whether the recommendation is good enough by now."""
        last = self._progress.regret_bounds[-SETTLED_TIMES:]
        low = [bound is not None and bound < self.budget.regret for bound in last]
        if len(low) == SETTLED_TIMES and all(low):
            return f"the recommendation is within {self.budget.regret:.1%} of the best"
        return None

    def _used_up(self, left: Sequence[Run]) -> str | None:
        run = left[0] if left else next(iter(self._candidates.values()))
        if run_seconds(self.plan, run) <= self._seconds_left():
            return None
        return f"the {self.budget.hours:g} hours are used up"

    def _dataset(self) -> Dataset:
        return Dataset.from_measurements(self._conductor.measured(), Provenance(importer="measure"))

    def _failed(self) -> list[Point]:
        """Points none of whose runs was ever good."""
        known = self._conductor.known
        done = {
            run.point.key
            for run in self._chosen
            if run.number in known and known[run.number].is_good
        }
        tried = {
            run.point.key: run.point for run in self._chosen if run.number in self._conductor.known
        }
        return [point for key, point in tried.items() if key not in done]

    def _run(self, number: int) -> Run:
        chosen = self._progress.chosen[number - 1]
        like = self._candidates.get(chosen.point)
        if like is None:
            raise CampaignError(
                f"{self.folder.path / ADAPTIVE_FILE}: run {number} measures a point that the plan "
                "does not have; the plan or the question was changed since"
            )
        return Run(number, like.sweep, like.point, chosen.repeat, like.seconds, like.ramp_seconds)

    def _seconds_left(self) -> float:
        """Of the budget, less what is measured after the last run."""
        return self.budget.hours * 3600.0 - self._seconds_used() - self._last_seconds

    def _seconds_used(self) -> float:
        return self._used_before + self.clock() - self._began

    def _runs_left(self, run: Run) -> int:
        return max(1, int(self._seconds_left() / run_seconds(self.plan, run)))

    def _store(self) -> None:
        self._progress.seconds_used = self._seconds_used()
        self.folder.write(ADAPTIVE_FILE, self._progress)


def _read(folder: CampaignFolder) -> Progress:
    if not (folder.path / ADAPTIVE_FILE).is_file():
        return Progress()
    return folder.read(ADAPTIVE_FILE, Progress)
