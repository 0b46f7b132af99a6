"""Power at equal useful work: what must be so whatever the fitted numbers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import host_power, host_work
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import Row

Ask = Callable[..., WorkloadProfile]

ALONE: dict[str, Any] = {}
"""Nothing is free: the current configuration is the only candidate."""

HOSTS = [
    {"engine": "io_uring"},
    {"engine": "io_uring", "completion": "polled"},
    {"engine": "io_uring", "submission_polling": True},
    {"engine": "libaio", "scheduler": "kyber"},
    {"engine": "spdk"},
]

configurations = st.builds(
    lambda host, depth, jobs, state: {
        **host, "queue_depth": depth, "jobs": jobs, "power_state": state
    },
    st.sampled_from(HOSTS),
    st.sampled_from([1, 4, 32, 256]),
    st.sampled_from([1, 4, 16]),
    st.sampled_from([0, 1, 2]),
)  # fmt: skip


def at(recommender: Recommender, ask: Ask, current: dict[str, Any], **workload: Any) -> Row:
    answer = recommender.recommend(ask(workload, current=current, free=ALONE, sla={}))
    return answer.current


def full_speed(recommender: Recommender, current: dict[str, Any], **workload: Any) -> Any:
    columns = {"operation": "read", "request_bytes": 4096, **workload, **current}
    prediction, _ = recommender.predictor.predict_columns(columns, rows=1)
    return prediction


def watts(row: Row, name: str) -> float:
    estimate = getattr(row, f"{name}_power_watts")
    assert estimate is not None
    return float(estimate.value)


@settings(deadline=None, max_examples=30)
@given(current=configurations)
def test_fully_busy_draws_active_power(
    recommender: Recommender, ask: Ask, current: dict[str, Any]
) -> None:
    prediction = full_speed(recommender, current)
    rate = float(prediction["throughput_bytes_per_second"].value[0])
    row = at(recommender, ask, current, demand_bytes_per_second=rate)
    assert row.busy_share == pytest.approx(1.0)
    for name in ("device", "cpu", "system"):
        expected = prediction[f"{name}_power_watts"].value[0]
        assert watts(row, name) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(current=configurations, arrival=st.sampled_from([None, "poisson", "bursts"]))
def test_almost_idle_draws_idle_power(
    recommender: Recommender, ask: Ask, current: dict[str, Any], arrival: str | None
) -> None:
    workload = {"demand_operations_per_second": 1e-4, "arrival_process": arrival}
    row = at(recommender, ask, current, **workload)
    power = recommender.profile.device_power
    assert power is not None
    assert watts(row, "device") == pytest.approx(
        power.idle_watts[current["power_state"]].value, rel=1e-3
    )
    active = full_speed(recommender, current)["cpu_power_watts"].value[0]
    # the kernel's polling thread sleeps after a second without a request
    spins = current["engine"] == "spdk"
    assert watts(row, "cpu") == pytest.approx(active if spins else 40.0, rel=1e-3)


@settings(deadline=None, max_examples=40)
@given(
    current=configurations,
    share=st.floats(0.01, 0.5),
    arrival=st.sampled_from([None, "poisson", "bursts"]),
    operation=st.sampled_from(["read", "write"]),
)
def test_doubling_the_demand_never_lowers_power(
    recommender: Recommender, ask: Ask, current: dict[str, Any], share: float,
    arrival: str | None, operation: str,
) -> None:  # fmt: skip
    prediction = full_speed(recommender, current, operation=operation)
    rate = share * float(prediction["throughput_bytes_per_second"].value[0])
    facts = {"operation": operation, "arrival_process": arrival}
    once = at(recommender, ask, current, demand_bytes_per_second=rate, **facts)
    twice = at(recommender, ask, current, demand_bytes_per_second=2 * rate, **facts)
    for name in ("device", "cpu", "system"):
        assert watts(twice, name) >= watts(once, name) * (1 - 1e-9)


@settings(deadline=None, max_examples=30)
@given(current=configurations, share=st.floats(0.01, 0.9))
def test_bursts_with_restful_gaps_never_draw_more_than_even_arrivals(
    recommender: Recommender, ask: Ask, current: dict[str, Any], share: float
) -> None:
    rate = share * float(full_speed(recommender, current)["iops"].value[0])
    demand = {"demand_operations_per_second": rate}
    bursts = at(recommender, ask, current, **demand, arrival_process="bursts")
    even = at(recommender, ask, current, **demand, arrival_process="poisson")
    unsaid = at(recommender, ask, current, **demand)
    assert watts(bursts, "device") <= watts(even, "device") * (1 + 1e-9)
    # requests come by chance where nothing was said
    assert unsaid == even


def test_the_formula_of_equal_work(recommender: Recommender, ask: Ask) -> None:
    current = {"queue_depth": 16, "jobs": 2}
    prediction = full_speed(recommender, current)
    row = at(recommender, ask, current, demand_operations_per_second=50_000.0)
    busy = 50_000.0 / prediction["iops"].value[0]
    assert row.busy_share == pytest.approx(busy)
    active = prediction["device_power_watts"].value[0]
    # 50,000 requests a second by chance leave no gap in which the drive rests
    assert watts(row, "device") == pytest.approx(busy * active + (1 - busy) * 2.5)
    load = host_work.activity(
        prediction.activity.costs, np.array([50_000.0]), prediction["latency_mean_ns"].value
    )
    assert recommender.profile.host_power is not None
    assert watts(row, "cpu") == pytest.approx(
        host_power.value(recommender.profile.host_power, load)[0]
    )
    assert row.joules_per_useful_gb is not None
    both = watts(row, "device_cpu")
    assert both == pytest.approx(watts(row, "device") + watts(row, "cpu"))
    assert row.joules_per_useful_gb.value == pytest.approx(both / (50_000.0 * 4096) * 1e9)


def test_written_bytes_cost_background_energy(
    make_profile: Callable[..., DeviceProfile], recommender: Recommender, ask: Ask
) -> None:
    write_state = recommender.profile.write_state
    assert write_state is not None
    data = write_state.model_dump(mode="json")
    data["background_joules_per_byte"]["value"] = 0.0
    without = Recommender(make_profile(write_state=data))
    demand = {"operation": "write", "demand_bytes_per_second": 1e8}
    asked = ask(
        demand, current={"queue_depth": 32}, free=ALONE, sla={}, state={"device_state": "cached"}
    )
    more, less = (watts(one.recommend(asked).current, "device") for one in (recommender, without))
    assert more - less == pytest.approx(5e-10 * 1e8)


def test_useful_bytes_count_and_not_those_fetched_in_vain(
    recommender: Recommender, ask: Ask
) -> None:
    wasteful = at(recommender, ask, {"request_bytes": 65536, "queue_depth": 8})
    fitting = at(recommender, ask, {"request_bytes": 4096, "queue_depth": 8})
    assert wasteful.throughput_bytes_per_second.value == pytest.approx(wasteful.iops.value * 4096)
    assert wasteful.joules_per_useful_gb is not None
    assert fitting.joules_per_useful_gb is not None
    assert wasteful.joules_per_useful_gb.value > fitting.joules_per_useful_gb.value


def test_think_time_obeys_the_response_time_law(recommender: Recommender, ask: Ask) -> None:
    current = {"queue_depth": 4, "jobs": 2}
    row = at(recommender, ask, current, think_time_ns=1e6)
    latency = full_speed(recommender, current)["latency_mean_ns"].value[0]
    assert row.iops.value == pytest.approx(8 / (latency + 1e6) * 1e9)
    assert row.busy_share == pytest.approx(latency / (latency + 1e6))


@pytest.mark.parametrize("think_seconds", [1e-3, 0.05, 30.0])
def test_pauses_for_thinking_rest_as_much_as_those_of_a_demand_of_that_rate(
    recommender: Recommender, ask: Ask, think_seconds: float
) -> None:
    current = {"queue_depth": 1, "jobs": 16, "engine": "io_uring"}
    thinking = at(recommender, ask, current, think_time_ns=think_seconds * 1e9)
    rate = thinking.iops.value
    demanded = at(recommender, ask, current, demand_operations_per_second=rate)
    assert watts(thinking, "device") == pytest.approx(watts(demanded, "device"), rel=1e-3)
    assert watts(thinking, "cpu") == pytest.approx(watts(demanded, "cpu"), rel=1e-3)


@pytest.mark.parametrize("think_ns", [0.0, 1e5])
@pytest.mark.parametrize("depth", [1, 8])
def test_who_polls_spins_for_the_drive_and_not_for_a_slot(
    recommender: Recommender, ask: Ask, depth: int, think_ns: float
) -> None:
    current = {"queue_depth": depth, "jobs": 1, "engine": "io_uring", "completion": "polled"}
    full = at(recommender, ask, current, think_time_ns=think_ns)
    shares = [0.5, 0.8, 0.9, 0.97, 0.999]
    drawn = [
        watts(
            at(
                recommender,
                ask,
                current,
                think_time_ns=think_ns,
                demand_operations_per_second=share * full.iops.value,
            ),
            "cpu",
        )
        for share in shares
    ]
    assert drawn == sorted(drawn)
    assert drawn[-1] <= watts(full, "cpu") * 1.001


@pytest.mark.parametrize("state", [0, 1, 2])
def test_where_today_cannot_carry_the_demand_equal_work_is_what_it_does_carry(
    recommender: Recommender, ask: Ask, state: int
) -> None:
    """A configuration that could do more draws at that rate what it draws there."""
    today = {"queue_depth": 1, "jobs": 1, "power_state": state}
    demand = {"demand_operations_per_second": 100_000.0, "arrival_process": "poisson"}
    free = {"queue_depth": [8, 32, 128], "power_state": "all"}
    answer = recommender.recommend(
        ask(demand, current=today, free=free, concurrency_max="unbounded")
    )
    assert answer.action == "change"
    assert answer.recommended is not None
    assert answer.current is not None
    assert answer.saving is not None
    chosen = answer.recommended.configuration.model_dump(exclude_none=True)
    rate = {
        "demand_bytes_per_second": answer.current.throughput_bytes_per_second.value,
        "arrival_process": "poisson",
    }
    expected = [watts(at(recommender, ask, one, **rate), "device_cpu") for one in (today, chosen)]
    assert answer.saving.watts.value == pytest.approx(expected[0] - expected[1], rel=1e-6)
    assert answer.saving.percent.value == pytest.approx(
        100 * (1 - expected[1] / expected[0]), rel=1e-6
    )
