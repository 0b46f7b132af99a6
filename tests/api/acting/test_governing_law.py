"""The control law of a governor, by simulation: three settings of a made-up drive."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.api.acting.governing.law import (
    Decision,
    Forecast,
    Law,
    Observation,
    Reason,
    Rules,
    shares,
)

RULES = Rules(saving_seconds=10, switches=6, switches_seconds=1000, hold_off_seconds=20)
CAPACITIES = (1500.0, 600.0, 100.0)
IDLE_WATTS = (1.6, 1.45, 1.35)
PER_REQUEST = 0.002
BOUND_SECONDS = 0.03


def latency_seconds(setting: int, rate: float) -> float:
    """A queue that grows without end at its capacity."""
    return 0.008 / (1 - rate / CAPACITIES[setting]) if rate < CAPACITIES[setting] else math.inf


def forecasts(rate: float, known: bool = True) -> list[Forecast]:
    rows = []
    for setting, capacity in enumerate(CAPACITIES):
        watts = IDLE_WATTS[setting] + PER_REQUEST * min(rate, capacity)
        share = latency_seconds(setting, rate) / BOUND_SECONDS
        rows.append(Forecast(watts, watts, share, capacity, known))
    return rows


def follow(
    law: Law,
    rates: Iterable[float],
    *,
    budget: float | None = None,
    worse: float = 1.0,
    begin: float = 0.0,
) -> list[Decision]:
    """One decision a second; the true latency is `worse` times what is forecast."""
    decisions = []
    for second, rate in enumerate(rates):
        share = worse * min(latency_seconds(law.setting, rate), 1.0) / BOUND_SECONDS
        predicted = min(latency_seconds(law.setting, rate), 1.0) / BOUND_SECONDS
        seen = Observation(
            begin + second,
            requests=rate,
            latency_share=share if rate else None,
            predicted_share=predicted,
        )
        decisions.append(law.decide(seen, forecasts(rate), budget))
    return decisions


def test_a_saving_is_taken_once_it_has_lasted() -> None:
    law = Law(RULES)
    made = follow(law, [50] * 20)
    assert [one.setting for one in made] == [0] * 10 + [2] * 10
    assert (made[0].reason, made[10].reason, made[11].reason) == (
        Reason.WAITING,
        Reason.SAVING,
        Reason.CHEAPEST,
    )


def test_a_rise_of_the_demand_is_met_at_once_and_short_quiet_times_are_not_followed() -> None:
    law = Law(RULES, setting=2)
    quiet_and_busy = ([50.0] * 8 + [400.0] * 8) * 5
    made = follow(law, [50.0, 400.0, *quiet_and_busy], worse=0.01)  # too short to be late
    assert (made[1].setting, made[1].reason) == (1, Reason.FORECAST)
    assert {one.setting for one in made[2:]} == {1}


def test_savings_end_with_the_budget_of_switches_and_the_way_back_stays_open() -> None:
    law = Law(RULES)
    made = follow(law, ([50.0] * 15 + [1000.0] * 15) * 10)
    assert sum(one.switched for one in made) == RULES.switches
    assert made[-1].setting == 0
    assert any(one.reason is Reason.NO_SWITCHES for one in made)
    later = follow(law, [50.0] * 12, begin=2000.0)
    assert later[-1].setting == 2, "the window has passed"


def test_a_breach_takes_the_safest_setting_and_holds_it_twice_as_long_the_next_time() -> None:
    law = Law(RULES, setting=2)
    held = []
    for start in (0.0, 300.0):
        law.setting = 2
        breach = Observation(start, requests=100, latency_share=1.5)
        decision = law.decide(breach, forecasts(50))
        assert (decision.setting, decision.reason) == (0, Reason.BREACH)
        held.append(decision.hold_off_seconds)
        calm = Observation(start + held[-1] - 1, requests=100, latency_share=0.3)
        assert law.decide(calm, forecasts(50)).reason is Reason.HOLD_OFF
    assert held == [RULES.hold_off_seconds, 2 * RULES.hold_off_seconds]


@pytest.mark.parametrize(("requests", "breach"), [(0, True), (5, False), (20, True)])
def test_few_requests_say_nothing_unless_none_is_completed(requests: int, breach: bool) -> None:
    assert Observation(0.0, requests=requests, latency_share=1.5).is_breach is breach


def test_what_is_measured_corrects_what_is_forecast() -> None:
    """Twice as late as forecast: a setting that would be too late is not taken."""
    law = Law(RULES)
    made = follow(law, [400.0] * 60, worse=2.0)
    assert math.exp(law.log_latency_correction) == pytest.approx(2.0, rel=0.01)
    assert {one.setting for one in made} == {0}
    trusting = follow(Law(RULES), [400.0] * 60)
    assert trusting[-1].setting == 1


def test_watts_come_first() -> None:
    law = Law(RULES)
    within = follow(law, [400.0] * 3, budget=2.3)
    assert [(one.setting, one.reason) for one in within] == [
        (1, Reason.BUDGET),
        (1, Reason.CHEAPEST),
        (1, Reason.CHEAPEST),
    ]
    [below] = follow(law, [400.0], budget=2.0)
    assert (below.setting, below.reason, below.keeps) == (2, Reason.BUDGET, False)
    [none] = follow(law, [400.0], budget=1.0)
    assert (none.setting, none.reason, none.limit_watts) == (2, Reason.OVER_BUDGET, 1.0)


def test_an_instrument_above_the_budget_ends_what_was_forecast_below_it() -> None:
    law = Law(RULES)
    reasons = []
    for second in range(3):
        seen = Observation(float(second), requests=400, watts=3.0, predicted_watts=2.4)
        reasons.append(law.decide(seen, forecasts(400.0), 2.8).reason)
    assert reasons[:2] == [Reason.WAITING, Reason.OVER_BUDGET]


def test_nothing_is_saved_by_what_nobody_measured_or_while_the_drive_sleeps() -> None:
    law = Law(RULES, setting=1)
    unknown = law.decide(Observation(0.0, requests=50), forecasts(50.0, known=False))
    assert (unknown.setting, unknown.reason) == (0, Reason.NO_EVIDENCE)
    law = Law(RULES)
    for second in range(30):
        asleep = law.decide(Observation(float(second), may_sleep=True), forecasts(0.0))
    assert (asleep.setting, asleep.reason) == (0, Reason.RESTING)


WATTS = st.floats(0.1, 100.0)


@given(st.lists(st.tuples(WATTS, WATTS), min_size=1, max_size=8), st.floats(0.1, 500.0))
def test_shares_add_up_to_the_budget(drives: list[tuple[float, float]], budget: float) -> None:
    floors = [floor for floor, _ in drives]
    needs = [floor + more for floor, more in drives]
    parts = shares(budget, floors, needs)
    assert sum(parts) == pytest.approx(budget)
    if budget >= sum(floors):
        assert all(part >= floor * (1 - 1e-9) for part, floor in zip(parts, floors, strict=True))
    if budget >= sum(needs):
        assert all(part >= need * (1 - 1e-9) for part, need in zip(parts, needs, strict=True))
