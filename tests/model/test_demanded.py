"""What a configuration does at a demand is what a recommendation says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from iojoule.api.application.predictors import Predictors
from iojoule.api.application.profiles import profile_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.demanded import demands
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.validity import under
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.response import Row

DEVICE = "samsung-980-pro-1tb"
SETTINGS = {"request_bytes": 8192, "queue_depth": 8, "jobs": 2, "engine": "io_uring"}
OUTSIDE = SETTINGS | {"engine": "posixaio", "queue_depth": 64, "jobs": 8}
"""Where nobody measured."""


def agreed(current: dict[str, Any] = SETTINGS, *, device: str = DEVICE, **habits: Any) -> Row:
    """Today's row of a recommendation, after a comparison with the prediction."""
    profile = profile_of(device)
    columns = {name: [value] for name, value in {**current, **habits}.items()}
    found, _ = Predictors(profile).predict_columns({"operation": ["read"], **columns}, {}, 1)
    size = current["request_bytes"]
    workload = {"operation": "read", "useful_request_bytes": size, **habits}
    asked = parse_workload({"workload": workload, "current": current, "free": {}})
    row = Recommender(under(profile, Conditions())).recommend(asked).current
    assert row is not None
    for name in (
        "throughput_bytes_per_second",
        "iops",
        "latency_mean_ns",
        "latency_p99_ns",
        "device_power_watts",
        "cpu_power_watts",
        "system_power_watts",
    ):
        one = getattr(row, name)
        if one is None:  # unknown to both
            assert name not in found.bands
            continue
        for end in ("value", "low", "high"):
            expected = getattr(one, end)
            expected = np.inf if expected == "unbounded" else expected
            assert getattr(found[name], end)[0] == pytest.approx(expected, rel=1e-9), name
        assert found.evidence_words(name) == [one.evidence], name
    return row


@pytest.mark.parametrize("arrivals", [None, "poisson", "linear", "bursts"])
@pytest.mark.parametrize("demand", [100.0, 20_000.0, 60_000.0])
@pytest.mark.parametrize(
    "pauses",
    [
        {},
        {"think_time_ns": 1.0},
        {"think_time_ns": 1e5},
        {"idle_gap_seconds_p50": 0.5},
        {"burst_bytes": 1e6},
    ],
)
def test_predict_and_recommend_agree(
    arrivals: str | None, demand: float, pauses: dict[str, float]
) -> None:
    row = agreed(demand_operations_per_second=demand, arrival_process=arrivals, **pauses)
    assert row.iops.value == pytest.approx(demand)


@pytest.mark.parametrize("arrivals", ["poisson", "bursts"])
@pytest.mark.parametrize("demand", [100.0, 20_000.0, 60_000.0])
def test_predict_and_recommend_agree_where_nobody_measured(arrivals: str, demand: float) -> None:
    agreed(OUTSIDE, demand_operations_per_second=demand, arrival_process=arrivals)


READS = st.fixed_dictionaries(
    {
        "request_bytes": st.sampled_from([512, 4096, 12288, 65536, 1 << 20]),
        "queue_depth": st.sampled_from([1, 2, 8, 32, 128]),
        "jobs": st.sampled_from([1, 3, 16]),
        "engine": st.sampled_from(["io_uring", "libaio", "posixaio"]),
    }
)
HABITS = st.fixed_dictionaries(
    {"pattern": st.sampled_from(["random", "sequential"])},
    optional={
        "demand_operations_per_second": st.floats(1.0, 2e3),
        "arrival_process": st.sampled_from(["poisson", "linear", "bursts", "steady"]),
        "think_time_ns": st.floats(1.0, 1e8),
        "idle_gap_seconds_p50": st.floats(1e-4, 2.0),
        "burst_bytes": st.floats(1e3, 1e8),
    },
)
DEVICES = ("samsung-980-pro-1tb", "micron-7450", "kingston-a2000-1tb")
"""Measured, and known by their facts."""


@given(READS, HABITS, st.sampled_from(DEVICES))
@settings(max_examples=60, deadline=None)
def test_predict_and_recommend_agree_whatever_is_asked_together(
    current: dict[str, Any], habits: dict[str, Any], device: str
) -> None:
    # bursts as fast as they can: `predict` tells the speed within one, and the mean of `--gaps`
    limited = {"demand_operations_per_second", "think_time_ns"} & habits.keys()
    assume(limited or not {"idle_gap_seconds_p50", "burst_bytes"} <= habits.keys())
    agreed(current, device=device, **habits)


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
@pytest.mark.parametrize("polling", [False, True])
@pytest.mark.parametrize("governor", ["powersave", "schedutil"])
def test_a_governor_follows_one_load_at_full_speed(
    engine: str, polling: bool, governor: str
) -> None:
    polls = {"submission_polling": polling and engine == "io_uring"}
    agreed(SETTINGS | polls | {"engine": engine, "cpu_governor": governor})


