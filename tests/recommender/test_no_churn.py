"""Who follows an answer is not sent back and forth by the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.schema import Configuration
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import LEAST_SAVING_PERCENT, WorkloadProfile
from iojoule.recommender.response import Recommendation, Row

Ask = Callable[..., WorkloadProfile]

FREE = {"queue_depth": "all", "jobs": [1, 2, 4, 8], "power_state": "all",
        "engine": ["io_uring", "libaio"], "completion": "all"}  # fmt: skip
TODAY = {"queue_depth": 32, "jobs": 4}
POLLING = {"queue_depth": 8, "jobs": 4, "completion": "polled"}


def stated(configuration: Configuration) -> dict[str, Any]:
    return configuration.model_dump(mode="json", exclude_none=True)


def watts(row: Row) -> float:
    assert row.device_cpu_power_watts is not None
    return row.device_cpu_power_watts.value


@pytest.fixture
def answer(recommender: Recommender, ask: Ask) -> Callable[..., Recommendation]:
    def to(demand: float, latency: float, current: dict[str, Any], **parts: Any) -> Recommendation:
        return recommender.recommend(
            ask({"demand_operations_per_second": demand}, current=current, free=FREE,
                sla={"latency_p99_ns_max": latency}, **parts)
        )  # fmt: skip

    return to


@settings(deadline=None, max_examples=20)
@given(
    demand=st.floats(2e3, 2e5), latency=st.floats(4e5, 2e7),
    steps=st.lists(st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02)), max_size=6),
)  # fmt: skip
def test_small_changes_of_the_question_flip_nothing(
    recommender: Recommender, ask: Ask, demand: float, latency: float,
    steps: list[tuple[float, float]],
) -> None:  # fmt: skip
    """Demand and bound wander; whoever follows changes only for enough, or to keep the SLA."""

    def answer(current: dict[str, Any]) -> Recommendation:
        return recommender.recommend(
            ask({"demand_operations_per_second": demand}, current=current, free=FREE,
                sla={"latency_p99_ns_max": latency})
        )  # fmt: skip

    running = TODAY
    for by_demand, by_latency in [(0.0, 0.0), *steps]:
        demand, latency = demand * (1 + by_demand), latency * (1 + by_latency)
        found = answer(running)
        if found.recommended is None:
            return
        moved = stated(found.recommended.configuration) != stated(found.current.configuration)
        if moved and found.current.meets_sla:
            least = (1 - LEAST_SAVING_PERCENT / 100) * watts(found.current)
            assert watts(found.recommended) <= least * (1 + 1e-9)
        running = stated(found.recommended.configuration)
        again = answer(running)
        assert again.recommended is not None
        assert stated(again.recommended.configuration) == running, "the same question twice"


def test_what_saves_too_little_is_named_but_not_recommended(
    answer: Callable[..., Recommendation],
) -> None:
    free_to_change = answer(4e4, 5e6, POLLING)
    assert free_to_change.recommended is not None
    assert free_to_change.not_taken is None
    saving = 100 * (1 - watts(free_to_change.recommended) / watts(free_to_change.current))
    assert saving > LEAST_SAVING_PERCENT
    kept = answer(4e4, 5e6, POLLING, least_saving_percent=saving + 2)
    assert kept.recommended == kept.current
    assert kept.saving is not None
    assert kept.action == kept.saving.verdict == "no change"
    assert kept.not_taken is not None
    assert watts(kept.not_taken.row) == pytest.approx(watts(kept.pareto[0]))
    assert kept.not_taken.objective_saved_percent == pytest.approx(
        100 * (1 - watts(kept.pareto[0]) / watts(kept.current))
    )
    assert kept.not_taken.saving is not None
    assert kept.not_taken.saving.percent.low < kept.not_taken.saving.percent.value


def test_a_change_that_keeps_the_sla_needs_no_saving(
    answer: Callable[..., Recommendation],
) -> None:
    found = answer(
        1e5, 5e6, {"queue_depth": 1}, least_saving_percent=99, concurrency_max="unbounded"
    )
    assert not found.current.meets_sla
    assert found.recommended is not None
    assert found.recommended.meets_sla


def test_a_change_saves_with_a_probability_of_nine_in_ten(
    answer: Callable[..., Recommendation],
) -> None:
    seen = set()
    for current in ({"queue_depth": 4}, POLLING, {**TODAY, "engine": "spdk"}):
        found = answer(1e4, 5e6, current)
        saving = found.saving
        assert saving is not None
        seen.add(found.action)
        if found.action == "no change":
            assert saving.verdict == "no change"
            assert found.recommended == found.current
            assert (saving.percent.low, saving.percent.high) == (0.0, 0.0)
            if found.not_taken is not None:
                assert found.not_taken.saving is not None
        else:
            assert saving.probability >= 0.9
            # nobody measured the made-up drive
            assert saving.verdict == "expected"
    assert seen == {"change", "no change"}


def test_today_is_placed_beside_the_front(answer: Callable[..., Recommendation]) -> None:
    found = answer(4e4, 5e6, TODAY)

    def costs(row: Row) -> tuple[float, float, float]:
        assert row.latency_p99_ns is not None
        return watts(row), -row.capacity_bytes_per_second.value, row.latency_p99_ns.value

    here = costs(found.current)
    better = [
        index for index, row in enumerate(found.pareto)
        if all(a <= b for a, b in zip(costs(row), here, strict=True)) and costs(row) != here
    ]  # fmt: skip
    assert found.counts.shown == found.counts.on_front
    assert found.current_place.beaten_by_rows == better
    assert found.current_place.beaten_by == len(better)
    assert found.recommended is not None
    there = answer(4e4, 5e6, stated(found.pareto[0].configuration))
    assert there.current_place.on_front
    assert there.current_place.beaten_by == 0
