"""Disks that stand still under a wear budget: brute force at small size, and what must hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iojoule.api.application.profiles import profile_of
from iojoule.datasets.errors import InfeasibleError
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Engine, Evidence
from iojoule.recommender.fleet.document import Budget, Fleet, load_fleet
from iojoule.recommender.fleet.modes import DriveModel, Mode, Rest
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.fleet.planner import Planner
from iojoule.recommender.fleet.program import MB, Before, Program
from iojoule.recommender.request import Scope

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "fleet_disks.toml"


def mode(capacity: float, gap: float, full: float) -> Mode:
    each = (full - gap) / (capacity * MB)
    return Mode(
        Part.ALL,
        Configuration(request_bytes=4096, queue_depth=1, jobs=1, engine=Engine.LIBAIO),
        capacity * MB, gap, gap, each, each, full, Evidence.MEASURED,
    )  # fmt: skip


DISK, FLASH = mode(100.0, 5.0, 6.5), mode(300.0, 1.0, 3.0)
SPINNING, STILL = (
    Rest(0, 5.0, 5.0, 0.0, 0.0),
    Rest(0, 1.0, 1.0, 5.0, 8.0, "standby", 20.0, 50_000.0, 20.0, 8.0),
)
AWAKE, SLUMBER = Rest(0, 1.0, 1.0, 0.0, 0.0), Rest(0, 0.2, 0.2, 0.1, 0.01, "slumber")


def stated(disks: int, ssds: int, archive: float, index: float) -> Fleet:
    def group(name: str, count: int, held: str) -> dict[str, object]:
        return {"name": name, "device": name, "count": count, "domain": "d", "classes": [held]}

    def asked(name: str, demand: float) -> dict[str, object]:
        return {
            "name": name, "workload": {"workload": {"operation": "read"}},
            "demand_bytes_per_second": demand * MB, "redirectable": True,
        }  # fmt: skip

    return Fleet.model_validate(
        {
            "domains": [{"name": "d"}],
            "drives": [group("disk", disks, "archive"), group("flash", ssds, "index")],
            "classes": [asked("archive", archive), asked("index", index)],
        }
    )


MODES = {(0, 0, Part.ALL): (DISK,), (1, 1, Part.ALL): (FLASH,)}
RESTS = [(SPINNING, STILL), (AWAKE, SLUMBER)]


def splits(total: int) -> Iterator[tuple[int, int, int]]:
    """Serving, ready and in standby."""
    for serving, still in itertools.product(range(total + 1), repeat=2):
        if serving + still <= total:
            yield serving, total - serving - still, still


def brute_force(fleet: Fleet, period: float, left: float, before: int) -> float:
    """Least watts over every assignment, written without the program's code."""
    best = inf
    archive, index = (one.demand_bytes_per_second / MB for one in fleet.classes)
    for (serving, ready, still), (ssds, awake, asleep) in itertools.product(
        splits(fleet.drives[0].count), splits(fleet.drives[1].count)
    ):
        stops = max(still - before, 0)
        if serving * 100.0 < archive - 1e-9 or ssds * 300.0 < index - 1e-9 or stops > left:
            continue
        watts = serving * 5.0 + archive * 0.015 + ready * 5.0 + still * 1.0
        watts += stops * 20.0 * 8.0 / period
        if before:  # SSDs that did something else leave Slumber at their full watts
            watts += ssds * 3.0 * 0.01 / period
        watts += ssds * 1.0 + index * 2.0 / 300.0 + awake * 1.0 + asleep * 0.2
        best = min(best, watts)
    return best


@pytest.mark.parametrize(
    ("disks", "ssds", "archive", "index", "period", "left", "before"),
    [
        (4, 2, 150.0, 100.0, 3600.0, 10.0, 0),
        (4, 2, 150.0, 100.0, 3600.0, 1.0, 0),
        (4, 2, 150.0, 100.0, 3600.0, 0.0, 1),
        (5, 1, 50.0, 250.0, 3600.0, 2.7, 1),
        (5, 1, 50.0, 250.0, 30.0, 5.0, 0),  # a start costs more than such a period saves
        (5, 1, 50.0, 250.0, 30.0, 5.0, 3),  # but who stands still already does not start
        (3, 3, 300.0, 600.0, 3600.0, 3.0, 0),
        (4, 2, 380.0, 590.0, 3600.0, 3.0, 2),
    ],
)
def test_the_plan_is_that_of_brute_force(
    disks: int, ssds: int, archive: float, index: float, period: float, left: float, before: int
) -> None:
    fleet = stated(disks, ssds, archive, index)
    was = Before({("disk", "", "", "standby"): before}, period)
    asked = Program(fleet, MODES, RESTS, None, was if before else None, period, [left, None])
    every = {place: asked.upper[place] for place in asked.served}
    # waking takes capacity for as long as it lasts, which brute force leaves out
    found = asked.solve(asked.watts(), asked.must(every), gap=0.0)
    expected = brute_force(fleet, period, left, before)
    assert found is not None
    assert found.objective == pytest.approx(expected, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    left=st.floats(0.0, 12.0), more=st.floats(0.0, 12.0), archive=st.floats(1.0, 900.0),
    period=st.floats(60.0, 86400.0),
)  # fmt: skip
@example(left=0.0, more=4e-8, archive=1.0, period=60.0)
def test_more_wear_never_costs_more_watts(
    left: float, more: float, archive: float, period: float
) -> None:
    fleet = stated(10, 2, archive, 100.0)
    watts = []
    for allowed in (left, left + more):
        asked = Program(fleet, MODES, RESTS, None, None, period, [allowed, None])
        every = {place: asked.upper[place] for place in asked.served}
        found = asked.solve(asked.watts(), asked.must(every), gap=0.0)
        assert found is not None
        assert asked.going_to_standby(found.values, 0) <= allowed + 1e-9
        watts.append(found.objective)
    assert watts[1] <= watts[0] * (1 + 1e-9)


