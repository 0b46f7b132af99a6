"""What is true of an answer whatever the drive."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import EARLIER_LAW, DeviceProfile
from iojoule.datasets.schema import Workload
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of
from iojoule.model.prior.host import with_expected_host
from iojoule.recommender import space
from iojoule.recommender.candidates import build_candidates
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Current, Free, WorkloadProfile, parse_workload
from iojoule.recommender.response import Recommendation, Row
from tests.errors import having

Ask = Callable[..., WorkloadProfile]

EVERYTHING = dict.fromkeys(Free.model_fields, "all")
SMALL = {"queue_depth": "all", "jobs": [1, 4], "power_state": "all", "engine": ["io_uring", "spdk"],
         "completion": "all"}  # fmt: skip
TODAY = {"queue_depth": 32, "jobs": 4}


def objective(row: Row) -> float:
    assert row.device_cpu_power_watts is not None
    return row.device_cpu_power_watts.value


def key(row: Row) -> tuple[float, float, float]:
    assert row.latency_p99_ns is not None
    return objective(row), -row.capacity_bytes_per_second.value, row.latency_p99_ns.value


def test_a_configuration_saves_nothing_against_itself(recommender: Recommender, ask: Ask) -> None:
    for demand in ({}, {"demand_operations_per_second": 1e4}):
        answer = recommender.recommend(ask(demand, current=TODAY, free={}))
        saving = answer.saving
        assert saving is not None
        assert answer.recommended == answer.current
        for estimate in (saving.watts, saving.joules_per_useful_gb, saving.kwh_per_year):
            assert (estimate.value, estimate.low, estimate.high) == (0.0, 0.0, 0.0)
        assert answer.action == saving.verdict == "no change"
        assert saving.probability == 0.0


def test_the_front_is_what_brute_force_finds(recommender: Recommender, ask: Ask) -> None:
    """Every candidate asked for by itself, and the front drawn by hand."""
    workload = {"demand_operations_per_second": 40_000.0}
    sla = {"latency_p99_ns_max": 2e6}
    answer = recommender.recommend(ask(workload, current=TODAY, free=SMALL, sla=sla), rows=10_000)
    rows = []
    candidates = build_candidates(
        recommender.profile, recommender.predictor.performance.paths,
        ask(workload, current=TODAY, free=SMALL, sla=sla),
    )  # fmt: skip
    for _, frame in candidates.blocks():
        for index in range(len(frame)):
            today = space.configuration_of(frame, index).model_dump(exclude_none=True)
            rows.append(
                recommender.recommend(ask(workload, current=today, free={}, sla=sla)).current
            )
    assert len(rows) == answer.counts.total
    feasible = [row for row in rows if row.meets_sla]
    assert len(feasible) == answer.counts.feasible
    costs = np.array([key(row) for row in feasible])
    kept = {
        tuple(costs[i]) for i in range(len(costs))
        if not ((costs <= costs[i]).all(axis=1) & (costs < costs[i]).any(axis=1)).any()
    }  # fmt: skip
    found = np.array([key(row) for row in answer.pareto])
    assert found == pytest.approx(np.array(sorted(kept)), rel=1e-9)
    assert answer.counts.on_front == len(kept)


def test_blocks_do_not_change_the_answer(
    recommender: Recommender, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ask({"demand_operations_per_second": 3e4}, current=TODAY, free=EVERYTHING)
    whole = recommender.recommend(question)
    monkeypatch.setattr(space, "BLOCK_ROWS", 100)
    assert recommender.recommend(question) == whole


@settings(deadline=None, max_examples=25)
@given(
    loose=st.floats(5e5, 1e8), factor=st.floats(0.2, 1.0),
    demand=st.sampled_from([None, 1e3, 5e4]),
)  # fmt: skip
def test_tightening_the_sla_never_finds_anything_better(
    recommender: Recommender, ask: Ask, loose: float, factor: float, demand: float | None
) -> None:
    def best(bound: float) -> float:
        answer = recommender.recommend(
            ask({"demand_operations_per_second": demand}, current=TODAY, free=SMALL,
                sla={"latency_p99_ns_max": bound})
        )  # fmt: skip
        if not answer.pareto:
            return np.inf
        row = answer.pareto[0]
        assert row.joules_per_useful_gb is not None
        return row.joules_per_useful_gb.value if demand is None else objective(row)

    assert best(loose * factor) >= best(loose) * (1 - 1e-12)


@settings(deadline=None, max_examples=25)
@given(
    low=st.floats(0.5, 0.99), high=st.floats(0.5, 0.99), power=st.floats(2.0, 8.0),
    latency=st.floats(2e5, 1e8),
)  # fmt: skip
def test_more_confidence_never_leaves_more_candidates(
    recommender: Recommender, ask: Ask, low: float, high: float, power: float, latency: float
) -> None:
    low, high = min(low, high), max(low, high)

    def count(confidence: float) -> int:
        sla = {
            "latency_p99_ns_max": latency, "device_power_watts_max": power,
            "iops_min": 2e4, "confidence": confidence,
        }  # fmt: skip
        workload = {"demand_operations_per_second": 1e4}
        return recommender.recommend(
            ask(workload, current=TODAY, free=SMALL, sla=sla)
        ).counts.feasible

    assert count(high) <= count(low)


def test_the_recommended_row_keeps_every_bound_on_its_interval(
    recommender: Recommender, ask: Ask
) -> None:
    sla = {"latency_p99_ns_max": 1e6, "iops_min": 5e4, "cpu_power_watts_max": 70.0,
           "confidence": 0.95}  # fmt: skip
    answer = recommender.recommend(
        ask({"demand_operations_per_second": 2e4}, current=TODAY, free=EVERYTHING, sla=sla)
    )
    for row in [*answer.pareto, answer.recommended]:
        assert row is not None
        assert row.meets_sla
        assert row.latency_p99_ns is not None
        assert row.cpu_power_watts is not None
        # one-sided 95 % is the edge of the two-sided 90 % interval
        assert row.latency_p99_ns.high <= 1e6 * (1 + 1e-9)
        assert row.capacity_bytes_per_second.low >= 5e4 * 4096 * (1 - 1e-9)
        assert row.cpu_power_watts.high <= 70.0 + 1e-9


def test_without_a_feasible_candidate_the_nearest_misses_say_by_how_much(
    recommender: Recommender, ask: Ask
) -> None:
    answer = recommender.recommend(
        ask({"demand_operations_per_second": 5e5}, current=TODAY, free=EVERYTHING,
            sla={"latency_mean_ns_max": 20_000.0})
    )  # fmt: skip
    assert answer.recommended is None
    assert answer.saving is None
    assert answer.counts.feasible == 0
    assert 3 <= len(answer.nearest_misses) <= 5
    worst = []
    for miss in answer.nearest_misses:
        assert miss.shortfalls
        assert not miss.row.meets_sla
        for short in miss.shortfalls:
            assert short.missed_by == pytest.approx(abs(short.limit - short.reached))
            assert short.missed_by > 0
        worst.append(
            max(
                s.reached / s.limit if s.bound.endswith("_max") else s.limit / s.reached
                for s in miss.shortfalls
            )
        )
    assert worst == sorted(worst)


@settings(deadline=None, max_examples=30)
@given(useful=st.sampled_from([4096, 8192, 12288]), times=st.integers(1, 40))
def test_requests_are_enlarged_only_as_far_as_the_application_can_use_them(
    recommender: Recommender, ask: Ask, useful: int, times: int
) -> None:
    limit = useful * times
    answer = recommender.recommend(
        ask({"useful_request_bytes": useful, "request_bytes_coalescible": limit},
            current={"queue_depth": 8})
    )  # fmt: skip
    sizes = {row.configuration.request_bytes for row in answer.pareto}
    assert all(useful <= size <= limit and size % useful == 0 for size in sizes)


def test_nothing_about_durability_can_be_chosen() -> None:
    words = ("durab", "flush", "fua", "access", "mount", "journal", "cache", "sync")
    assert not [name for name in Free.model_fields if any(word in name for word in words)]
    assert set(Free.model_fields) <= set(Current.model_fields)
    assert not set(Free.model_fields) & set(Workload.model_fields)
    with pytest.raises(InputError, check=having(field="free.durability")):
        parse_workload({"workload": {"operation": "write"}, "free": {"durability": "all"}})


def test_a_profile_without_power_says_so_and_ranks_by_performance(
    make_profile: Callable[..., DeviceProfile], ask: Ask
) -> None:
    blind = Recommender(make_profile(device_power=None, host_power=None, system_power=None))
    for demand in ({}, {"demand_operations_per_second": 2e4}):
        answer = blind.recommend(ask(demand, current=TODAY, free=EVERYTHING))
        assert answer.ranked_by == "performance"
        assert answer.saving is None
        # without power nothing is known to save, so nothing changes
        assert answer.action == "no change"
        assert answer.current is not None
        for row in [*answer.pareto, answer.current]:
            assert row.device_power_watts is None
            assert row.device_cpu_power_watts is None
            assert row.joules_per_useful_gb is None
            assert row.edp_joule_seconds is None
    with pytest.raises(InputError, check=having(field="sla.device_power_watts_max")) as caught:
        blind.recommend(ask(sla={"device_power_watts_max": 5.0}))
    assert caught.value.field == "sla.device_power_watts_max"


def test_scopes_without_their_power_are_unknown_and_the_others_are_not(
    make_profile: Callable[..., DeviceProfile], ask: Ask
) -> None:
    without = Recommender(make_profile(host_power=None, system_power=None))
    assert without.recommend(ask(current=TODAY)).ranked_by == "performance"
    alone = without.recommend(ask(current=TODAY, scope="device"))
    assert alone.ranked_by == "joules_per_useful_gb"
    assert alone.saving is not None


def test_a_demand_beyond_today_is_said(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(
        ask(
            {"demand_operations_per_second": 1e5}, current={"queue_depth": 1},
            concurrency_max="unbounded",
        )
    )  # fmt: skip
    assert answer.current is not None
    assert not answer.current.meets_sla
    assert answer.current.busy_share == 1.0
    assert answer.current.latency_p99_ns is not None
    assert np.isinf(answer.current.latency_p99_ns.value)
    assert answer.recommended is not None
    assert answer.recommended.capacity_bytes_per_second.low >= 1e5 * 4096 * 0.99


def test_kwh_a_year_is_the_saved_power_over_8766_hours(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(
        ask({"demand_operations_per_second": 2e4}, current=TODAY, free=SMALL)
    )
    saving = answer.saving
    assert saving is not None
    assert answer.recommended is not None
    assert saving.kwh_per_year.value == pytest.approx(saving.watts.value * 8.766)
    assert saving.kwh_per_year.low == pytest.approx(saving.watts.low * 8.766)
    assert answer.current is not None
    today, new = objective(answer.current), objective(answer.recommended)
    assert saving.watts.value == pytest.approx(today - new)
    assert saving.percent.value == pytest.approx(100 * (1 - new / today))
    assert saving.watts.low <= saving.watts.value <= saving.watts.high


@settings(deadline=None, max_examples=40)
@given(
    depth=st.sampled_from([1, 4, 16, 64]), jobs=st.sampled_from([1, 2, 8]),
    bound=st.floats(1e5, 1e8), demand=st.sampled_from([None, None, 1e3, 5e4]),
    operation=st.sampled_from(["read", "write"]), unbounded=st.booleans(),
    scope=st.sampled_from(["device", "device_cpu", "system"]),
)  # fmt: skip
def test_every_unit_of_a_saving_says_the_same(
    recommender: Recommender, ask: Ask, depth: int, jobs: int, bound: float,
    demand: float | None, operation: str, unbounded: bool, scope: str,
) -> None:  # fmt: skip
    answer = recommender.recommend(
        ask(
            {"operation": operation, "demand_operations_per_second": demand},
            current={"queue_depth": depth, "jobs": jobs}, free=SMALL, scope=scope,
            sla={"latency_p99_ns_max": bound},
            concurrency_max="unbounded" if unbounded else None,
        )
    )  # fmt: skip
    passed = answer.not_taken.saving if answer.not_taken is not None else None
    saving = passed or answer.saving
    if saving is None or answer.action not in {"change", "no change"}:
        return
    assert answer.current is not None
    today = getattr(answer.current, f"{scope}_power_watts").value
    units = (saving.watts, saving.joules_per_useful_gb, saving.kwh_per_year, saving.percent)
    for one in units:
        assert one.low <= one.value <= one.high
        assert (one.value > 0.0) == (saving.percent.value > 0.0)
        assert one.low < 0.0 or saving.percent.low >= 0.0
        assert one.low >= 0.0 or saving.percent.low < 0.0
        assert one.high > 0.0 or saving.percent.high <= 0.0
        assert one.high <= 0.0 or saving.percent.high > 0.0
    assert saving.watts.high <= today * (1 + 1e-9)
    assert saving.percent.high <= 100.0
    assert saving.kwh_per_year.value == pytest.approx(8.766 * saving.watts.value)
    if saving.percent.low > 0.0:
        assert saving.probability >= 0.95
    if answer.attribution is not None:
        for knob in answer.attribution.knobs:
            for one in (knob.share_percent, knob.alone_percent, knob.last_percent):
                assert one is None or one.high <= max(100.0, one.value)


def test_nobody_invents_clients(recommender: Recommender, ask: Ask) -> None:
    """Requests in flight stay at most today's unless more are stated; merging invents none."""
    merging = {"useful_request_bytes": 4096, "request_bytes_coalescible": 65536}
    for limit, most in ((None, 4), (8, 8)):
        answer = recommender.recommend(
            ask(merging, current={"queue_depth": 4}, free=EVERYTHING, concurrency_max=limit)
        )
        assert answer.counts.excluded["concurrency"] > 0
        for row in answer.pareto:
            one = row.configuration
            assert one.queue_depth * one.jobs * one.request_bytes <= most * 4096
            assert row.concurrency <= most
    unbounded = recommender.recommend(
        ask(merging, current={"queue_depth": 4}, concurrency_max="unbounded")
    )
    assert unbounded.counts.excluded["concurrency"] == 0
    former = ask(merging, current={"queue_depth": 4}, max_concurrency=8)
    assert former.concurrency_max == 8


