"""Today's latency as it was measured: what a recommendation makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.fleet.document import parse_fleet
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile, parse_workload
from iojoule.recommender.response import Recommendation
from tests.errors import having

Ask = Callable[..., WorkloadProfile]
TODAY = {"queue_depth": 8, "jobs": 1}
DEMAND = {"demand_operations_per_second": 40_000.0}


def p99(answer: Recommendation) -> tuple[float, float]:
    assert answer.current is not None
    assert answer.current.latency_p99_ns is not None
    band = answer.current.latency_p99_ns
    return band.value, band.high


def test_a_configuration_that_was_seen_to_keep_its_bound_keeps_it(
    recommender: Recommender, ask: Ask
) -> None:
    value, high = p99(recommender.recommend(ask(DEMAND, current=TODAY, free={})))
    tight = {"latency_p99_ns_max": value * 1.02}
    unseen = recommender.recommend(ask(DEMAND, current=TODAY, free={}, sla=tight))
    assert (unseen.action, unseen.reason_code) == ("none", "not_shown_to_hold")
    for times, keeps in ((0.9, True), (1.1, False)):
        measured = {"latency_p99_ns": value * times}
        seen = recommender.recommend(
            ask(DEMAND, current=TODAY, free={}, sla=tight, observed=measured)
        )
        assert seen.current is not None
        assert seen.current.meets_sla is keeps
        assert p99(seen)[0] == pytest.approx(value * times)
        assert p99(seen)[1] < high
        assert seen.current.latency_p99_ns is not None
        assert seen.current.latency_p99_ns.evidence == "measured"
        assert (seen.recommended is not None) is keeps


def test_a_bound_that_waits_for_unknown_flushes_holds_where_it_was_measured(ask: Ask) -> None:
    profile = load_shipped_profile("samsung-980-pro-1tb")
    assert profile.flush is None
    question = {
        "workload": {
            "operation": "write", "useful_request_bytes": 8192, "flush_every_writes": 8,
            "demand_operations_per_second": 2000.0,
        },
        "current": {"queue_depth": 4, "jobs": 2},
        "sla": "p99 < 5 ms",
    }  # fmt: skip
    recommender = Recommender(profile)
    unseen = recommender.recommend(parse_workload(question))
    assert unseen.recommended is None
    seen = recommender.recommend(parse_workload(question | {"observed": {"latency_p99_ns": 3e6}}))
    assert seen.recommended is not None
    assert seen.current is not None
    assert seen.recommended.configuration == seen.current.configuration
    late = recommender.recommend(parse_workload(question | {"observed": {"latency_p99_ns": 6e6}}))
    assert late.recommended is None


@settings(max_examples=25)
@given(
    st.floats(0.02, 50.0),
    st.floats(1.0, 3.0),
    st.sampled_from(["poisson", "steady", "bursts"]),
    st.floats(2.0, 5.0),
    st.floats(4.5, 7.0),
)
def test_who_sees_longer_latencies_is_offered_no_more(
    recommender: Recommender, ask: Ask, times: float, more: float, arrivals: str, rate: float,
    bound: float,
) -> None:  # fmt: skip
    demand = {"demand_operations_per_second": 10.0**rate, "arrival_process": arrivals}
    asked = {
        "current": TODAY,
        "free": {"queue_depth": "all", "jobs": [1, 4], "power_state": "all"},
        "sla": {"latency_p99_ns_max": 10.0**bound},
    }
    feasible = [
        recommender.recommend(
            ask(demand, observed={"latency_p99_ns": 1e5 * each}, **asked)
        ).counts.feasible
        for each in (times, times * more)
    ]
    assert feasible[1] <= feasible[0]


def test_it_is_of_todays_demand_alone(recommender: Recommender, ask: Ask) -> None:
    """Less demand, which a relaxation asks for, is predicted."""
    bound = {"latency_p99_ns_max": 1e5}
    answers = [
        recommender.recommend(ask(DEMAND, current=TODAY, free={}, sla=bound, **more))
        for more in ({}, {"observed": {"latency_p99_ns": 1e9}})
    ]
    relaxed = [[one.needed for one in each.relaxations if one.bound.startswith("demand")]
               for each in answers]  # fmt: skip
    assert relaxed[0] == relaxed[1]


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"current": TODAY, "observed": {"latency_p99_ns": 1e6}}, "observed"),
        ({"workload": DEMAND, "observed": {"latency_p99_ns": 1e6}}, "observed"),
        ({"workload": DEMAND, "current": TODAY,
          "observed": {"latency_p99_ns": 1e6, "latency_p50_ns": 2e6}}, "observed"),
        ({"workload": DEMAND, "current": TODAY,
          "observed": {"latency_p999_ns": 1e6, "latency_mean_ns": 2e6}}, "observed"),
        ({"workload": DEMAND, "current": TODAY, "observed": {"latency_p99_ns": 0}},
         "observed.latency_p99_ns"),
    ],
)  # fmt: skip
def test_what_is_observed_of_nothing_is_refused(parts: dict[str, Any], field: str) -> None:
    question = parts | {"workload": {"operation": "read", **parts.get("workload", {})}}
    with pytest.raises(InputError, check=having(field=field)):
        parse_workload(question)


def test_a_class_of_a_fleet_takes_a_profile_without_what_was_seen_of_one_host(
    tmp_path: Path,
) -> None:
    (tmp_path / "kv.toml").write_text(
        """
        [workload]
        operation = "read"
        useful_request_bytes = 4096
        demand_operations_per_second = 1e4
        [current]
        queue_depth = 8
        [observed]
        latency_p99_ns = 3e5
        """
    )
    fleet = """
        [[domain]]
        name = "rack"
        limit_watts = 100.0
        [[drives]]
        name = "a"
        device = "samsung-980-pro-1tb"
        count = 2
        domain = "rack"
        classes = ["kv"]
        [[class]]
        name = "kv"
        demand_bytes_per_second = 1e8
        workload = "kv.toml"
        """
    (found,) = parse_fleet(fleet, "fleet.toml", folder=tmp_path).classes
    assert not found.workload.observed.stated
    assert found.workload.current.queue_depth == 8