def test_a_class_that_cannot_wait_keeps_its_disks_spinning() -> None:
    fleet = stated(4, 2, 50.0, 50.0)
    classes = (fleet.classes[0].model_copy(update={"wake_seconds_max": 5.0}), fleet.classes[1])
    asked = Program(fleet.model_copy(update={"classes": classes}), MODES, RESTS, None)
    assert [one.rest.word for one in asked.resting if one.group == 0] == ["PS0"]


def test_starts_of_many_disks_count_in_a_period_that_they_fill() -> None:
    """Eight seconds are more than the hundredth of a minute that a limit leaves open."""
    fleet = stated(4, 1, 350.0, 10.0)
    was = Before({("disk", "", "", "standby"): 4}, 600.0)
    short = Program(fleet, MODES, RESTS, None, was, 600.0, [9.0, None])
    long = Program(fleet, MODES, RESTS, None, was, 3600.0, [9.0, None])
    leaving = next(one.leaving for one in short.resting if one.leaving is not None)
    assert short.all_terms[leaving] == STILL.spin_up_watts
    assert leaving not in long.all_terms


@pytest.fixture(scope="module")
def planner() -> Planner:
    fleet = load_fleet(EXAMPLE)
    return Planner(fleet, {one.device: profile_of(one.device) for one in fleet.drives})


def test_forty_disks_and_ten_ssds_keep_their_budget(planner: Planner) -> None:
    plan = planner.plans()[0]
    disks, flash = plan.groups
    doing = {one.doing: 0 for one in (*disks.assignments, *flash.assignments)}
    assert disks.count == 40
    assert flash.count == 10
    for one in disks.assignments:
        doing[one.doing] += one.drives
    assert disks.spin_ups_left is not None
    assert 0 < doing["standby"] == disks.spin_ups <= disks.spin_ups_left
    assert all(one.served_bytes_per_second >= 0.999 * one.demand_bytes_per_second
               for one in plan.classes)  # fmt: skip
    assert 0 < disks.wake_seconds <= 30
    assert flash.spin_ups == 0


def test_a_sequence_never_starts_more_often_than_its_budget(planner: Planner) -> None:
    budgets = [Budget(seconds=3600.0 * hour, watts=600.0) for hour in range(4)]
    plans = planner.plans(budgets=budgets)
    allowed = plans[0].groups[0].spin_ups_left
    assert allowed is not None
    assert sum(plan.groups[0].spin_ups for plan in plans) <= allowed
    assert plans[-1].groups[0].spin_ups_left is not None


def test_a_budget_that_nothing_keeps_says_so_also_after_another(planner: Planner) -> None:
    with pytest.raises(InfeasibleError):
        planner.plans(budgets=[Budget(seconds=0.0, watts=600.0), Budget(seconds=60.0, watts=130.0)])


def test_a_rating_alone_allows_what_five_years_of_it_do(planner: Planner) -> None:
    group = planner.fleet.drives[0].model_copy(update={"spin_ups_per_drive_year": None})
    freed = planner.fleet.model_copy(update={"drives": (group, planner.fleet.drives[1])})
    old, planner.fleet = planner.fleet, freed
    try:
        allowed = planner.spin_ups_allowed(86400.0)
    finally:
        planner.fleet = old
    assert allowed[0] == pytest.approx(40 * 10_000 / 365.25)
    assert allowed[1] is None


def test_what_a_disk_and_a_sata_ssd_rest_in() -> None:
    disk, flash = (
        DriveModel(profile_of(name), 0.9, Scope.DEVICE)
        for name in ("toshiba-dt01aca300", "samsung-860-evo")
    )
    still, slumber = disk.standby(), flash.standby()
    assert still is not None
    assert slumber is not None
    assert (still.word, slumber.word) == ("standby", "slumber")
    assert still.watts < disk.rest().watts
    assert still.spin_up_joules(expected=True) > np.float64(0)
    assert slumber.cycles_rated is None
