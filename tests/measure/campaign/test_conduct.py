"""A campaign without a drive: order, resuming, failures, what is kept."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iojoule.datasets.schema import Measurement, Observations
from iojoule.datasets.store import read_dataset
from iojoule.datasets.verdict import Reason, ReasonCode, verdict_of
from iojoule.datasets.vocabulary import Verdict
from iojoule.measure.campaign.check import check, verdicts
from iojoule.measure.campaign.conduct import conduct
from iojoule.measure.campaign.folder import (
    CampaignFolder,
    CampaignOptions,
    CampaignState,
    IdleBaseline,
    RunRecord,
    Status,
)
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.runs import (
    UNKNOWN_WRITE_BYTES_PER_SECOND,
    Abilities,
    Run,
    cost,
    expand,
)
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


STALL = Reason(
    code=ReasonCode.STALL,
    verdict=Verdict.DOUBTFUL,
    value=2.0,
    limit=1.0,
    unit="s",
    said="no request was completed for 2 s",
    remedy="look at dmesg",
)


def baseline(watts: float) -> IdleBaseline:
    return IdleBaseline(
        mean_watts=watts, standard_error_watts=0, sd_watts=0, seconds=1, when_utc=""
    )


class FakeBench:
    """Makes runs of a drive that does what it is told; the runs in `broken` fail.

    Those in `doubtful` are, as often as it says; idle power is measured where `idle` holds levels.
    """

    def __init__(
        self,
        broken: set[int] | None = None,
        dies_at: int | None = None,
        doubtful: dict[int, int] | None = None,
        idle: list[float] | None = None,
    ) -> None:
        self.broken = broken or set()
        self.dies_at = dies_at
        self.doubtful = dict(doubtful or {})
        self.idle = list(idle or [])
        self.made: list[int] = []
        self.prepared = 0
        self.noise = 0.0

    def prepare(self, state: CampaignState, store: Callable[[CampaignState], None]) -> None:
        self.prepared += 1
        self.finish(state, store)

    def before(self, run: Run, state: CampaignState, store: object) -> None: ...

    def finish(self, state: CampaignState, store: object) -> None:
        if self.idle:
            level = self.idle.pop(0)
            state.idle.setdefault("0", []).append(baseline(level))

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        if run.number == self.dies_at:
            raise KeyboardInterrupt
        (folder / "raw").write_text("series")
        self.made.append(run.number)
        if run.point.writes:
            state.bytes_written += 1000
        fails = run.number in self.broken
        doubt = self.doubtful.get(run.number, 0)
        self.doubtful[run.number] = doubt - 1
        verdict = verdict_of([STALL] if doubt > 0 else [])
        rate = 1e6 * (1 + self.noise * run.repeat)
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.FAILED if fails else Status.DONE,
            reason="the meter is unplugged" if fails else None,
            verdict=None if fails else verdict,
            idle_bracket=len(state.idle_in(None, None)),
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
                judgement=verdict.judgement,
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


@pytest.mark.parametrize("version", ['"one"', "null", "[]", "1.5"])
def test_a_version_that_is_no_number_is_named(folder: CampaignFolder, version: str) -> None:
    file = folder.path / "campaign.json"
    file.write_text(file.read_text().replace('"schema_version": 1', f'"schema_version": {version}'))
    with pytest.raises(CampaignError, match="schema_version"):
        folder.options()


def test_a_plan_that_is_gone_or_damaged_is_named(folder: CampaignFolder) -> None:
    (folder.path / "plan.toml").write_bytes(b"\xff")
    with pytest.raises(CampaignError, match=r"plan\.toml: cannot be read"):
        folder.plan_text()
    (folder.path / "plan.toml").unlink()
    with pytest.raises(CampaignError, match=r"plan\.toml: cannot be read"):
        folder.plan_text()


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


class TestRepeats:
    def test_a_doubtful_run_is_made_again_after_the_others_and_both_attempts_are_kept(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        bench = FakeBench(doubtful={2: 1})
        found = campaign(plan, folder, bench)
        assert bench.made == [1, 2, 3, 4, 5, 6, 7, 8, 2]
        assert [(one.number, one.verdict.verdict) for one in found.repeats] == [(2, Verdict.GOOD)]
        assert [one.code for one in found.repeats[0].why.reasons] == [ReasonCode.STALL]
        earlier = folder.path / "attempts" / "00002-s.1"
        assert (earlier / "raw").exists()
        assert RunRecord.model_validate_json((earlier / "run.json").read_bytes()).attempt == 1
        assert [one.attempt for one in folder.records()] == [1, 2, 1, 1, 1, 1, 1, 1]
        rows = read_dataset(folder.path / "measurements").measurements()
        assert {one.judgement.verdict for one in rows} == {Verdict.GOOD}

    def test_a_run_is_repeated_twice_at_most_and_stays_doubtful(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        bench = FakeBench(doubtful={2: 9})
        found = campaign(plan, folder, bench)
        assert bench.made == [*range(1, 9), 2, 2]
        assert (found.done, found.doubtful) == (8, (2,))
        row = read_dataset(folder.path / "measurements").measurements()[1]
        assert row.judgement.verdict_reasons == "stall"

    @pytest.mark.parametrize(("most", "made"), [(0, []), (1, [2]), (None, [2, 3, 4])])
    def test_no_more_is_repeated_than_the_plan_says(
        self, plan: Plan, folder: CampaignFolder, most: int | None, made: list[int]
    ) -> None:
        bench = FakeBench(doubtful=dict.fromkeys((2, 3, 4, 5), 9))
        bounded = plan.model_copy(update={"repeats_of_doubtful_max": most})
        campaign(bounded, folder, bench)
        assert bench.made[8:] == made

    def test_resume_repeats_what_is_still_doubtful(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        campaign(plan, folder, FakeBench(doubtful={2: 9}))
        bench = FakeBench()
        assert campaign(plan, folder, bench).doubtful == ()
        assert bench.made == [2]
        assert [one.attempt for one in folder.records()][1] == 4

    def test_a_failed_run_is_repeated_too(self, plan: Plan, folder: CampaignFolder) -> None:
        bench = FakeBench(broken={5})
        with pytest.raises(RunsFailedError, match="run 5: the meter is unplugged"):
            campaign(plan, folder, bench)
        assert bench.made == [*range(1, 9), 5, 5]

    def test_runs_between_idle_levels_that_differ_are_doubtful_and_made_again_once_it_is_back(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        many = plan.model_copy(update={"repeats_of_doubtful_max": 8})
        bench = FakeBench(idle=[1.0, 1.1, 1.0, 1.0])
        found = campaign(many, folder, bench)
        assert bench.made == [*range(1, 9), *range(1, 9)]
        assert {one.code for each in found.repeats for one in each.why.reasons} == {
            ReasonCode.IDLE_DRIFT
        }
        assert found.doubtful == ()

    def test_nothing_is_repeated_while_idle_power_is_not_where_it_was(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        bench = FakeBench(idle=[1.0, 1.1, 1.1])
        found = campaign(plan, folder, bench)
        assert bench.made == list(range(1, 9))
        assert found.doubtful == tuple(range(1, 9))
        rows = read_dataset(folder.path / "measurements").measurements()
        assert {one.judgement.verdict_reasons for one in rows} == {"idle_drift"}

    def test_sequential_runs_are_repeated_before_the_drive_is_made_ready_for_random_ones(
        self, folder: CampaignFolder
    ) -> None:
        text = PLAN.replace("[[sweep]]", "[precondition]\nuntil_steady = true\n[[sweep]]")
        both = parse_plan(f'{text}pattern = ["random", "sequential"]\n', "plan")
        bench = FakeBench(doubtful={2: 1, 12: 1})
        campaign(both, folder, bench)
        assert bench.made == [*range(1, 9), 2, *range(9, 17), 12]

    def test_the_estimate_names_what_repeats_may_cost(self, plan: Plan) -> None:
        runs = expand(plan, Abilities()).runs
        price = cost(plan, runs, "unknown", 1 << 30, 1)
        none = cost(plan.model_copy(update={"repeats_of_doubtful_max": 0}), runs, "x", 1 << 30, 1)
        assert (price.repeats_max, none.repeats_max) == (3, 0)
        assert none.repeats_seconds_max == 0 < price.repeats_seconds_max
        assert price.seconds == none.seconds
        each = UNKNOWN_WRITE_BYTES_PER_SECOND * 1.0
        assert price.bytes_written_max - none.bytes_written_max == 3 * each


class TestCheck:
    def found(self, folder: CampaignFolder) -> str:
        return " | ".join(
            f"{one.what}; {one.why}; {one.advice}"
            for one in check(folder.records(), folder.state())
        )

    def test_stable_points_pass(self, plan: Plan, folder: CampaignFolder) -> None:
        campaign(plan, folder, FakeBench())
        assert self.found(folder) == ""

    def test_each_run_has_its_verdict(self, plan: Plan, folder: CampaignFolder) -> None:
        with pytest.raises(RunsFailedError):
            campaign(plan, folder, FakeBench(broken={5}, doubtful={2: 9}))
        listed = [(one.runs, one.verdict, one.code) for one in verdicts(folder.records())]
        assert listed == [
            ((5,), "failed", ""),
            ((2,), "doubtful", "stall"),
            ((1, 3, 4, 6, 7, 8), "good", ""),
        ]

    def test_records_of_an_older_iojoule_are_not_judged(
        self, plan: Plan, folder: CampaignFolder
    ) -> None:
        campaign(plan, folder, FakeBench())
        path = folder.path / "runs" / "00003-s" / "run.json"
        old = json.loads(path.read_text())
        for name in ("verdict", "attempt", "idle_bracket"):
            del old[name]
        del old["measurement"]["judgement"]
        path.write_text(json.dumps(old | {"schema_version": 1}))
        assert [one.verdict for one in verdicts(folder.records())] == ["good", "not judged"]
        bench = FakeBench()
        campaign(plan, folder, bench)
        assert bench.made == []

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
        levels = [baseline(watts) for watts in (1.0, 1.1)]
        folder.write("state.json", CampaignState(idle={"0": levels}))
        assert "idle power in state 0 changed by +10.0%" in self.found(folder)
