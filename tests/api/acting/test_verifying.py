"""A verification is a campaign of pairs: what it plans, in which order it runs, when it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iojoule.api.acting.answer_file import Answer
from iojoule.api.acting.paired_saving import Trial
from iojoule.api.acting.verifying import (
    Verification,
    Work,
    conduct_pairs,
    plan_text,
    require_meters,
    verification,
)
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Measurement, Observations
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions, RunRecord, Status
from iojoule.measure.campaign.plan import Plan, parse_plan
from iojoule.measure.campaign.runs import Abilities, Run, expand
from iojoule.measure.errors import RunsFailedError, SensorError
from iojoule.recommender.request import Scope, WorkloadProfile, parse_workload
from tests.api.acting.answers import answer
from tests.errors import having

TRIAL = Trial(pairs_max=8)
READS = {"operation": "read", "useful_request_bytes": 4096}
DEEPER = {"queue_depth": 16}


def question(**workload: Any) -> WorkloadProfile:
    return parse_workload({"workload": READS | workload})


def planned(found: Answer, asked: WorkloadProfile, *, power_states: bool = True) -> Plan:
    text = plan_text(found, asked, TRIAL, seconds=30, ramp_seconds=5, power_states=power_states)
    return parse_plan(text, "plan.toml")


def knobs(plan: Plan) -> list[dict[str, Any]]:
    return [{name: one.values[0] for name, one in sweep.knobs.items()} for sweep in plan.sweep]


class TestThePlan:
    def test_the_two_sweeps_differ_in_what_was_recommended(self) -> None:
        before, after = knobs(planned(answer(DEEPER), question()))
        assert {name for name in before if before[name] != after[name]} == {"queue_depth"}
        assert after["queue_depth"] == 16

    def test_both_serve_the_same_demand_of_useful_bytes(self) -> None:
        asked = question(demand_operations_per_second=1000.0, request_bytes_coalescible=8192)
        before, after = knobs(planned(answer({"request_bytes": 16384}), asked))
        assert before["demand_bytes_per_second"] == 4096e3
        # of 16 KiB only 8 are of use
        assert after["demand_bytes_per_second"] == 2 * 4096e3

    def test_power_states_are_left_alone_where_nothing_is_to_be_set(self) -> None:
        assert "power_state" not in knobs(planned(answer(), question(), power_states=False))[0]

    def test_what_cannot_be_switched_between_runs_is_refused(self) -> None:
        with pytest.raises(InputError, check=having(field="filesystem")):
            planned(answer({"filesystem": "xfs"}), question())
        with pytest.raises(InputError, check=having(field="power_state")):
            planned(answer({"power_state": 1}), question(), power_states=False)


class PoweredBench:
    """Runs whose watts wander slowly, on a simulated clock; the change saves a share of them."""

    def __init__(self, saving: float, *, seed: int = 1, fail: frozenset[int] = frozenset()) -> None:
        self.saving, self.fail = saving, fail
        self.source = np.random.default_rng(seed)
        self.clock = datetime(2025, 1, 1, tzinfo=UTC)
        self.wander = 0.0
        self.order: list[str] = []

    def prepare(self, state: object, store: object) -> None: ...

    def before(self, run: Run, state: object, store: object) -> None: ...

    def finish(self, state: object, store: object) -> None: ...

    def begin(self, run: Run, done: int, total: int, seconds_left: float) -> None: ...

    def end(self, run: Run, record: RunRecord) -> None: ...

    def perform(self, run: Run, folder: Path, state: object) -> RunRecord:
        self.clock += timedelta(seconds=36)
        self.order.append(run.sweep)
        failed = run.number in self.fail
        self.wander = 0.9 * self.wander + self.source.normal(0, 0.01)
        share = 1 - self.saving if run.sweep == "after" else 1.0
        observed = Observations(
            throughput_bytes_per_second=4e6,
            latency_p99_ns=1e6 * (1 + self.source.normal(0, 0.01)),
            device_power_watts=4 * share * (1 + self.wander) * (1 + self.source.normal(0, 0.003)),
        )
        measured = Measurement(
            workload=run.point.workload,
            configuration=run.point.configuration,
            observations=observed,
        )
        return RunRecord(
            number=run.number,
            sweep=run.sweep,
            repeat=run.repeat,
            point=run.point.key,
            status=Status.FAILED if failed else Status.DONE,
            reason="a sensor stalled" if failed else None,
            started_utc=self.clock,
            wall_seconds=36.0,
            begin_monotonic_ns=0,
            end_monotonic_ns=30 * 10**9,
            measurement=None if failed else measured,
        )


def carried_out(
    folder: Path,
    bench: PoweredBench,
    found: Answer | None = None,
    asked: WorkloadProfile | None = None,
    trial: Trial = TRIAL,
) -> Verification:
    found, asked = found or answer(DEEPER), asked or question()
    text = plan_text(found, asked, trial, seconds=30, ramp_seconds=5, power_states=False)
    plan = parse_plan(text, "plan.toml")
    campaign = CampaignFolder(folder)
    if not campaign.exists:
        campaign.create(text, CampaignOptions(drive="/dev/x", serial="S"))
    work = Work(asked, Scope.DEVICE)
    conduct_pairs(trial, work)(plan, expand(plan, Abilities()).runs, campaign, bench, bench)  # type: ignore[arg-type]
    return verification(campaign.records(), found, trial, work)


class TestTheCampaign:
    def test_it_ends_as_soon_as_a_saving_is_clear(self, tmp_path: Path) -> None:
        bench = PoweredBench(0.2)
        found = carried_out(tmp_path, bench)
        assert (found.verdict, found.pairs, len(bench.order)) == ("proven", 4, 8)
        assert found.saving == pytest.approx(0.2, abs=0.02)
        assert found.holds

    def test_pairs_are_of_both_and_in_both_orders(self, tmp_path: Path) -> None:
        bench = PoweredBench(0.0)
        carried_out(tmp_path, bench)
        pairs = [tuple(bench.order[at : at + 2]) for at in range(0, 16, 2)]
        assert sorted(set(pairs)) == [("after", "before"), ("before", "after")]
        assert pairs.count(("after", "before")) == 4

    def test_without_a_change_it_makes_all_pairs_and_claims_nothing(self, tmp_path: Path) -> None:
        found = carried_out(tmp_path, PoweredBench(0.0))
        assert (found.verdict, found.pairs, found.holds) == ("not proven", 8, False)

    def test_a_failed_run_costs_its_pair(self, tmp_path: Path) -> None:
        found = carried_out(tmp_path, PoweredBench(0.0, fail=frozenset({1, 4})))
        assert found.pairs == 6

    def test_runs_that_always_fail_end_it_and_it_is_gone_on_with(self, tmp_path: Path) -> None:
        with pytest.raises(RunsFailedError, match="3 runs in a row failed"):
            carried_out(tmp_path, PoweredBench(0.0, fail=frozenset(range(99))))
        bench = PoweredBench(0.2)
        assert carried_out(tmp_path, bench).verdict == "proven"
        again = PoweredBench(0.2)
        assert carried_out(tmp_path, again).verdict == "proven"
        assert again.order == [], "what is done is not made again"

    def test_the_sla_is_held_against_the_runs_with_the_change(self, tmp_path: Path) -> None:
        sla = {"latency_p99_ns_max": 0.5e6, "latency_mean_ns_max": 1e6, "device_power_watts_max": 9}
        found = carried_out(tmp_path, PoweredBench(0.2), answer(DEEPER, sla=sla))
        assert {one.bound: one.kept for one in found.bounds} == {
            "latency_p99_ns_max": "no",
            "latency_mean_ns_max": "not measured",
            "device_power_watts_max": "yes",
        }
        assert not found.holds, "a saving that breaks the SLA is none"

    def test_a_demand_that_is_not_served_is_no_equal_work(self, tmp_path: Path) -> None:
        asked = question(demand_bytes_per_second=8e6)
        found = answer(DEEPER, demand_bytes_per_second=8e6)
        [check] = carried_out(tmp_path, PoweredBench(0.2), found, asked).bounds
        assert (check.bound, check.kept) == ("demand_bytes_per_second", "no")


@pytest.mark.slow
def test_of_200_campaigns_without_a_change_at_most_5_percent_claim_a_saving(tmp_path: Path) -> None:
    trial = Trial(pairs_max=6)
    found = [
        carried_out(tmp_path / str(seed), PoweredBench(0.0, seed=seed), trial=trial)
        for seed in range(200)
    ]
    assert sum(one.holds for one in found) <= 10
    assert {one.pairs for one in found} <= set(trial.looks)


def test_a_meter_for_every_part_of_the_scope_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="needs a meter for device and cpu"):
        require_meters(Scope.DEVICE_CPU, [])
