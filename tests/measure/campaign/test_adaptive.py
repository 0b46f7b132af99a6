"""A campaign that decides as it goes, without a drive: choosing, resuming, ending."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.store import Dataset, read_dataset
from iojoule.measure.campaign.adaptive import (
    ADAPTIVE_FILE,
    Advice,
    Budget,
    Progress,
    conduct_adaptively,
)
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    CampaignState,
    RunRecord,
    Status,
)
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.runs import Abilities, Run, expand, run_seconds, space_filling
from iojoule.measure.errors import CampaignError, RunsFailedError
from iojoule.measure.point import Point

PLAN = """
schema_version = 1
name = "p"
failures_in_a_row_max = 3
[run]
seconds = 10
ramp_seconds = 0
[settle]
baseline_seconds = 5
[[sweep]]
name = "s"
operation = "read"
request_bytes = ["4KiB", "8KiB", "16KiB", "32KiB"]
queue_depth = [1, 2, 4, 8]
"""
HOUR = 3600.0
PREPARATION = 1000.0


class ClockedBench:
    """Counts seconds; runs of the points in `broken` fail, and it dies at a number of runs."""

    def __init__(self, broken: set[str] | None = None, dies_at: int | None = None) -> None:
        self.broken = broken or set()
        self.dies_at = dies_at
        self.seconds = 0.0
        self.made: list[Run] = []

    def clock(self) -> float:
        return self.seconds

    def prepare(self, state: CampaignState, store: object) -> None:
        if not state.filled:
            self.seconds += PREPARATION
            state.filled = True
            store(state)  # type: ignore[operator]

    def before(self, run: Run, state: CampaignState, store: object) -> None: ...

    def finish(self, state: CampaignState, store: object) -> None:
        self.seconds += 5

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        if len(self.made) == self.dies_at:
            raise KeyboardInterrupt
        self.made.append(run)
        self.seconds += 12.5
        fails = run.point.key in self.broken
        seen = Observations(throughput_bytes_per_second=1e6, iops=5000)
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.FAILED if fails else Status.DONE,
            reason="the engine is missing" if fails else None,
            started_utc=datetime.now(UTC),
            wall_seconds=12.5,
            measurement=None
            if fails
            else Measurement(
                workload=run.point.workload,
                configuration=run.point.configuration,
                observations=seen,
            ),
        )


class Script:
    """An advisor that asks for what it was told, again and again, with these bounds."""

    def __init__(self, points: Sequence[Point], bounds: Sequence[float] = (1.0,)) -> None:
        self.points = tuple(points)
        self.bounds = list(bounds)
        self.asked: list[tuple[int, list[Point]]] = []

    def next_points(self, dataset: Dataset, failed: Sequence[Point]) -> Advice:
        self.asked.append((len(dataset), list(failed)))
        bound = self.bounds[min(len(self.asked), len(self.bounds)) - 1]
        return Advice(self.points, bound, f"advice {len(self.asked)}")


class Silent:
    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None:
        assert total > done
        assert seconds_left > 0

    def end(self, run: Run, record: RunRecord) -> None: ...


@pytest.fixture
def plan() -> Plan:
    return parse_plan(PLAN, "plan")


@pytest.fixture
def runs(plan: Plan) -> tuple[Run, ...]:
    return expand(plan, Abilities()).runs


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    one = CampaignFolder(tmp_path / "campaign")
    one.create(PLAN, CampaignOptions(drive="/dev/x", serial="S"))
    return one


def conducted(
    plan: Plan, folder: CampaignFolder, bench: ClockedBench, advisor: Script, budget: Budget
):
    runs = expand(plan, Abilities()).runs
    return conduct_adaptively(
        plan, runs, folder, bench, Silent(), advisor=advisor, budget=budget, clock=bench.clock
    )


def test_a_first_design_comes_before_advice_and_repeats_are_counted(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    bench, advisor = ClockedBench(), Script([runs[0].point])
    budget = Budget((PREPARATION + 8 * 12.5 + 10) / HOUR, first=4)
    found = conducted(plan, folder, bench, advisor, budget)
    assert found.done == len(bench.made) == 8
    assert "hours are used up" in found.explanation
    assert f"advice {len(advisor.asked)}" in found.explanation
    assert advisor.asked[-1][0] == 8, "the last words are on all runs"
    assert advisor.asked[0] == (4, [])
    assert [run.number for run in bench.made] == list(range(1, 9))
    asked = [run for run in bench.made if run.point == runs[0].point]
    assert [run.repeat for run in asked] == list(range(len(asked)))
    assert len(read_dataset(folder.path / "measurements")) == 8


def test_the_hours_hold_everything_from_filling_to_the_last_baseline(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    bench = ClockedBench()
    conducted(plan, folder, bench, Script([runs[0].point]), Budget(0.33))
    assert bench.seconds <= 0.33 * HOUR
    assert bench.seconds + run_seconds(plan, runs[0]) > 0.33 * HOUR
    assert folder.read(ADAPTIVE_FILE, Progress).seconds_used == pytest.approx(bench.seconds)


@pytest.mark.parametrize("dies_at", [0, 2, 5])
def test_an_interrupted_campaign_makes_what_was_chosen_before(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder, dies_at: int
) -> None:
    budget = Budget(0.33, first=4)
    dying = ClockedBench(dies_at=dies_at)
    with pytest.raises(KeyboardInterrupt):
        conducted(plan, folder, dying, Script([runs[3].point, runs[5].point]), budget)
    chosen = folder.read(ADAPTIVE_FILE, Progress).chosen
    assert len(chosen) > dies_at, "what is run was chosen and stored before"
    bench = ClockedBench()
    conducted(plan, folder, bench, Script([runs[1].point]), budget)
    first = [(run.number, run.point.key) for run in bench.made[: len(chosen) - dies_at]]
    stored = [(number, one.point) for number, one in enumerate(chosen, start=1)]
    assert first == stored[dies_at:]
    total = dying.seconds + bench.seconds
    assert total <= 0.33 * HOUR + 5, "the hours of the first attempt count"


def test_it_ends_when_the_bound_is_low_twice_in_a_row(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    advisor = Script([runs[0].point], bounds=[0.01, 0.5, 0.02, 0.02, 0.02])
    found = conducted(plan, folder, ClockedBench(), advisor, Budget(10, regret=0.03, first=4))
    assert len(folder.read(ADAPTIVE_FILE, Progress).regret_bounds) == 4
    assert "within 3.0% of the best" in found.explanation
    again = ClockedBench()
    conducted(plan, folder, again, advisor, Budget(10, regret=0.03, first=4))
    assert again.made == [], "what has ended stays ended"


def test_without_a_threshold_it_uses_its_hours(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    bench = ClockedBench()
    conducted(plan, folder, bench, Script([runs[0].point], bounds=[0.0]), Budget(0.33))
    assert bench.seconds > 0.325 * HOUR
    again = ClockedBench()
    conducted(plan, folder, again, Script([runs[0].point]), Budget(0.33))
    assert again.seconds == 0, "no hours are left, so the drive is not touched"


def test_a_point_whose_run_fails_is_told_and_not_made_again(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    broken = runs[2].point
    bench = ClockedBench(broken={broken.key})
    advisor = Script([runs[2].point, runs[0].point])
    found = conducted(plan, folder, bench, advisor, Budget(0.33, first=4))
    assert found.failed == 1
    assert "1 runs failed" in found.explanation
    assert "the engine is missing" in found.explanation
    assert sum(run.point == broken for run in bench.made) == 1
    assert advisor.asked[-1][1] == [broken]


def test_a_campaign_whose_every_run_fails_stops(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    bench = ClockedBench(broken={run.point.key for run in runs})
    with pytest.raises(RunsFailedError, match="3 runs in a row failed"):
        conducted(plan, folder, bench, Script([runs[0].point]), Budget(1))


def test_a_folder_that_was_begun_with_other_points_is_refused(
    plan: Plan, runs: tuple[Run, ...], folder: CampaignFolder
) -> None:
    bench = ClockedBench()
    conducted(plan, folder, bench, Script([runs[0].point]), Budget(0.32, first=4))
    other = parse_plan(PLAN.replace('"read"', '"write"'), "plan")
    with pytest.raises(CampaignError, match="measures a point that the plan does not have"):
        conducted(other, folder, bench, Script([]), Budget(1))


def test_the_first_design_spreads_over_every_knob(runs: tuple[Run, ...]) -> None:
    points = list({run.point.key: run.point for run in runs}.values())
    chosen = [points[place].configuration for place in space_filling(points, 8, seed=3)]
    assert len(set(chosen)) == 8
    assert {one.request_bytes for one in chosen} == {4096, 8192, 16384, 32768}
    assert len({one.queue_depth for one in chosen}) >= 3
    assert space_filling(points, 8, seed=3) == space_filling(points, 8, seed=3)
    assert sorted(space_filling(points, 20, seed=3))[:16] != [0] * 16
