"""What each knob brings adds up to the saving, and leads only through what can exist."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.schema import Configuration
from iojoule.recommender.explain import TOO_MANY, alone, fair_weights, last
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import Attribution, KnobEffect, Recommendation

Ask = Callable[..., WorkloadProfile]

FREE = {"queue_depth": "all", "jobs": [1, 2, 4], "engine": ["io_uring", "libaio"],
        "power_state": "all", "completion": "all", "scheduler": "all"}  # fmt: skip
SPENDTHRIFT = {"queue_depth": 8, "jobs": 4, "scheduler": "kyber", "completion": "polled"}
SHALLOW = {"queue_depth": 1, "jobs": 1, "scheduler": "kyber", "completion": "polled"}
ANYTHING = {"least_saving_percent": 0, "concurrency_max": "unbounded"}


@settings(deadline=None, max_examples=50)
@given(players=st.integers(1, 5), data=st.data())
def test_fair_shares_are_the_mean_over_the_orders_that_exist(players: int, data: Any) -> None:
    count = 1 << players
    exists = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    exists[[0, -1]] = True
    energy = np.random.default_rng(players).uniform(1, 2, count)
    brought = []
    for order in permutations(range(players)):
        masks = np.cumsum([0, *(1 << one for one in order)])
        if exists[masks].all():
            by_player = np.zeros(players)
            by_player[list(order)] = energy[masks[:-1]] - energy[masks[1:]]
            brought.append(by_player)
    found = fair_weights(players, exists)
    if not brought:
        assert found is None
        return
    assert found is not None
    weights, orders = found
    assert orders == len(brought)
    assert weights @ energy == pytest.approx(np.mean(brought, axis=0))
    assert (weights @ energy).sum() == pytest.approx(energy[0] - energy[-1])
    assert (weights[:, ~exists] == 0).all()


def test_with_everything_possible_the_weights_are_those_of_shapley() -> None:
    weights, orders = fair_weights(4, np.ones(16, dtype=bool)) or (np.zeros(0), 0)
    assert orders == factorial(4)
    for mask in range(16):
        size = mask.bit_count()
        for player in range(4):
            if mask >> player & 1:
                expected = -factorial(size - 1) * factorial(4 - size) / factorial(4)
            else:
                expected = factorial(size) * factorial(3 - size) / factorial(4)
            assert weights[player, mask] == pytest.approx(expected)


def test_eight_knobs_are_exact() -> None:
    found = fair_weights(8, np.ones(256, dtype=bool))
    assert found is not None
    assert found[1] == factorial(8)


def test_where_nothing_interacts_alone_last_and_share_are_one() -> None:
    saves = np.array([3.0, 0.5, -1.0])
    masks = np.arange(8)
    energy = 10.0 - sum(saves[bit] * (masks >> bit & 1) for bit in range(3))
    exists = np.ones(8, dtype=bool)
    found = fair_weights(3, exists)
    assert found is not None
    for weights in (found[0], alone(3, exists)[0], last(3, exists)[0]):
        assert weights @ energy == pytest.approx(saves)


def explained(recommender: Recommender, question: WorkloadProfile) -> Recommendation:
    answer = recommender.recommend(question)
    assert answer.recommended is not None
    assert answer.saving is not None
    return answer


def why(answer: Recommendation) -> Attribution:
    assert answer.attribution is not None
    return answer.attribution


@pytest.mark.parametrize(
    ("demand", "current", "sla"),
    [
        (None, SHALLOW, {}),
        (None, {"queue_depth": 32, "jobs": 4}, {"latency_p99_ns_max": 3e5}),  # then it is slower
        (1e4, SPENDTHRIFT, {}),
        (6e4, SPENDTHRIFT, {}),
    ],
)
@pytest.mark.parametrize("scope", ["device_cpu", "system"])
def test_shares_add_up_to_the_saving(
    recommender: Recommender,
    ask: Ask,
    demand: float | None,
    current: dict[str, Any],
    sla: dict[str, float],
    scope: str,
) -> None:
    workload = {"demand_operations_per_second": demand}
    answer = explained(
        recommender, ask(workload, current=current, free=FREE, scope=scope, sla=sla, **ANYTHING)
    )
    saving, found = answer.saving, why(answer)
    assert saving is not None
    assert len(found.knobs) >= 2
    for name, total in (
        ("share_percent", saving.percent),
        ("share_joules_per_useful_gb", saving.joules_per_useful_gb),
    ):
        shares = [getattr(one, name) for one in found.knobs]
        assert sum(one.value for one in shares) == pytest.approx(total.value)
        assert all(one.low <= one.value <= one.high for one in shares)
        assert [one.value for one in shares] == sorted((one.value for one in shares), reverse=True)
    assert found.together_percent == saving.percent


def test_alone_is_what_changing_that_knob_alone_saves(recommender: Recommender, ask: Ask) -> None:
    """Asked for as a question of its own: today with one knob changed, or all but one."""
    workload = {"demand_operations_per_second": 2e4, "arrival_process": "poisson"}
    answer = explained(recommender, ask(workload, current=SPENDTHRIFT, free=FREE))

    def joules(changes: dict[str, Any]) -> float:
        current = SPENDTHRIFT | changes
        row = recommender.recommend(ask(workload, current=current, free={})).current
        assert row.joules_per_useful_gb is not None
        return row.joules_per_useful_gb.value

    today, everything = joules({}), joules(changes_of(why(answer).knobs))
    for one in why(answer).knobs:
        own = changes_of([one])
        others = changes_of([other for other in why(answer).knobs if other is not one])
        if one.alone_percent is not None:
            assert one.alone_percent.value == pytest.approx(100 * (1 - joules(own) / today))
        if one.last_percent is not None:
            expected = 100 * (joules(others) - everything) / today
            assert one.last_percent.value == pytest.approx(expected)


def changes_of(effects: list[KnobEffect]) -> dict[str, Any]:
    return {name: value for one in effects for name, value in one.after.items()}


def test_one_knob_brings_everything_with_the_interval_of_the_saving(
    recommender: Recommender, ask: Ask
) -> None:
    answer = explained(
        recommender,
        ask({"demand_operations_per_second": 1e4, "arrival_process": "bursts"},
            current={"queue_depth": 8}, free={"power_state": [2]}, scope="device"),
    )  # fmt: skip
    (only,) = why(answer).knobs
    assert answer.saving is not None
    for found in (only.share_percent, only.alone_percent, only.last_percent):
        assert found is not None
        for end in ("value", "low", "high"):
            expected = getattr(answer.saving.percent, end)
            assert getattr(found, end) == pytest.approx(expected, abs=1e-9)


def test_knobs_that_only_change_together_are_one(recommender: Recommender, ask: Ask) -> None:
    """From spdk, which always polls, to libaio, which cannot: neither changes alone."""
    answer = explained(
        recommender,
        ask({"demand_operations_per_second": 1e4}, free={"engine": "libaio", "queue_depth": "all"},
            current={"engine": "spdk", "queue_depth": 8, "jobs": 2}),
    )  # fmt: skip
    found = why(answer)
    groups = [set(one.knobs) for one in found.knobs]
    assert {"engine", "completion"} in groups
    assert sum(one.share_percent.value for one in found.knobs) == pytest.approx(
        found.together_percent.value
    )


def test_orders_do_not_lead_through_what_the_application_cannot_keep_in_flight(
    recommender: Recommender, ask: Ask
) -> None:
    """From 4 x 4 to 16 x 1 with at most 16 in flight: fewer jobs first."""
    answer = explained(
        recommender,
        ask({"demand_operations_per_second": 1e4, "arrival_process": "bursts"}, scope="device",
            sla={"device_power_watts_max": 1.75},  # below idle power at PS0
            current={"queue_depth": 4, "jobs": 4}, free={"queue_depth": [16], "jobs": [1],
                                                         "power_state": [2]}),
    )  # fmt: skip
    found = why(answer)
    by_knob = {one.knobs[0]: one for one in found.knobs}
    assert found.impossible == {TOO_MANY: 2}
    assert found.orders == 3
    assert by_knob["queue_depth"].alone_percent is None
    assert by_knob["jobs"].last_percent is None
    assert by_knob["jobs"].alone_percent is not None


def test_who_stays_needs_no_reason(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(ask(current={"queue_depth": 8}, free={}))
    assert answer.attribution is None
    assert isinstance(answer.current.configuration, Configuration)
