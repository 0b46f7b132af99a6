"""Governor, clock and C-state limit as knobs: listed, refused, or left as they are."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload
from iojoule.recommender.response import Recommendation, Row

WORKLOAD = {
    "operation": "read",
    "useful_request_bytes": 8192,
    "demand_operations_per_second": 30000,
}


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return Recommender(load_shipped_profile("samsung-980-pro-1tb"))


def ask(recommender: Recommender, free: dict[str, Any], **current: Any) -> Recommendation:
    today = {"engine": "io_uring", "queue_depth": 4, "jobs": 4, **current}
    return recommender.recommend(
        parse_workload({"workload": WORKLOAD, "current": today, "free": free})
    )


def only(answer: Recommendation) -> Row:
    (row,) = answer.pareto
    return row


def test_a_lower_clock_draws_less_and_carries_less(recommender: Recommender) -> None:
    slow, fast = (
        only(ask(recommender, {"cpu_frequency_max_hertz": [hertz]})) for hertz in (1e9, 3e9)
    )
    assert slow.configuration.cpu_frequency_max_hertz == 1e9
    assert slow.cpu_power_watts is not None
    assert fast.cpu_power_watts is not None
    assert slow.cpu_power_watts.value < fast.cpu_power_watts.value
    assert slow.capacity_bytes_per_second.value < fast.capacity_bytes_per_second.value


def test_all_is_every_combination_that_the_profile_tells_apart(recommender: Recommender) -> None:
    free = {"cpu_governor": "all", "cpu_frequency_max_hertz": "all", "cstate_limit": "all"}
    answer = ask(recommender, free)
    # as it is, beside two governors, three clocks and four sleep states
    assert answer.counts.total == 3 * 4 * 5
    assert set(answer.free) == set(free)


def test_the_hosts_settings_stay_where_nobody_frees_them(recommender: Recommender) -> None:
    answer = ask(recommender, {"queue_depth": [4, 16]}, cpu_governor="schedutil")
    rows = [answer.current, *answer.pareto]
    assert {row.configuration.cpu_governor for row in rows} == {"schedutil"}
    assert not any("cpu_governor" in note for note in answer.notes)


def test_a_changed_governor_is_said_to_touch_the_whole_host(recommender: Recommender) -> None:
    answer = ask(recommender, {"cpu_frequency_max_hertz": [1e9]})
    assert answer.recommended is not None
    said = any(note.startswith("governor, clock") for note in answer.notes)
    changed = answer.recommended.configuration.cpu_frequency_max_hertz is not None
    assert said == changed


@pytest.fixture(scope="module")
def without_a_clock() -> Recommender:
    return Recommender(load_shipped_profile("wd-zn540"))


@pytest.mark.parametrize(
    ("free", "field"),
    [
        ({"cpu_governor": ["schedutil"]}, "free.cpu_governor"),
        ({"cpu_frequency_max_hertz": [2e9]}, "free.cpu_frequency_max_hertz"),
        ({"cpu_governor": "fast"}, "free.cpu_governor"),
    ],
)
def test_what_the_profile_does_not_know_is_refused(
    without_a_clock: Recommender, free: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        ask(without_a_clock, free)
    assert caught.value.field == field
    assert caught.value.message.startswith(field)


def test_all_of_what_the_profile_does_not_know_is_todays(without_a_clock: Recommender) -> None:
    answer = ask(without_a_clock, {"cpu_governor": "all"})
    assert answer.counts.total == 1
    assert any("cpu_governor" in note for note in answer.notes)
