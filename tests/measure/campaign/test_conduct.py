"""A campaign without a drive: order, resuming, failures, what is kept."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.store import read_dataset
from iojoule.measure.campaign.check import check
from iojoule.measure.campaign.conduct import conduct
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    CampaignState,
    IdleBaseline,
)
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.points import Abilities, Run, expand
from iojoule.measure.campaign.record import RunRecord, Status
from iojoule.measure.errors import CampaignError, RunsFailedError

PLAN = """
schema_version = 1
name = "p"
failures_in_a_row_max = 3
[run]
seconds = 1
ramp_seconds = 0
[[sweep]]
name = "s"
operation = ["read", "write"]
request_bytes = "4KiB"
queue_depth = [1, 4]
"""


class FakeBench:
    """Makes runs of a drive that does what it is told; the runs in `broken` fail."""

    def __init__(self, broken: set[int] | None = None, dies_at: int | None = None) -> None:
        self.broken = broken or set()
        self.dies_at = dies_at
        self.made: list[int] = []
        self.prepared = 0
        self.noise = 0.0

    def prepare(self, state: CampaignState, store: Callable[[CampaignState], None]) -> None:
        self.prepared += 1

    def before(self, run: Run, state: CampaignState, store: object) -> None: ...

    def finish(self, state: CampaignState, store: object) -> None: ...

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        if run.number == self.dies_at:
            raise KeyboardInterrupt
        (folder / "raw").write_text("series")
        self.made.append(run.number)
        if run.point.writes:
            state.bytes_written += 1000
        fails = run.number in self.broken
        rate = 1e6 * (1 + self.noise * run.repeat)
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.FAILED if fails else Status.DONE,
            reason="the meter is unplugged" if fails else None,
            started_utc=datetime.now(UTC),
            wall_seconds=1.0,
            begin_monotonic_ns=0,
            end_monotonic_ns=10**9,
            measurement=None
            if fails
            else Measurement(
                workload=run.point.workload,
                configuration=run.point.configuration,
                observations=Observations(throughput_bytes_per_second=rate, iops=5000),
            ),
        )


class Silent:
    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None: ...

    def end(self, run: Run, record: RunRecord) -> None: ...


@pytest.fixture
def plan() -> Plan:
    return parse_plan(PLAN, "plan")


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    one = CampaignFolder(tmp_path / "campaign")
    one.create(PLAN, CampaignOptions(drive="/dev/x", serial="S"))
    return one


def campaign(plan: Plan, folder: CampaignFolder, bench: FakeBench):
    return conduct(plan, expand(plan, Abilities()).runs, folder, bench, Silent())


def test_every_run_is_made_once_and_becomes_a_row(plan: Plan, folder: CampaignFolder) -> None:
    bench = FakeBench()
    assert campaign(plan, folder, bench).done == 8
    assert bench.made == list(range(1, 9))
    assert len(read_dataset(folder.path / "measurements")) == 8
    assert (folder.path / "runs" / "00001-s" / "raw").exists()
    again = FakeBench()
    assert campaign(plan, folder, again).done == 8
    assert again.made == []
    assert again.prepared == 0


def test_an_interrupted_campaign_goes_on_at_the_run_that_was_interrupted(
    plan: Plan, folder: CampaignFolder
) -> None:
    with pytest.raises(KeyboardInterrupt):
        campaign(plan, folder, FakeBench(dies_at=4))
    assert len(read_dataset(folder.path / "measurements")) == 3, "nothing measured is lost"
    bench = FakeBench()
    campaign(plan, folder, bench)
    assert bench.made == [4, 5, 6, 7, 8]


def test_failed_runs_are_named_and_made_again(plan: Plan, folder: CampaignFolder) -> None:
    with pytest.raises(RunsFailedError, match="runs 2, 5: the meter is unplugged"):
        campaign(plan, folder, FakeBench(broken={2, 5}))
    assert len(read_dataset(folder.path / "measurements")) == 6
    bench = FakeBench()
    campaign(plan, folder, bench)
    assert bench.made == [2, 5]


def test_failures_in_a_row_end_the_campaign(plan: Plan, folder: CampaignFolder) -> None:
    bench = FakeBench(broken=set(range(2, 9)))
    with pytest.raises(RunsFailedError, match="3 runs in a row failed"):
        campaign(plan, folder, bench)
    assert bench.made == [1, 2, 3, 4]


def test_no_more_is_written_than_the_plan_allows(plan: Plan, folder: CampaignFolder) -> None:
    bounded = plan.model_copy(update={"bytes_written_max": 2000})
    with pytest.raises(RunsFailedError, match="allows 2,000 bytes"):
        campaign(bounded, folder, FakeBench())
    assert folder.state().bytes_written == 2000


def test_a_folder_in_use_is_refused(plan: Plan, folder: CampaignFolder, tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="measure resume"):
        folder.create(PLAN, CampaignOptions(drive="/dev/x", serial="S"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(CampaignError, match="is not empty"):
        CampaignFolder(tmp_path / "full").create(PLAN, CampaignOptions(drive="x", serial="S"))
    with pytest.raises(CampaignError, match="holds no campaign"):
        CampaignFolder(tmp_path).options()


def test_a_damaged_record_is_named(plan: Plan, folder: CampaignFolder) -> None:
    campaign(plan, folder, FakeBench())
    (folder.path / "runs" / "00003-s" / "run.json").write_text("{")
    with pytest.raises(CampaignError, match=r"00003-s/run\.json"):
        campaign(plan, folder, FakeBench())


class TestCheck:
    def found(self, folder: CampaignFolder) -> str:
        return " | ".join(
            f"{one.what}; {one.why}; {one.advice}"
            for one in check(folder.records(), folder.state())
        )

    def test_stable_points_pass(self, plan: Plan, folder: CampaignFolder) -> None:
        campaign(plan, folder, FakeBench())
        assert self.found(folder) == ""

    def test_scatter_is_named_with_the_repeats_that_would_mend_it(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        bench = FakeBench()
        bench.noise = 0.1
        campaign(plan, folder, bench)
        found = self.found(folder)
        assert "throughput is known within 30% only (2 repeats)" in found
        assert "repeat it about 7 times in all" in found

    def test_drift_of_idle_power_is_named(self, plan: Plan, folder: CampaignFolder) -> None:
        campaign(plan, folder, FakeBench())
        levels = [
            IdleBaseline(
                mean_watts=watts, standard_error_watts=0, sd_watts=0, seconds=1, when_utc=""
            )
            for watts in (1.0, 1.1)
        ]
        folder.write("state.json", CampaignState(idle={"0": levels}))
        assert "idle power in state 0 changed by +10.0%" in self.found(folder)
