"""What bounds do to an answer: their own confidence, what is preferred, wear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from tests.errors import having

Ask = Callable[..., WorkloadProfile]

FREE = {"queue_depth": "all", "jobs": [1, 4], "power_state": "all"}
DEMAND = {"demand_operations_per_second": 20_000.0}


def watts(answer: Any) -> float:
    assert answer.recommended is not None
    assert answer.recommended.device_cpu_power_watts is not None
    return float(answer.recommended.device_cpu_power_watts.value)


def test_a_bound_of_its_own_confidence_is_as_one_of_the_common_one(
    recommender: Recommender, ask: Ask
) -> None:
    bound = {"latency_p99_ns_max": 1e6}
    common = recommender.recommend(ask(DEMAND, free=FREE, sla=bound | {"confidence": 0.95}))
    own = recommender.recommend(
        ask(DEMAND, free=FREE,
            sla=bound | {"confidence": 0.95, "confidences": {"latency_p99_ns_max": 0.5}})
    )  # fmt: skip
    alone = recommender.recommend(ask(DEMAND, free=FREE, sla=bound | {"confidence": 0.5}))
    assert own.counts.feasible > common.counts.feasible
    # the demand is held at the common confidence, so nothing that both refuse is let in
    assert common.counts.feasible < own.counts.feasible <= alone.counts.feasible


def test_a_preferred_bound_that_can_be_kept_is_kept(recommender: Recommender, ask: Ask) -> None:
    free = recommender.recommend(ask(DEMAND, free=FREE))
    assert free.recommended is not None
    assert free.recommended.latency_p99_ns is not None
    tails = [row.latency_p99_ns.high for row in free.pareto if row.latency_p99_ns is not None]
    limit = min(tails) * 1.01
    assert limit < free.recommended.latency_p99_ns.high
    hard = recommender.recommend(ask(DEMAND, free=FREE, sla={"latency_p99_ns_max": limit}))
    soft = recommender.recommend(
        ask(DEMAND, free=FREE, sla={"latency_p99_ns_max": limit, "soft": ["latency_p99_ns_max"]})
    )
    assert hard.recommended is not None
    assert soft.recommended is not None
    assert hard.recommended.configuration == soft.recommended.configuration
    assert soft.preferred_missed == []
    assert soft.counts.feasible > hard.counts.feasible


def test_a_preferred_bound_that_nothing_keeps_is_missed_by_the_least(
    recommender: Recommender, ask: Ask
) -> None:
    name = "latency_p99_ns_max"
    hard = recommender.recommend(ask(DEMAND, free=FREE, sla={name: 1.0}))
    assert hard.recommended is None
    soft = recommender.recommend(ask(DEMAND, free=FREE, sla={name: 1.0, "soft": [name]}))
    assert soft.recommended is not None
    assert soft.recommended.meets_sla
    (missed,) = soft.preferred_missed
    assert missed.bound == name
    assert missed.preferred
    least = min(miss.shortfalls[0].reached for miss in hard.nearest_misses)
    assert missed.reached == pytest.approx(least, rel=2e-3)


def test_a_preferred_bound_of_which_nobody_knows_whether_it_holds(
    recommender: Recommender, ask: Ask
) -> None:
    name = "latency_p99_ns_max"
    work = {"operation": "write", "flush_every_writes": 1}
    found = recommender.recommend(ask(work, free=FREE, sla={name: 1e6, "soft": [name]}))
    assert found.recommended is not None
    (missed,) = found.preferred_missed
    assert missed.unknown
    (bound,) = found.bounds
    assert bound.without is not None
    assert bound.without.objective_change_percent == pytest.approx(0.0, abs=1e-9)


def test_wear_bounds_what_is_written(make_profile: Any, ask: Ask) -> None:
    rated = {"name": "rated", "value": 600e12, "sd": 0.0, "unit": "bytes", "evidence": "datasheet",
             "source": "made up"}  # fmt: skip
    recommender = Recommender(make_profile(endurance_bytes_written=rated))
    write = {"operation": "write", "demand_bytes_per_second": 2e6}
    year = 2e6 * 8766 * 3600
    for years, kept in ((0.9 * 600e12 / year, True), (1.1 * 600e12 / year, False)):
        answer = recommender.recommend(ask(write, free=FREE, sla={"endurance_years_min": years}))
        assert (answer.recommended is not None) is kept
    half = ask(write, free=FREE, percentage_used=50.0,
               sla={"endurance_years_min": 0.9 * 600e12 / year})  # fmt: skip
    assert recommender.recommend(half).recommended is None
    read = ask({"operation": "read"}, free=FREE, sla={"endurance_years_min": 1e6})
    assert recommender.recommend(read).recommended is not None


def test_wear_without_a_rating_is_refused(make_profile: Any, ask: Ask) -> None:
    recommender = Recommender(make_profile(endurance_bytes_written=None))
    with pytest.raises(InputError, check=having(field="sla.endurance_years_min")):
        recommender.recommend(ask(DEMAND, sla={"endurance_years_min": 5.0}))


def test_both_powers_together_are_a_bound(recommender: Recommender, ask: Ask) -> None:
    free = recommender.recommend(ask(DEMAND, free=FREE))
    assert free.recommended is not None
    drawn = free.recommended.device_cpu_power_watts
    assert drawn is not None
    name = "device_cpu_power_watts_max"
    assert watts(recommender.recommend(ask(DEMAND, free=FREE, sla={name: drawn.high * 1.3}))) == (
        pytest.approx(watts(free))
    )
    nothing = recommender.recommend(ask(DEMAND, free=FREE, sla={name: drawn.value * 0.97}))
    assert nothing.recommended is None
    with pytest.raises(InputError, check=having(field="sla.device_cpu_power_watts_max")):
        recommender.recommend(ask(DEMAND, free=FREE, sla={name: 1.0}))


def test_what_is_not_bound_can_be_neither_soft_nor_surer(ask: Ask) -> None:
    for field, value in (("soft", ["iops_min"]), ("confidences", {"iops_min": 0.9})):
        with pytest.raises(InputError, check=having(field="sla")):
            ask(sla={field: value})


@pytest.mark.parametrize("field", ["latency_p99_ns_max", "device_power_watts_max", "iops_min"])
@pytest.mark.parametrize("value", [1e-308, 0.0, 1e308])
def test_a_bound_that_nothing_can_reach_is_refused(ask: Ask, field: str, value: float) -> None:
    with pytest.raises(InputError, match=field):
        ask(DEMAND, sla={field: value})