@given(READS, HABITS, st.sampled_from([*DEVICES, "samsung-860-pro"]), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_percentiles_and_the_ends_of_their_intervals_are_in_order(
    current: dict[str, Any], habits: dict[str, Any], device: str, reads: float
) -> None:
    if device == "samsung-860-pro":  # measured at random, behind SATA
        rate = habits.get("demand_operations_per_second", 0.0) * current["request_bytes"]
        assume(habits["pattern"] == "random" and rate < 6e8)
    columns = {name: [value] for name, value in {**current, **habits}.items()}
    columns |= {"operation": ["mixed"], "read_fraction": [reads]}
    found, _ = Predictors(profile_of(device)).predict_columns(columns, {}, 1)
    names = ("latency_p50_ns", "latency_p99_ns", "latency_p999_ns")
    for end in ("value", "low", "high"):
        p50, p99, p999 = (getattr(found[name], end)[0] for name in names)
        assert p50 <= p99 <= p999
        assert getattr(found["latency_mean_ns"], end)[0] <= p999


def test_jobs_that_poll_now_and_then_switch_contexts_within_the_interval() -> None:
    columns = {"operation": ["read"], "engine": ["io_uring"], "completion": ["polled"]}
    columns |= {"demand_operations_per_second": [1000.0]}
    found, _ = Predictors(load_shipped_profile(DEVICE)).predict_columns(columns, {}, 1)
    switches = found["context_switches_per_second"]
    assert 0.0 < switches.low[0] < switches.value[0] < switches.high[0]


@pytest.mark.parametrize("think_seconds", [1e-3, 1.0])
def test_clients_that_think_ask_no_more_than_their_pauses_let_them(think_seconds: float) -> None:
    row = agreed(think_time_ns=think_seconds * 1e9)
    assert 0.8 < row.iops.value * think_seconds / 16.0 < 1.0


def test_a_pause_that_changes_no_digit_leaves_the_intervals_of_full_speed() -> None:
    agreed(think_time_ns=1e-5)


def test_a_pause_of_a_nanosecond_changes_nothing() -> None:
    demand = {"demand_operations_per_second": 50_000.0, "arrival_process": "steady"}
    without, thinking = agreed(**demand), agreed(**demand, think_time_ns=1.0)
    for name in ("latency_p99_ns", "device_power_watts", "cpu_power_watts"):
        before = getattr(without, name).value
        assert getattr(thinking, name).value == pytest.approx(before, rel=1e-4), name


def test_rows_with_and_without_a_demand_stand_side_by_side() -> None:
    profile = load_shipped_profile(DEVICE)
    columns = {"operation": ["read"] * 3, "demand_operations_per_second": [None, 1000.0, 9e5]}
    found, _ = Predictors(profile).predict_columns(columns, {}, 3)
    full, _ = Predictors(profile).predict_columns({"operation": ["read"]}, {}, 1)
    assert found["iops"].value[0] == full["iops"].value[0]
    assert found["iops"].value[1] == 1000.0
    assert found["iops"].value[2] == full["iops"].value[0]
    assert np.isinf(found["latency_p99_ns"].value[2])
    assert found["device_power_watts"].value[1] < full["device_power_watts"].value[0]


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_no_interval_of_watts_passes_what_the_power_state_allows(share: float) -> None:
    profile = profile_of("crucial-p2-500gb")
    columns: dict[str, list[Any]] = {
        "operation": ["read"],
        "pattern": ["sequential"],
        "request_bytes": [20480],
        "jobs": [3],
        "engine": ["spdk"],
        "power_state": [1],
    }
    full, _ = Predictors(profile).predict_columns(columns, {}, 1)
    columns["demand_operations_per_second"] = [share * full["iops"].value[0]]
    found, _ = Predictors(profile).predict_columns(columns, {}, 1)
    assert profile.device_power is not None
    cap = profile.device_power.cap_watts[1]
    assert found["device_power_watts"].value[0] <= found["device_power_watts"].high[0] <= cap


def test_what_a_limit_holds_at_a_demand_tends_to_reads_alone() -> None:
    columns: dict[str, Any] = {
        "operation": ["read", "mixed"],
        "read_fraction": [1.0, 1.0 - 1e-6],
        "pattern": ["sequential"] * 2,
        "queue_depth": [64] * 2,
        "jobs": [2] * 2,
        "engine": ["io_uring"] * 2,
        "demand_operations_per_second": [6.2e5] * 2,
        "device_state": ["fresh"] * 2,
    }
    found, _ = Predictors(load_shipped_profile(DEVICE)).predict_columns(columns, {}, 2)
    for end in ("value", "low", "high"):
        alone, mixed = getattr(found["device_power_watts"], end)
        assert mixed == pytest.approx(alone, rel=0.01), end


def test_a_demand_of_nothing_is_refused_by_name() -> None:
    frame, _ = make_frame(load_shipped_profile(DEVICE), {"operation": ["read"]}, 1)
    with pytest.raises(InputError) as caught:
        demands(frame, {"demand_bytes_per_second": [0.0]})
    assert caught.value.field == "demand_bytes_per_second"


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_cores_that_a_limit_keeps_awake_do_not_save_as_the_load_grows(limit: int) -> None:
    rates = np.geomspace(10.0, 1e4, 60)
    columns = {
        "operation": "read",
        "request_bytes": 65536,
        "queue_depth": 16,
        "jobs": 3,
        "cstate_limit": limit,
    }
    asked: dict[str, Any] = {name: [value] * len(rates) for name, value in columns.items()}
    asked |= {"demand_operations_per_second": rates.tolist(), "arrival_process": ["linear"] * 60}
    profile = load_shipped_profile(DEVICE)
    found, _ = Predictors(profile).predict_columns(asked, {}, len(rates))
    watts = found["cpu_power_watts"].value
    assert (np.diff(watts) > -5e-3 * watts[:-1]).all()
