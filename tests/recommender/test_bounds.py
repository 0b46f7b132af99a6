"""What bounds cost: relaxing one never makes anything worse, and what is said is found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.recommender import space
from iojoule.recommender.evaluate import DEMAND
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import BoundSlack, BoundStep, Recommendation, Row
from iojoule.recommender.select import NOTICEABLE_PERCENT

Ask = Callable[..., WorkloadProfile]

FREE = {"queue_depth": "all", "jobs": [1, 2, 4, 8], "power_state": "all",
        "engine": ["io_uring", "libaio"]}  # fmt: skip
TODAY = {"queue_depth": 32, "jobs": 8}
LIMITS = st.fixed_dictionaries(
    {}, optional={
        "latency_p99_ns_max": st.floats(3e5, 5e6),
        "iops_min": st.floats(2e4, 4e5),
        "device_power_watts_max": st.floats(2.5, 6.0),
    },
)  # fmt: skip


def asked(recommender: Recommender, ask: Ask, sla: dict[str, Any], **parts: Any) -> Recommendation:
    workload = {"demand_operations_per_second": 3e4, "arrival_process": "poisson"}
    return recommender.recommend(ask(workload, current=TODAY, free=FREE, sla=sla, **parts))


def least(answer: Recommendation) -> float:
    def watts(row: Row) -> float:
        assert row.device_cpu_power_watts is not None
        return row.device_cpu_power_watts.value

    rows = [*answer.pareto, *([answer.current] if answer.current.meets_sla else [])]
    return min(map(watts, rows))


def by_name(answer: Recommendation) -> dict[str, BoundSlack]:
    return {one.bound: one for one in answer.bounds}


def change(step: BoundStep | None) -> float:
    assert step is not None
    return float("inf") if step.objective_change_percent is None else step.objective_change_percent


@settings(deadline=None, max_examples=30)
@given(sla=LIMITS)
def test_relaxing_never_costs_and_tightening_never_brings(
    recommender: Recommender, ask: Ask, sla: dict[str, float]
) -> None:
    answer = asked(recommender, ask, sla)
    assert {one.bound for one in answer.bounds} == (
        set() if answer.recommended is None else {*sla, "demand_bytes_per_second"}
    )
    for one in answer.bounds:
        assert one.slack_percent is not None
        assert one.slack_percent >= -1e-9
        if one.bound not in sla:
            assert (one.binds, one.looser, one.tighter, one.without) == (None,) * 4
            continue
        assert change(one.without) <= change(one.looser) <= 0.0 <= change(one.tighter)
        assert one.binds == (change(one.without) < -NOTICEABLE_PERCENT)


@pytest.mark.parametrize(
    "sla",
    [
        {"latency_p99_ns_max": 5e5},
        {"latency_p99_ns_max": 1.2e6, "iops_min": 3e5},
        {"latency_p99_ns_max": 9e5, "device_power_watts_max": 3.2, "confidence": 0.8},
    ],
)
def test_a_step_is_what_the_changed_question_answers(
    recommender: Recommender, ask: Ask, sla: dict[str, float]
) -> None:
    answer = asked(recommender, ask, sla)
    assert answer.recommended is not None
    now = least(answer)
    for name in sla.keys() - {"confidence"}:
        one = by_name(answer)[name]
        for step in (one.looser, one.tighter, one.without):
            assert step is not None
            changed = {key: value for key, value in sla.items() if key != name}
            if step.limit is not None:
                changed[name] = step.limit
            other = asked(recommender, ask, changed)
            if step.objective_change_percent is None:
                assert other.recommended is None
            else:
                assert step.objective_change_percent == pytest.approx(
                    100 * (least(other) / now - 1),
                    abs=3e-7,  # costs are compared to 1e-9
                )
                assert step.saves_percent is not None
                assert step.saves_percent.value == pytest.approx(-step.objective_change_percent)


def test_the_slack_is_that_of_the_recommended_row_at_its_confidence(
    recommender: Recommender, ask: Ask
) -> None:
    answer = asked(recommender, ask, {"latency_p99_ns_max": 1e6, "confidence": 0.95})
    assert answer.recommended is not None
    assert answer.recommended.latency_p99_ns is not None
    one = by_name(answer)["latency_p99_ns_max"]
    # one-sided 95 % is the edge of the two-sided 90 % interval
    assert one.reached == pytest.approx(answer.recommended.latency_p99_ns.high)
    assert one.slack_percent == pytest.approx(100 * (1 - one.reached / 1e6))


def test_wear_without_writes_leaves_any_slack(recommender: Recommender, ask: Ask) -> None:
    one = by_name(asked(recommender, ask, {"endurance_years_min": 5.0}))["endurance_years_min"]
    assert (one.reached, one.slack_percent, one.binds) == (None, None, False)


def test_a_preferred_bound_has_its_price_too(recommender: Recommender, ask: Ask) -> None:
    sla = {"latency_p99_ns_max": 5e5, "soft": ["latency_p99_ns_max"]}
    one = by_name(asked(recommender, ask, sla))["latency_p99_ns_max"]
    assert one.preferred
    free = asked(recommender, ask, {})
    bound = asked(recommender, ask, {"latency_p99_ns_max": 5e5})
    expected = 100 * (least(free) / least(bound) - 1)
    assert change(one.without) == pytest.approx(expected)


def test_blocks_do_not_change_the_prices(
    recommender: Recommender, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    sla = {"latency_p99_ns_max": 9e5, "iops_min": 1e5}
    whole = asked(recommender, ask, sla)
    monkeypatch.setattr(space.Candidates.blocks, "__defaults__", (50,))
    assert asked(recommender, ask, sla).bounds == whole.bounds


@pytest.mark.parametrize(
    "sla",
    [
        {"latency_p99_ns_max": 1e5},
        {"latency_p99_ns_max": 1.5e5, "iops_min": 1e5},
        {"iops_min": 3e7},
    ],
)
def test_relaxing_so_far_is_enough_and_less_is_not(
    recommender: Recommender, ask: Ask, sla: dict[str, float]
) -> None:
    answer = asked(recommender, ask, sla)
    assert answer.recommended is None
    assert answer.bounds == []
    assert answer.relaxations
    assert [one.by_percent for one in answer.relaxations] == sorted(
        one.by_percent for one in answer.relaxations
    )
    for one in answer.relaxations:
        if one.bound == DEMAND:
            continue  # another question: below
        wider = 1e-6 if one.bound.endswith("_max") else -1e-6
        enough = asked(recommender, ask, sla | {one.bound: one.needed * (1 + wider)})
        assert enough.recommended is not None
        assert asked(recommender, ask, sla | {one.bound: one.needed * (1 - wider)}).bounds == []


def test_where_no_bound_is_enough_alone_none_is_named(recommender: Recommender, ask: Ask) -> None:
    answer = asked(recommender, ask, {"latency_mean_ns_max": 1e4, "iops_min": 3e7})
    assert answer.recommended is None
    assert answer.relaxations == []
    assert answer.nearest_misses


@pytest.mark.parametrize("sla", [{}, {"latency_p99_ns_max": 1e6}, {"latency_mean_ns_max": 2e5}])
def test_the_demand_that_can_be_carried_is_said(
    recommender: Recommender, ask: Ask, sla: dict[str, float]
) -> None:
    """Under bounds of latency too, which no configuration keeps at the demand that is asked."""

    def at(demand: dict[str, float]) -> Recommendation:
        return recommender.recommend(ask(demand, current=TODAY, free=FREE, sla=sla))

    (one,) = at({"demand_operations_per_second": 3e7}).relaxations
    assert one.bound == DEMAND
    assert at({DEMAND: 0.999 * one.needed}).recommended is not None
    assert at({DEMAND: 1.002 * one.needed + 0.001 * one.limit}).recommended is None