def test_without_a_stated_today_nothing_is_saved(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(ask({"demand_operations_per_second": 1e4}, current={}))
    assert answer.action == "ranking"
    assert answer.current is answer.saving is answer.current_place is None
    assert answer.recommended is not None
    least = min(objective(row) for row in answer.pareto)
    assert objective(answer.recommended) <= 1.01 * least
    assert all(row.concurrency >= 1 for row in answer.pareto)


def test_writes_carry_their_endurance(recommender: Recommender, ask: Ask) -> None:
    demand = {"operation": "write", "demand_bytes_per_second": 1e7}
    answer = recommender.recommend(
        ask(demand, current=TODAY, write_amplification=2.0, percentage_used=50.0)
    )
    cost = answer.endurance
    assert cost is not None
    assert cost.host_bytes_per_year == pytest.approx(1e7 * 8766 * 3600)
    assert cost.change_host_bytes_per_year == pytest.approx(0.0, abs=1.0)
    assert cost.nand_bytes_per_year == pytest.approx(2 * cost.host_bytes_per_year)
    assert cost.years_left == pytest.approx(0.5 * 6e14 / cost.host_bytes_per_year)
    assert recommender.recommend(ask(current=TODAY)).endurance is None


def test_an_answer_survives_json(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(ask(current=TODAY, sla={"latency_p99_ns_max": 1e6}))
    text = answer.model_dump_json()
    assert "NaN" not in text
    assert Recommendation.model_validate_json(text) == answer
    assert json.loads(text)["answer_version"] == 3


def test_defaults_are_named(recommender: Recommender, ask: Ask) -> None:
    answer = recommender.recommend(ask(current={"queue_depth": 8}))
    assert answer.defaults_used["engine"] == "io_uring"
    assert "queue_depth" not in answer.defaults_used


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"current": {"power_state": 4}}, "current.power_state"),
        ({"current": {"post_write_power_state": 4}}, "current.post_write_power_state"),
        ({"current": {"power_limit_watts": 0.5}}, "current.power_limit_watts"),
        ({"free": {"power_limit_watts": [0, 0.5]}}, "free.power_limit_watts"),
        ({"current": {"engine": "posixaio"}}, "current.engine"),
        ({"free": {"power_state": [0, 4]}}, "free.power_state"),
        ({"free": {"engine": ["posixaio"]}}, "free.engine"),
        ({"free": {"request_bytes": [8192]}}, "free.request_bytes"),
        ({"current": {"queue_depth": 8}, "concurrency_max": 4}, "concurrency_max"),
        ({"free": {"queue_depth": list(range(1, 3001)), "jobs": list(range(1, 2001))}}, "free"),
        ({"free": {"engine": "psync", "queue_depth": [2, 4]}}, "free"),
        ({"sla": {"device_power_watts_max": 1.0}}, "sla.device_power_watts_max"),
        ({"sla": {"cpu_power_watts_max": 20.0}}, "sla.cpu_power_watts_max"),
        ({"sla": {"system_power_watts_max": 40.0}}, "sla.system_power_watts_max"),
    ],
)
def test_what_the_drive_does_not_have_is_refused_by_name(
    recommender: Recommender, ask: Ask, parts: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        recommender.recommend(ask(**parts))
    assert caught.value.field == field
    assert field in caught.value.message


def test_a_percentile_that_the_profile_lacks_cannot_be_bounded(
    make_profile: Callable[..., DeviceProfile], recommender: Recommender, ask: Ask
) -> None:
    surfaces = [surface.model_dump(mode="json") | {"tails": []}
                for surface in recommender.profile.surfaces]  # fmt: skip
    bare = Recommender(make_profile(surfaces=surfaces))
    with pytest.raises(InputError, check=having(field="sla.latency_p99_ns_max")):
        bare.recommend(ask(sla={"latency_p99_ns_max": 1e6}))
    answer = bare.recommend(ask(current=TODAY, sla={"latency_mean_ns_max": 1e6}))
    assert answer.recommended is not None
    assert answer.recommended.latency_p99_ns is None
    assert any("no p99 latency" in note for note in answer.notes)


@pytest.mark.parametrize("device", ["samsung-950-pro", "intel-d7-p5510", "kingston-nv2-250gb"])
def test_no_interval_of_a_drives_watts_exceeds_what_its_state_allows(device: str, ask: Ask) -> None:
    profile = build_profile(facts_of(load_catalogue().get(device)))
    power = profile.device_power
    assert power is not None
    recommender = Recommender(with_expected_host(profile))
    free = {"queue_depth": [1, 32], "jobs": [1, 4], "power_state": "all"}
    for operation in ("read", "write"):
        answer = recommender.recommend(
            ask({"operation": operation}, current=TODAY, free=free), rows=100
        )
        for row in (*answer.pareto, answer.current):
            assert row.device_power_watts is not None
            cap = power.cap_watts[row.configuration.power_state or 0]
            assert row.device_power_watts.value <= row.device_power_watts.high
            assert row.device_power_watts.high <= cap * (1 + 1e-9)


def test_a_host_that_an_earlier_version_fitted_is_named_where_its_watts_count(
    make_profile: Callable[..., DeviceProfile],
) -> None:
    profile = make_profile(gaps=[EARLIER_LAW])
    for scope, told in (("device", False), ("device_cpu", True)):
        asked = parse_workload({"workload": {"operation": "read"}, "scope": scope})
        assert (EARLIER_LAW in Recommender(profile).recommend(asked).notes) is told
