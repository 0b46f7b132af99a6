"""Advice on a drive that obeys formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Workload
from iojoule.recommender.adaptive.advisor import CandidateAdvisor
from iojoule.recommender.adaptive.aims import Aims, Candidate, tempered
from iojoule.recommender.request import WorkloadProfile, parse_workload
from tests.recommender.adaptive.analytic import candidates, measured, truth

EVERY = candidates()


def question(**sla: float) -> WorkloadProfile:
    return parse_workload(
        {
            "workload": {
                "operation": "read",
                "useful_request_bytes": 4096,
                "request_bytes_coalescible": 16384,
            },
            "sla": sla or {"latency_p99_ns_max": 500_000.0},
        }
    )


def true_costs(asked: WorkloadProfile) -> tuple[np.ndarray, np.ndarray]:
    seen = [truth(one.configuration) for one in EVERY]
    useful = [min(one.configuration.request_bytes, 16384) for one in EVERY]
    cost = [
        1e9 * (row["device_power_watts"] + row["cpu_power_watts"]) / (row["iops"] * size)
        for row, size in zip(seen, useful, strict=True)
    ]
    kept = [
        all(row[name.removesuffix("_max")] <= bound for name, bound in asked.sla.bounds().items())
        for row in seen
    ]
    return np.array(cost), np.array(kept)


def campaign(asked: WorkloadProfile, runs: int, seed: int) -> tuple[float, float, list[Candidate]]:
    """Regret and its bound after so many runs, and what was measured."""
    source = np.random.default_rng(seed)
    advisor = CandidateAdvisor(asked, EVERY, seed=seed)
    made = [EVERY[row] for row in source.choice(len(EVERY), 12, replace=False)]
    dataset = measured(made, np.random.default_rng(seed))
    while True:
        proposal = advisor.propose(dataset)
        assert proposal is not None
        if len(made) >= runs:
            break
        made += proposal.candidates
        dataset = measured(made, np.random.default_rng(seed))
    costs, kept = true_costs(asked)
    row = proposal.choice.row
    regret = costs[row] / costs[kept].min() - 1 if kept[row] else 1.0
    return float(regret), proposal.regret_bound, made


@pytest.mark.parametrize("seed", [1, 2])
def test_a_few_runs_find_the_best_of_all_candidates(seed: int) -> None:
    regret, bound, made = campaign(question(), 32, seed)
    assert len(EVERY) == 140
    assert regret <= 0.03
    assert bound < 0.15
    near = [one for one in made[12:] if truth(one.configuration)["latency_p99_ns"] < 2_000_000]
    assert len(near) > 12, "most runs are made where the answer is"


def test_predicted_cost_is_in_joules_per_useful_gb() -> None:
    asked = question()
    dataset = measured(EVERY, np.random.default_rng(1), noise=0.001)
    choice = CandidateAdvisor(asked, EVERY).choose(dataset)
    assert choice is not None
    assert choice.feasible
    costs, kept = true_costs(asked)
    assert choice.cost == pytest.approx(costs[choice.row], rel=0.02)
    assert costs[choice.row] == pytest.approx(costs[kept].min(), rel=0.02)


def test_an_sla_that_nothing_keeps_is_said() -> None:
    asked = question(latency_p99_ns_max=1000.0)
    found = CandidateAdvisor(asked, EVERY).propose(measured(EVERY[::5], np.random.default_rng(1)))
    assert found is not None
    assert not found.choice.feasible
    assert "none is sure enough" in found.why


def test_candidates_whose_runs_fail_are_not_proposed() -> None:
    dataset = measured(EVERY[::7], np.random.default_rng(1))
    advisor = CandidateAdvisor(question(), EVERY)
    first = advisor.propose(dataset)
    assert first is not None
    second = advisor.propose(dataset, avoid=first.candidates)
    assert second is not None
    assert not {one.key for one in first.candidates} & {one.key for one in second.candidates}


def test_a_run_that_takes_longer_is_worth_less_by_the_hour() -> None:
    dataset = measured(EVERY[::7], np.random.default_rng(1))
    first = CandidateAdvisor(question(), EVERY).propose(dataset)
    assert first is not None
    wanted = first.candidates[0]
    dear = [
        Candidate(one.workload, one.configuration, 1e5 if one.key == wanted.key else one.seconds)
        for one in EVERY
    ]
    second = CandidateAdvisor(question(), dear).propose(dataset)
    assert second is not None
    assert wanted.key not in {one.key for one in second.candidates}


def test_the_same_measurements_give_the_same_advice() -> None:
    dataset = measured(EVERY[::7], np.random.default_rng(1))
    said = [CandidateAdvisor(question(), EVERY).propose(dataset) for _ in range(2)]
    assert said[0] == said[1]


def test_too_few_runs_say_nothing() -> None:
    dataset = measured(EVERY[:3], np.random.default_rng(1))
    assert CandidateAdvisor(question(), EVERY).propose(dataset) is None


def test_power_that_nobody_measured_is_named() -> None:
    dataset = measured(EVERY[::7], np.random.default_rng(1))
    asked = question().model_copy(update={"scope": "system"})
    with pytest.raises(InputError, match="no run measured watts"):
        CandidateAdvisor(asked, EVERY).propose(dataset)


def test_beyond_the_joint_limit_the_best_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(4).choice(len(EVERY), 40, replace=False)
    dataset = measured([EVERY[row] for row in rows], np.random.default_rng(1))
    full = CandidateAdvisor(question(), EVERY).propose(dataset)
    monkeypatch.setattr("iojoule.recommender.adaptive.advisor.JOINT_MAX", 60)
    some = CandidateAdvisor(question(), EVERY).propose(dataset)
    assert full is not None
    assert some is not None
    assert some.choice == full.choice
    assert some.regret_bound == pytest.approx(full.regret_bound, abs=0.05)


class TestAims:
    def aims(self, workload: dict[str, Any], **more: Any) -> Aims:
        asked = parse_workload({"workload": {"operation": "read", **workload}, **more})
        return Aims(asked, EVERY)

    def test_a_demand_is_watts_and_must_be_carried(self) -> None:
        demand = {"useful_request_bytes": 4096, "demand_bytes_per_second": 4096e4}
        found = self.aims(demand)
        assert found.outputs == ("watts", "demand")
        (bound,) = found.bounds
        assert bound.missed(0.99e4, 0) < 0 < bound.missed(0.97e4, 0)

    def test_requests_that_cannot_be_enlarged_waste_the_rest(self) -> None:
        found = self.aims({"useful_request_bytes": 4096})
        assert set(found.useful_bytes) == {4096.0}
        assert set(self.aims({}).useful_bytes) == {4096.0 * 2**size for size in range(5)}

    def test_least_operations_count_useful_ones(self) -> None:
        useful = {"useful_request_bytes": 4096, "request_bytes_coalescible": 16384}
        (bound,) = self.aims(useful, sla={"iops_min": 1000.0}).bounds
        limits = {
            one.configuration.request_bytes: limit
            for one, limit in zip(EVERY, bound.limits, strict=True)
        }
        assert limits == {4096: 1000, 8192: 500, 16384: 250, 32768: 250, 65536: 250}

    def test_energy_delay_is_watts_over_rate_times_latency(self) -> None:
        found = self.aims({}, objective="edp")
        one = truth(EVERY[0].configuration)
        watts = one["device_power_watts"] + one["cpu_power_watts"]
        _, values = found.observed(measured(EVERY[:1], np.random.default_rng(1), noise=0.0))
        cost = np.exp(found.log_costs(values.T[:, [0]], np.array([0])))
        expected = watts / one["iops"] * one["latency_mean_ns"] * 1e-9
        assert cost == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"objective": "watts"}, "state a demand"),
            (
                {
                    "workload": {"operation": "read", "demand_operations_per_second": 1e4},
                    "sla": {"iops_min": 2e4},
                },
                "more than the demand",
            ),
        ],
    )
    def test_what_such_runs_cannot_tell_is_refused(
        self, asked: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            Aims(parse_workload({"workload": {"operation": "read"}, **asked}), EVERY)

    def test_no_candidate_is_refused(self) -> None:
        with pytest.raises(InputError, match="no point of the plan"):
            Aims(question(), [])

    def test_rows_of_other_points_are_left_out(self) -> None:
        writes = candidates(Workload.model_validate({"operation": "write"}))[:3]
        dataset = measured([*writes, *EVERY[:2]], np.random.default_rng(1))
        rows, values = Aims(question(), EVERY).observed(dataset)
        assert rows.tolist() == [0, 1]
        assert values.shape == (2, 3)


def test_far_from_a_bound_distances_are_tempered() -> None:
    assert tempered(0.5) == 0.5
    assert tempered(-0.5) == -0.5
    assert tempered(np.e) == pytest.approx(2.0)
    assert tempered(-np.e) == pytest.approx(-2.0)
    steps = np.array([tempered(each) for each in np.linspace(-9, 9, 181)])
    assert np.all(np.diff(steps) > 0)
