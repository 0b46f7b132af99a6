"""Stages from plan to plan: everything is changed in the end, no limit is broken on the way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.recommender.fleet.plan import Assignment, GroupPlan, Plan, rollout


def assignment(drives: int, watts: float) -> Assignment:
    """Drives that rest at so many watts: told apart by them."""
    return Assignment(
        drives=drives, doing="ready", workload_class=None, part=None, configuration=None,
        power_state=round(watts), load_bytes_per_second=0.0, capacity_bytes_per_second=0.0,
        watts=watts, watts_bound=watts, peak_watts=watts, evidence=None,
    )  # fmt: skip


def plan(*groups: dict[float, int]) -> Plan:
    return Plan(
        fleet="f", aim="least_watts", budget_watts=None, from_seconds=0.0, period_seconds=1.0,
        percentile=0.99, confidence=0.9, percentile_watts=0.0, expected_watts=0.0,
        bound_watts=0.0, classes=[], domains=[],
        groups=[
            GroupPlan(
                name=f"g{i}", device="d", domain=f"d{i % 2}", count=sum(group.values()),
                assignments=[assignment(n, watts) for watts, n in group.items() if n],
            )
            for i, group in enumerate(groups)
        ],
        changed_drives=0, transition_seconds=0.0, objective=0.0, relaxed_objective=0.0,
        optimality_gap=0.0, notes=[],
    )  # fmt: skip


def drawn(found: Plan, domain: str) -> float:
    return sum(
        one.drives * one.peak_watts
        for group in found.groups
        if group.domain == domain
        for one in group.assignments
    )


SPLIT = st.lists(st.integers(0, 50), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SPLIT, st.permutations([0, 1, 2])), min_size=1, max_size=4))
def test_all_is_changed_and_no_domain_draws_more_than_before_or_after(
    groups: list[tuple[list[int], list[int]]],
) -> None:
    levels = (1.0, 3.0, 9.0)
    before = plan(*(dict(zip(levels, split, strict=True)) for split, _ in groups))
    after = plan(
        *(dict(zip(levels, (split[i] for i in order), strict=True)) for split, order in groups)
    )
    stages = rollout(before, after)
    moved: dict[tuple[str, int], int] = {}
    for stage in stages:
        for move in stage.moves:
            key = (move.group, move.before.power_state)
            moved[key] = moved.get(key, 0) - move.drives
            key = (move.group, move.after.power_state)
            moved[key] = moved.get(key, 0) + move.drives
        for domain, watts in stage.peak_watts.items():
            most = max(drawn(before, domain), drawn(after, domain))
            # rounding up to whole drives may put one drive of each kind ahead of its stage
            assert watts <= most + 8.0 * 6 * len(groups) + 1e-9
    for old, new in zip(before.groups, after.groups, strict=True):
        have = {a.power_state: a.drives for a in old.assignments}
        want = {a.power_state: a.drives for a in new.assignments}
        for state in have.keys() | want.keys():
            change = want.get(state, 0) - have.get(state, 0)
            assert moved.get((old.name, state), 0) == change


def test_the_first_stage_is_small_and_everywhere() -> None:
    before = plan({9.0: 1000, 1.0: 0}, {9.0: 500, 1.0: 0})
    after = plan({9.0: 0, 1.0: 1000}, {9.0: 0, 1.0: 500})
    first, *_, last = rollout(before, after)
    assert {move.group: move.drives for move in first.moves} == {"g0": 10, "g1": 5}
    assert sum(move.drives for move in last.moves) == 750


def test_falling_power_goes_first() -> None:
    stages = rollout(plan({9.0: 10, 1.0: 10}, {9.0: 0, 1.0: 10}),
                     plan({9.0: 0, 1.0: 20}, {9.0: 10, 1.0: 0}))  # fmt: skip
    for stage in stages:
        changes = [move.peak_watts_change for move in stage.moves]
        assert changes == sorted(changes)


def test_nothing_to_do_has_no_stages() -> None:
    assert rollout(plan({9.0: 3}), plan({9.0: 3})) == []


@pytest.mark.parametrize("shares", [(), (0.5,), (0.5, 0.1, 1.0), (0.0, 1.0)])
def test_shares_that_do_not_rise_to_all_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="shares must rise"):
        rollout(plan({9.0: 3}), plan({1.0: 3}), shares)


def test_other_drives_are_refused() -> None:
    with pytest.raises(InputError, match="differ in how many"):
        rollout(plan({9.0: 3}), plan({9.0: 4}))
    with pytest.raises(InputError, match="only the first plan"):
        rollout(plan({9.0: 3}, {9.0: 1}), plan({9.0: 3}))
