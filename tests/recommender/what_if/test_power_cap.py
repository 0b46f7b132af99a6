"""A power cap for a while: what keeps it, what waits, and what that costs afterwards."""

from __future__ import annotations

import pytest

from iojoule.recommender.request import Scope
from iojoule.recommender.what_if.compare import Answerer
from iojoule.recommender.what_if.outcome import CapWhile


def capped(answerer: Answerer, cap: object, **changes: object) -> CapWhile:
    found = answerer.ask({"cap": cap, **changes}).changed.cap
    assert found is not None
    return found


def test_a_cap_above_what_is_drawn_changes_nothing(answerer: Answerer) -> None:
    found = capped(answerer, 1000)
    assert found.kept_by == "nothing to do"
    assert found.served_share == 1.0
    assert found.deferred_bytes == 0.0
    assert found.joules == found.joules_without
    assert found.catch_up_seconds == 0.0


def test_what_is_drawn_meanwhile_keeps_the_cap_with_the_stated_confidence(
    answerer: Answerer,
) -> None:
    for watts in (3.5, 2.8, 2.5):
        found = capped(answerer, f"device power <= {watts} W for 30 min")
        assert found.scope is Scope.DEVICE
        assert found.seconds == 1800.0
        if found.power_watts is not None:
            assert found.power_watts.value <= watts


def test_a_tighter_cap_never_serves_more(answerer: Answerer) -> None:
    shares = [
        capped(answerer, f"device power <= {watts} W").served_share
        for watts in (3.2, 2.9, 2.7, 1.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[-1] == 0.0


def test_work_that_waits_is_the_share_that_is_not_served(answerer: Answerer) -> None:
    found = capped(answerer, "device power <= 2.8 W for 1 h")
    assert found.kept_by == "less work"
    demand = answerer.base_side.answer.demand_bytes_per_second
    assert demand is not None
    assert found.deferred_bytes == pytest.approx((1 - found.served_share) * demand * 3600)
    assert found.catch_up_seconds is not None
    assert found.catch_up_joules is not None
    assert found.catch_up_seconds > 0
    assert found.catch_up_joules > 0
    twice = capped(answerer, "device power <= 2.8 W for 2 h")
    assert twice.catch_up_seconds == pytest.approx(2 * found.catch_up_seconds)


def test_below_idle_power_nothing_is_done_and_the_answer_says_by_how_much(
    answerer: Answerer,
) -> None:
    found = capped(answerer, "device power <= 0.5 W")
    assert found.kept_by == "nothing"
    assert found.row is None
    assert found.least_watts is not None
    assert f"{found.least_watts - 0.5:.3g} W more" in found.reason


def test_drives_that_rest_keep_a_cap_that_all_of_them_awake_do_not(answerer: Answerer) -> None:
    both = {"drives": 4, "workload.arrival_process": "poisson", "growth": 0.2}
    found = [capped(answerer, f"device power <= {w} W", **both) for w in (9.5, 8.0)]
    rests = [one for one in found if one.kept_by == "fewer drives"]
    assert rests
    for one in rests:
        assert one.served_share == 1.0
        assert 1 <= one.active_drives < 4
