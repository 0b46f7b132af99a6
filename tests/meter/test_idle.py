"""Tables of transitions against closed forms, and what must hold whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.api.application.profiles import profile_of
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.drive.transition_table import SleepLatency
from iojoule.meter.idle import (
    IDLE_MILLISECONDS,
    Gaps,
    Rest,
    Sleep,
    best_chain,
    gap_joules,
    outcome,
    recommended,
    saving,
)
from iojoule.meter.idle_watts import AWAKE_LINK_SHARE, rest_of
from iojoule.model.evaluate.bands import Interval
from tests.meter.hosts import declared_state

AWAKE, IDLE, SHALLOW, DEEP = 2.0, 1.2, 0.4, 0.05
ENTRY, EXIT = 0.002, 0.008


def known(watts: float) -> Interval:
    return Interval(watts, watts, watts)


def a_drive(entry_us: int = 2000, exit_us: int = 8000, settle: float = 0.0) -> Rest:
    sleeps = (
        Sleep(SleepLatency(3, 200, 500), known(IDLE - SHALLOW)),
        Sleep(SleepLatency(4, entry_us, exit_us), known(IDLE - DEEP)),
    )
    return Rest(AWAKE, known(IDLE), settle, (0, 1, 2), sleeps, Evidence.MEASURED, ("test",))


def gaps_of(*seconds: float, work: float = 0.0, **ends: bool) -> Gaps:
    values = np.array(seconds)
    return Gaps(values, float(values.sum()) + work, **ends)


def test_fixed_gaps_save_what_is_counted_by_hand() -> None:
    found = saving(a_drive(), gaps_of(*[1.0] * 50, work=50.0), ((4, 100),))
    by_hand = 50 * ((IDLE - DEEP) * (1.0 - 0.1 - ENTRY) - EXIT * (AWAKE - DEEP)) / 100.0
    assert found.value == pytest.approx(by_hand, rel=1e-12)
    # equal gaps and known watts: only what entry and exit cost is not known
    assert found.low == pytest.approx(by_hand, rel=1e-9)
    assert found.high == pytest.approx(50 * (IDLE - DEEP) * 0.9 / 100.0, rel=1e-9)


def test_exponential_gaps_save_the_closed_form() -> None:
    mean, wait = 0.5, 0.2
    gaps = -mean * np.log1p(-(np.arange(200_000) + 0.5) / 200_000)
    found = saving(a_drive(), gaps_of(*gaps), ((4, 200),))
    closed = (IDLE - DEEP) * mean * np.exp(-(wait + ENTRY) / mean)
    closed -= EXIT * (AWAKE - DEEP) * np.exp(-wait / mean)
    assert found.value == pytest.approx(closed / mean, rel=1e-4)


def test_two_states_are_passed_one_after_the_other() -> None:
    chain = ((3, 100), (4, 300))
    first, second = 0.1 + 0.0002, 0.1 + 0.0002 + 0.3 + ENTRY
    joules = gap_joules(a_drive(), chain, np.array([2.0]), ended=True)
    by_hand = IDLE * first + SHALLOW * (second - first) + DEEP * (2.0 - second)
    by_hand += EXIT * (AWAKE - DEEP)
    assert joules == pytest.approx([by_hand], rel=1e-12)
    only_shallow = gap_joules(a_drive(), chain, np.array([0.3]), ended=True)
    by_hand = IDLE * first + SHALLOW * (0.3 - first) + 5e-4 * (AWAKE - SHALLOW)
    assert only_shallow == pytest.approx([by_hand])


def test_a_table_that_sleeps_before_the_drive_settles_saves_from_then_on() -> None:
    joules = gap_joules(a_drive(settle=0.05), ((4, 10),), np.array([1.0]), ended=False)
    by_hand = AWAKE * 0.05 + IDLE * ENTRY + DEEP * (1.0 - 0.05 - ENTRY)
    assert joules == pytest.approx([by_hand], rel=1e-12)


lengths = st.lists(st.floats(0.001, 30.0), min_size=1, max_size=30)
chains = st.sampled_from([(), ((3, 100),), ((4, 2000),), ((3, 100), (4, 2000)), ((4, 10),)])


@given(lengths, st.floats(0.0, 100.0), chains, st.integers(0, 20_000))
def test_the_recommended_table_never_costs_and_keeps_the_bound(
    lengths: list[float], work: float, in_force: tuple[tuple[int, int], ...], bound: int
) -> None:
    rest, gaps = a_drive(), gaps_of(*lengths, work=work)
    latencies = {one.latency.state: one.latency.wake_us for one in rest.sleeps}
    best = best_chain(rest, gaps, bound, in_force)
    assert all(latencies[state] <= bound for state, _ in best)
    assert saving(rest, gaps, best).value >= 0
    if all(latencies[state] <= bound for state, _ in in_force):
        assert saving(rest, gaps, best, in_force).value >= -0.01 * IDLE
        found = outcome(rest, gaps, best, in_force).saving_watts
        assert found.low <= found.value <= found.high
    for row in recommended(rest, gaps, bound, None, None):
        assert row.wake_us <= bound
        assert row.saving_watts.value <= rest.idle_watts.value


@pytest.mark.parametrize("gaps", [gaps_of(work=10.0), gaps_of(*[1e-3] * 5000)])
@pytest.mark.parametrize("in_force", [None, (), ((3, 100),)])
def test_a_busy_drive_saves_nothing_and_keeps_its_table(
    gaps: Gaps, in_force: tuple[tuple[int, int], ...] | None
) -> None:
    best = best_chain(a_drive(), gaps, 20_000, in_force)
    assert best == (in_force or ())
    assert saving(a_drive(), gaps, best, in_force or ()).value == 0.0


def test_a_drive_at_rest_saves_the_whole_difference_at_best_and_nothing_at_worst() -> None:
    gaps = gaps_of(5.0, begun_before=True, ends_after=True)
    found = outcome(a_drive(), gaps, ((4, 10_000),))
    assert found.saving_watts.value == pytest.approx(IDLE - DEEP)
    assert found.saving_watts.low == 0.0
    assert found.wakes_per_hour == 0.0


def test_few_gaps_widen_the_interval() -> None:
    rng = np.random.default_rng(7)
    few = saving(a_drive(), gaps_of(*rng.exponential(1.0, 10)), ((4, 100),))
    many = saving(a_drive(), gaps_of(*rng.exponential(1.0, 1000)), ((4, 100),))
    assert few.high - few.low > 3 * (many.high - many.low)


def test_the_interval_over_gaps_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    chain, mean = ((4, 200),), 0.5
    drive, held = a_drive(entry_us=0, exit_us=0), 0
    true = (IDLE - DEEP) * mean * np.exp(-0.2 / mean)
    for _ in range(300):
        found = saving(drive, gaps_of(*rng.exponential(mean, 60)), chain)
        held += found.low <= true / mean <= found.high
    assert 0.85 <= held / 300 <= 0.95


def test_of_equal_savings_the_fewest_wake_ups_win() -> None:
    gaps = gaps_of(*[20.0] * 10, *[0.011] * 1000)
    ((state, wait),) = best_chain(a_drive(), gaps, 20_000, None)
    assert state == 4
    assert wait > min(IDLE_MILLISECONDS)
    assert outcome(a_drive(), gaps, ((state, wait),)).wakes_per_hour < 200


def test_unknown_watts_widen_the_interval_and_never_turn_it_round() -> None:
    rest = a_drive()
    unsure = tuple(
        replace(one, saved_watts=Interval(one.saved_watts.value, 0.01, IDLE)) for one in rest.sleeps
    )
    gaps = gaps_of(*[1.0] * 20)
    found = saving(replace(rest, sleeps=unsure), gaps, ((4, 100),))
    assert found.low < 0.05 < saving(rest, gaps, ((4, 100),)).value == found.value < found.high


def test_watts_of_the_980_pro_are_those_of_its_profile() -> None:
    profile = profile_of("samsung-980-pro-1tb")
    declared = [
        declared_state(0, True, 8.49, 0, 0, None),
        declared_state(3, False, 0.04, 2000, 1200, None),
        declared_state(4, False, 0.005, 500, 9500, None),
    ]
    rest = rest_of(declared, profile, None, link_sleeps=None)
    assert rest is not None
    assert rest.idle_watts.value == 1.75
    # 1.2 W asleep, of which gaps bring 13 % (000 5.1.1, 5.1.3)
    assert [one.saved_watts.value for one in rest.sleeps] == pytest.approx([0.1301507 * 0.55] * 2)
    assert rest.evidence is Evidence.PUBLISHED


def test_a_link_that_stays_awake_takes_most_of_a_declared_saving() -> None:
    drive = load_catalogue().get("samsung-980-1tb")
    profile = profile_of(drive.id)
    states = drive.power_states
    asleep, awake, unknown = (rest_of(states, profile, drive, one) for one in (True, False, None))
    assert asleep is not None
    assert awake is not None
    assert unknown is not None
    deep = [one.sleeps[-1].saved_watts for one in (asleep, awake, unknown)]
    assert deep[1].value == pytest.approx(AWAKE_LINK_SHARE * deep[0].value)
    assert deep[0].value == deep[2].value
    assert deep[2].low < deep[0].low  # unknown is wider
    assert {one.high for one in deep} == {deep[0].high}


def test_idle_power_that_the_drive_declares_is_enough() -> None:
    declared = [
        declared_state(0, True, 8.5, 0, 0, 1.6),
        declared_state(1, False, 0.4, 10_000, 30_000, 0.4),
        declared_state(2, False, 0.4, None, None, 0.4),  # nobody could bound its wake-up
    ]
    rest = rest_of(declared, None, None, link_sleeps=True)
    assert rest is not None
    assert [one.latency.state for one in rest.sleeps] == [1]
    assert rest.sleeps[0].saved_watts.value == pytest.approx(1.2)
    without = [one.model_copy(update={"idle_power_watts": None}) for one in declared]
    assert rest_of(without, None, None, link_sleeps=True) is None
