"""Plans of a made-up drive: what they keep, what they say where they cannot, how they change."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import InfeasibleError, InputError
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.validity import under
from iojoule.model.prior.host import expected_cpu
from iojoule.recommender.fleet.document import Budget, Fleet, load_fleet
from iojoule.recommender.fleet.modes import DriveModel, cheapest
from iojoule.recommender.fleet.plan import Part, Plan, Tried
from iojoule.recommender.fleet.planner import Planner, host_of
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Scope, parse_workload
from iojoule.sim.workers import open_pool
from iojoule.sim.workers.checkpoint import Kept
from iojoule.sim.workers.local import LocalPool

DEVICE = "samsung-980-pro-1tb"
EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet.toml"


@pytest.fixture(scope="module")
def profile() -> DeviceProfile:
    return load_shipped_profile(DEVICE)


def stated(**more: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "domains": [{"name": "rack", "base_watts": 100.0}],
        "drives": [
            {"name": "a", "device": DEVICE, "count": 20, "domain": "rack", "classes": ["kv"]}
        ],
        "classes": [
            {
                "name": "kv", "workload": {"workload": {"operation": "read"}},
                "demand_bytes_per_second": 10e9, "redirectable": True,
            }
        ],
    }  # fmt: skip
    return data | more


def plan(data: dict[str, Any], profile: DeviceProfile, **asked: Any) -> Plan:
    return Planner(Fleet.model_validate(data), {DEVICE: profile}).plans(**asked)[0]


def test_a_plan_keeps_its_own_promises(profile: DeviceProfile) -> None:
    fleet = load_fleet(EXAMPLE)
    planner = Planner(fleet, {DEVICE: profile})
    for found in planner.plans("most_demand"):
        assert found.budget_watts is not None
        assert found.percentile_watts <= found.budget_watts * (1 + 1e-9)
        assert found.expected_watts <= found.bound_watts <= found.percentile_watts
        assert found.relaxed_objective >= found.objective * (1 - 1e-9)
        for domain in found.domains:
            assert (
                domain.limit_watts is None or domain.percentile_watts <= domain.limit_watts + 1e-6
            )
            assert domain.expected_watts <= domain.percentile_watts
        for group in found.groups:
            assert sum(one.drives for one in group.assignments) == group.count
            for one in group.assignments:
                assert one.load_bytes_per_second <= one.capacity_bytes_per_second * (1 + 1e-6)
        for item in found.classes:
            if item.must:
                assert item.served_bytes_per_second == pytest.approx(item.demand_bytes_per_second)


def test_what_no_drive_serves_is_said_with_its_amount(profile: DeviceProfile) -> None:
    data = stated()
    data["classes"][0]["demand_bytes_per_second"] = 1e12
    with pytest.raises(InfeasibleError, match=r"class kv: .* of 1,000,000 MB/s"):
        plan(data, profile)


def test_a_share_beyond_the_link_is_a_demand_that_the_fleet_cannot_serve(
    profile: DeviceProfile,
) -> None:
    data = stated()
    data["classes"][0] |= {"redirectable": False, "demand_bytes_per_second": 1e12}
    with pytest.raises(InfeasibleError, match="class kv: each of its drives serves the same"):
        plan(data, profile)


def test_a_fleet_whose_drives_all_serve_alike_has_a_frontier(profile: DeviceProfile) -> None:
    data = stated()
    data["classes"][0] |= {"redirectable": False, "demand_bytes_per_second": 1e9}
    planner = Planner(Fleet.model_validate(data), {DEVICE: profile})
    assert planner.budgets_between(points=3)
    with pytest.raises(InputError, match="swap the least and the most"):
        planner.budgets_between(least=500.0, most=400.0)


def test_a_budget_below_rest_says_what_rest_needs(profile: DeviceProfile) -> None:
    with pytest.raises(InfeasibleError, match=r"the fleet may need (\S+) W") as refused:
        plan(stated(), profile, budgets=[Budget(watts=101.0)])
    needed = float(refused.value.args[0].split("may need ")[1].split()[0])
    elastic = stated()
    elastic["classes"][0]["importance"] = 1.0
    (none,) = Planner(Fleet.model_validate(elastic), {DEVICE: profile}).plans(
        "most_demand", budgets=[Budget(watts=needed * 1.001)]
    )
    assert none.percentile_watts <= needed * 1.001


def test_a_limit_below_rest_names_its_domain_and_what_rest_needs(profile: DeviceProfile) -> None:
    def limited(watts: float) -> dict[str, Any]:
        data = stated(domains=[{"name": "rack", "base_watts": 100.0, "limit_watts": watts}])
        data["classes"][0]["importance"] = 1.0
        return data

    with pytest.raises(InfeasibleError, match=r"domain rack may need (\S+) W") as refused:
        plan(limited(101.0), profile, aim="most_demand")
    needed = float(refused.value.args[0].split("may need ")[1].split()[0])
    assert needed > 101.0
    found = plan(limited(needed * 1.001), profile, aim="most_demand")
    assert found.domains[0].percentile_watts <= needed * 1.001


def test_a_limit_of_a_domain_is_as_good_as_a_budget(profile: DeviceProfile) -> None:
    limited = stated(domains=[{"name": "rack", "base_watts": 100.0, "limit_watts": 160.0}])
    limited["classes"][0]["importance"] = 1.0
    free = stated()
    free["classes"][0]["importance"] = 1.0
    one = plan(limited, profile, aim="most_demand")
    other = plan(free, profile, aim="most_demand", budgets=[Budget(watts=160.0)])
    assert one.classes[0].served_bytes_per_second == pytest.approx(
        other.classes[0].served_bytes_per_second, rel=1e-3
    )
    assert one.classes[0].served_bytes_per_second < 10e9


def test_pinned_drives_share_evenly_and_never_rest(profile: DeviceProfile) -> None:
    data = stated()
    data["classes"][0] |= {"redirectable": False, "demand_bytes_per_second": 1e9}
    found = plan(data, profile)
    for one in found.groups[0].assignments:
        assert one.doing == "serving"
        assert one.load_bytes_per_second == pytest.approx(5e7)


def test_standing_by_beats_waiting_where_work_can_move(profile: DeviceProfile) -> None:
    found = plan(stated(), profile)
    doing = {one.doing for one in found.groups[0].assignments}
    assert "standby" in doing
    assert "ready" not in doing


def test_without_a_sleep_state_drives_wait_ready(profile: DeviceProfile) -> None:
    assert profile.idle is not None
    idle = profile.idle.model_copy(
        update={"transitions": [t for t in profile.idle.transitions if t.operational]}
    )
    found = plan(stated(), profile.model_copy(update={"idle": idle}))
    assert {one.doing for one in found.groups[0].assignments} == {"serving", "ready"}
    assert any("no standby" in note for note in found.notes)


def test_nothing_changes_where_nothing_changed(profile: DeviceProfile) -> None:
    budgets = [Budget(seconds=0.0, watts=300.0), Budget(seconds=600.0, watts=300.0)]
    planner = Planner(Fleet.model_validate(stated()), {DEVICE: profile})
    first, second = planner.plans(budgets=budgets)
    assert second.changed_drives == 0
    for then, now in zip(first.groups, second.groups, strict=True):
        for one, other in zip(then.assignments, now.assignments, strict=True):
            assert (one.drives, one.configuration) == (other.drives, other.configuration)
            assert one.load_bytes_per_second == pytest.approx(other.load_bytes_per_second)


def test_the_frontier_rises_with_the_budget(profile: DeviceProfile) -> None:
    planner = Planner(Fleet.model_validate(stated()), {DEVICE: profile})
    points = planner.frontier(planner.budgets_between(points=5))
    served = [point.served_bytes_per_second for point in points]
    assert served == sorted(served)
    assert served[-1] == pytest.approx(10e9, rel=0.01)
    assert all(p.expected_watts <= p.percentile_watts <= p.budget_watts for p in points)


def test_the_frontier_is_the_same_in_other_processes_and_from_what_was_kept(
    profile: DeviceProfile, tmp_path: Path
) -> None:
    planner = Planner(Fleet.model_validate(stated()), {DEVICE: profile})
    budgets = [1.0, *planner.budgets_between(points=3)]
    here = planner.frontier(budgets)
    assert len(here) == 3  # nothing for a watt
    with open_pool(2) as pool:
        kept = Kept(tmp_path, Tried)
        assert planner.frontier(budgets, pool=pool, kept=kept) == here
        kept.close()
    told: list[int] = []
    kept = Kept(tmp_path, Tried)
    again = planner.frontier(budgets, pool=Unused(), kept=kept, done=lambda i, _: told.append(i))
    kept.close()
    assert again == here
    assert told == [0, 1, 2, 3]


class Unused(LocalPool):
    def map(self, function: Any, items: Any, **said: Any) -> list[Any]:
        assert not items
        return []


def test_the_cpu_counts_unless_it_is_told_not_to(profile: DeviceProfile) -> None:
    both = plan(stated(), profile)
    alone = plan(stated(scope="device"), profile)
    assert both.expected_watts > alone.expected_watts
    bare = profile.model_copy(update={"host_power": None})
    with pytest.raises(InputError, match="knows no CPU power"):
        plan(stated(), bare)


def test_reads_and_writes_apart_need_no_more_watts_than_together(profile: DeviceProfile) -> None:
    data = stated()
    data["classes"][0]["workload"] = {
        "workload": {"operation": "mixed", "read_fraction": 0.8, "useful_request_bytes": 65536},
        "state": {"device_state": "cached"},
    }
    together = plan(data, profile)
    data["classes"][0]["segregate"] = True
    assert plan(data, profile).objective <= together.objective * 1.002


SEVERAL_SIZES = {
    "operation": "read", "useful_request_bytes": 19456, "request_bytes_mix": "4096/75:65536/25"
}  # fmt: skip


@pytest.mark.parametrize(
    ("work", "share"),
    [
        ({"operation": "read", "arrival_process": "steady"}, 4096.0),
        ({"operation": "read", "arrival_process": "steady"}, 5e7),
        (SEVERAL_SIZES, 5e7),
    ],
)
def test_a_mode_at_its_share_draws_what_the_recommender_says(
    work: dict[str, Any], share: float, profile: DeviceProfile
) -> None:
    model = DriveModel(profile, 0.9, Scope.DEVICE)
    modes = model.modes(parse_workload({"workload": work}), Part.ALL, None, share)
    recommender = Recommender(profile)
    for mode in modes[:3]:
        asked = parse_workload(
            {
                "workload": work | {"demand_bytes_per_second": share},
                "current": mode.configuration.model_dump(exclude_none=True),
                "free": {}, "scope": "device",
            }
        )  # fmt: skip
        row = recommender.recommend(asked).current
        assert row is not None
        assert row.device_power_watts is not None
        drawn = mode.gap_watts_expected + mode.joules_per_byte_expected * share
        assert drawn == pytest.approx(row.device_power_watts.value, rel=1e-9)


def test_flushes_of_unknown_cost_are_planned_no_more_than_recommended(
    profile: DeviceProfile,
) -> None:
    data = stated()
    flushed = {"operation": "write", "flush_every_writes": 1}
    data["classes"][0]["workload"] = {"workload": flushed}
    with pytest.raises(InfeasibleError, match="what a flush costs is not known"):
        plan(data, profile)


@settings(max_examples=12, deadline=None)
@given(
    st.floats(-5.0, 0.5),
    st.sampled_from([1, 2, 5]),
    st.sampled_from(["read", "write"]),
    st.sampled_from(["device", "device_cpu"]),
)
def test_a_class_that_may_be_moved_takes_no_more_than_one_that_may_not(
    log_load: float, drives: int, operation: str, scope: str
) -> None:
    profile = load_shipped_profile(DEVICE)
    data = stated(scope=scope)
    data["drives"][0]["count"] = drives
    demand = 10.0**log_load * 1e9
    found = []
    for moves in (True, False):
        data["classes"][0] |= {
            "workload": {"workload": {"operation": operation}},
            "demand_bytes_per_second": demand,
            "redirectable": moves,
        }
        try:
            found.append(plan(data, profile).bound_watts)
        except InfeasibleError:
            found.append(np.inf)
    assert found[0] <= 1.01 * found[1]


@pytest.mark.parametrize(("pattern", "size"), [("sequential", 131072), ("random", 4096)])
@pytest.mark.parametrize("demand", [0.2e9, 0.8e9, 1.5e9, 2.0e9])
@pytest.mark.parametrize("drives", [1, 3])
def test_a_tighter_sla_costs_no_less(
    pattern: str, size: int, demand: float, drives: int, profile: DeviceProfile
) -> None:
    def bound_watts(sla: dict[str, float]) -> float:
        data = stated(scope="device", domains=[{"name": "rack"}])
        data["drives"][0]["count"] = drives
        asked = {"operation": "read", "pattern": pattern, "useful_request_bytes": size}
        data["classes"][0] |= {
            "demand_bytes_per_second": demand,
            "workload": {"workload": asked, "sla": sla},
        }
        return plan(data, under(profile, Conditions())).bound_watts

    slas = ({}, {"latency_p99_ns_max": 1e9}, {"latency_p99_ns_max": 5e7})
    loose, *tight = map(bound_watts, slas)
    assert loose <= 1.01 * min(tight)


def test_drives_whose_idle_power_is_hardly_known_rest_rather_than_serve_nothing() -> None:
    profiles = {name: load_shipped_profile(name) for name in ("wd-zn540", DEVICE)}
    work = {
        "operation": "mixed", "read_fraction": 0.21, "pattern": "random",
        "useful_request_bytes": 131072,
    }  # fmt: skip
    groups = [
        {"name": name, "device": name, "count": 50, "domain": "rack", "classes": ["kv"]}
        for name in profiles
    ]
    before = 0.0
    for demand in (6e6, 60e6, 300e6, 600e6):
        asked = {
            "name": "kv", "workload": {"workload": work}, "redirectable": True,
            "demand_bytes_per_second": demand,
        }  # fmt: skip
        data = stated(drives=groups, classes=[asked], scope="device")
        (found,) = Planner(Fleet.model_validate(data), profiles).plans()
        serving = [
            one for group in found.groups for one in group.assignments if one.doing == "serving"
        ]
        assert sum(one.drives for one in serving) <= 2
        assert found.expected_watts >= before
        before = found.expected_watts


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 200))
def test_few_modes_are_as_cheap_as_all_at_any_load(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    gap, capacity = random.uniform(1.0, 3.0, count), random.uniform(1e8, 3e9, count)
    full = gap + random.uniform(0.5, 2.0, count) * capacity * 1e-9
    few = cheapest(np.stack([full, -capacity, gap], axis=1))
    loads = np.concatenate([capacity, random.uniform(0.0, capacity.max(), 1000)])[:, None]
    watts = np.where(capacity >= loads, gap + (full - gap) / capacity * loads, np.inf)
    assert (watts[:, few].min(axis=1) <= 1.01 * watts.min(axis=1)).all()
    assert len(few) < count


def test_where_the_drives_alone_count_nothing_starts_to_poll(profile: DeviceProfile) -> None:
    free = {"engine": ["io_uring"], "completion": ["interrupt", "polled"], "queue_depth": [1, 8]}
    asked = {"workload": {"operation": "read"}, "free": free, "concurrency_max": 8}
    model = DriveModel(profile, 0.9, Scope.DEVICE)
    for completion, may in (("interrupt", {"interrupt"}), ("polled", {"interrupt", "polled"})):
        today = {"engine": "io_uring", "completion": completion}
        modes = model.modes(parse_workload(asked | {"current": today}), Part.ALL, None)
        assert {str(mode.configuration.completion) for mode in modes} <= may


def test_a_file_that_says_the_impossible_is_refused_by_name(tmp_path: Path) -> None:
    for change, said in (
        ({"drives": [{**stated()["drives"][0], "domain": "nowhere"}]}, "no domain 'nowhere'"),
        ({"drives": [{**stated()["drives"][0], "classes": ["x"]}]}, "no class 'x'"),
        ({"domains": [{"name": "rack", "parent": "rack"}]}, "fed by itself"),
        ({"domains": [{"name": "rack"}, {"name": "rack"}]}, "stands there twice"),
        ({"budgets": [{"seconds": 5, "watts": 1}, {"seconds": 5, "watts": 2}]}, "must rise"),
        ({"classes": [{**stated()["classes"][0], "segregate": True}]}, "only a mixed workload"),
        (
            {
                "classes": [
                    stated()["classes"][0]
                    | {"workload": {"workload": {"operation": "read"}, "sla": {"iops_min": 5.0}}}
                ]
            },
            "not for one drive of a fleet",
        ),
    ):
        path = tmp_path / "fleet.json"
        path.write_text(json.dumps(stated(**change)))
        with pytest.raises(InputError, match=said):
            load_fleet(path)


def test_drives_of_one_host_share_what_serving_adds_to_its_cpu(profile: DeviceProfile) -> None:
    """The package wakes up once: more drives on a host never add more, and sometimes less."""
    watts = []
    for count in (1, 2, 4):
        data = stated()
        data["drives"][0]["drives_per_host"] = count
        watts.append(plan(data, profile).expected_watts)
    assert watts[0] > watts[1] > watts[2]


def test_drives_of_different_models_stand_on_one_host(profile: DeviceProfile) -> None:
    other = profile.model_copy(
        update={"device": "other", "host_power": expected_cpu(), "system_power": None}
    )
    data = stated()
    data["drives"] = [
        {**data["drives"][0], "name": name, "device": device}
        for name, device in (("a", "other"), ("b", DEVICE))
    ]
    planner = Planner(Fleet.model_validate(data), {DEVICE: profile, "other": other})
    assert host_of([other, profile]) is profile
    laws = {name: model.profile.host_power for name, model in planner.models.items()}
    assert laws["other"] == laws[DEVICE] == profile.host_power


def test_the_order_of_drives_decides_no_host(profile: DeviceProfile) -> None:
    other = profile.model_copy(update={"device": "other"})
    assert host_of([other, profile]) is host_of([profile, other])


def test_a_drive_at_its_most_draws_no_less_than_recommend_says(profile: DeviceProfile) -> None:
    """Twice as much as it may serve lies on the line from nothing to that, which is too low."""
    workload: dict[str, Any] = {"operation": "read", "pattern": "sequential"}
    sla = {"latency_p99_ns_max": 1e6}
    data = stated()
    data["classes"][0] |= {"workload": {"workload": workload, "sla": sla}}
    watts = []
    for demand in (1.75e8, 2.5e8):
        data["classes"][0]["demand_bytes_per_second"] = demand
        watts.append(plan(data, profile).bound_watts)
    assert watts[0] < watts[1]
    model = DriveModel(profile, 0.9, Scope.DEVICE_CPU)
    asked = parse_workload({"workload": workload, "sla": sla})
    for mode in model.modes(asked, Part.ALL, None):
        load = mode.capacity_bytes_per_second
        exact = model.modes(asked, Part.ALL, None, load * (1 - 1e-9))
        cheapest_there = min(one.gap_watts + load * one.joules_per_byte for one in exact)
        assert mode.gap_watts + load * mode.joules_per_byte >= cheapest_there * (1 - 1e-3)


def test_what_arrives_waits_so_that_a_drive_carries_less_within_a_bound(
    profile: DeviceProfile,
) -> None:
    """A plan promises no load at which `recommend` does not."""
    data = stated()
    workload = {"workload": {"operation": "write", "useful_request_bytes": 8192}}
    bounded: dict[str, Any] = workload | {"sla": {"latency_p99_ns_max": 1e6}}
    data["classes"][0] |= {"workload": bounded, "demand_bytes_per_second": 1e8}
    watts = []
    for demand in (0.7e8, 1e8):
        data["classes"][0]["demand_bytes_per_second"] = demand
        found = plan(data, profile)
        watts.append(found.bound_watts)
        for one in found.groups[0].assignments:
            if one.doing == "serving":
                asked = deepcopy(bounded)
                asked["workload"]["demand_bytes_per_second"] = one.load_bytes_per_second
                answer = Recommender(profile).recommend(parse_workload(asked))
                assert answer.recommended is not None
    assert watts[0] < watts[1]


def test_what_the_optimiser_leaves_open_is_decided_without_presolve(
    profile: DeviceProfile,
) -> None:
    data = stated()
    data["drives"][0] |= {"count": 13, "drives_per_host": 2}
    data["classes"][0] |= {
        "workload": {"workload": {"operation": "write", "useful_request_bytes": 131072}},
        "demand_bytes_per_second": 2.6e9,
    }
    data["domains"][0]["base_watts"] = 0.0
    with pytest.raises(InfeasibleError):
        plan(data, profile)


def test_bounds_for_another_host_are_wider_than_for_the_measured_one(
    profile: DeviceProfile,
) -> None:
    bounds = [
        plan(stated(interval_for=about), profile, gap=0.0001).bound_watts
        for about in ("same-host", "another-host", "another-drive")
    ]
    assert bounds[0] < bounds[1] < bounds[2]
    assert plan(stated(), profile, gap=0.0001).bound_watts == pytest.approx(bounds[1])
