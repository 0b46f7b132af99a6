"""The judge of the laws: it finds what is broken and nothing else; and what holds today."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from iojoule.api.validating.laws import subjects
from iojoule.datasets.errors import InputError
from iojoule.recommender.validation.laws import (
    LAWS,
    Finding,
    Law,
    NotApplicableError,
    Subject,
    judge,
    judge_all,
)
from iojoule.recommender.validation.laws.subject import figure, number
from tests.recommender.validation.toy import Toy, estimate

EXCUSABLE = {13, 14, 15}
NUMBERS = [one.number for one in LAWS]
BY_NUMBER = {one.number: one for one in LAWS}

SATA = "samsung-850-evo"
OTHERS = ("samsung-860-pro", "wd-zn540", SATA, "intel-660p-2tb", "kioxia-cd8", "micron-7450")


@cache
def shipped(device: str) -> Subject:
    [subject] = subjects([device], [])
    return subject


def law_of(check: Any) -> Law:
    return replace(BY_NUMBER[1], check=check)


def test_there_are_nineteen_laws_and_three_may_be_excused() -> None:
    assert list(range(1, 20)) == NUMBERS
    assert {one.number for one in LAWS if one.expected_failure} == EXCUSABLE
    assert all(one.title and one.text and one.checked for one in LAWS)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("device", ["samsung-980-pro-1tb", SATA])
def test_physics_in_closed_form_obeys(device: str, number: int) -> None:
    found = judge(Toy(device=device), BY_NUMBER[number], draws=8)
    assert found.worst is None
    assert found.verdict == "holds"


@pytest.mark.parametrize("number", NUMBERS)
def test_what_breaks_a_law_is_caught(number: int) -> None:
    found = judge(Toy(broken=number), BY_NUMBER[number], draws=8)
    assert found.failures
    assert found.verdict == ("expected failure" if number in EXCUSABLE - {14} else "fails")


def test_breaking_a_law_in_another_way_is_caught_too() -> None:
    class PollsWhatItDoesNotKnow(Toy):
        def _candidates(self, *asked: Any) -> list[dict[str, Any]]:
            return [one | {"completion": "polled"} for one in super()._candidates(*asked)]

    class Widens(Toy):
        def predict_under(self, conditions: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
            if conditions.get("temperature_celsius_mean", 100) < 60:
                raise InputError("stale", field="temperature_celsius_mean")
            return super().predict_under(conditions, row)

    class SavesMoreThanAll(Toy):
        def _saving(self, *asked: Any) -> dict[str, Any]:
            return super()._saving(*asked) | {"percent": estimate(50.0, 20.0, 120.0)}

    class CallsItProven(Toy):
        def _saving(self, *asked: Any) -> dict[str, Any]:
            return super()._saving(*asked) | {"verdict": "proven"}

        def row(self, *asked: Any, **more: Any) -> dict[str, Any]:
            found = super().row(*asked, **more)
            found["device_power_watts"] |= {"evidence": "published"}
            return found

    broken = {3: PollsWhatItDoesNotKnow(3), 14: SavesMoreThanAll(), 16: Widens(),
              17: CallsItProven()}  # fmt: skip
    for place, subject in broken.items():
        assert judge(subject, BY_NUMBER[place], draws=24).verdict == "fails", place


def test_the_same_seed_asks_the_same() -> None:
    once, again, other = (judge(Toy(broken=6), BY_NUMBER[6], 2, seed) for seed in (1, 1, 2))
    assert once.failures == again.failures
    assert once.failures != other.failures


def test_a_draw_can_be_repeated_alone() -> None:
    many = judge(Toy(broken=12), BY_NUMBER[12], draws=3)
    assert {one.draw for one in many.failures} == {0, 1, 2}


def test_an_interface_that_is_not_there_fails_the_law() -> None:
    def asks(subject: Subject, source: np.random.Generator) -> Iterator[Finding]:
        subject.recommend({"workload": {"operation": "read"}, "no_such_field": 1})
        yield Finding("probe", "", "", holds=True)

    found = judge(shipped("samsung-980-pro-1tb"), law_of(asks), draws=2)
    assert found.verdict == "fails"
    assert "no_such_field" in found.failures[0].seen
    assert not found.obeyed


def test_an_answer_of_another_form_fails_the_law() -> None:
    class Bare(Toy):
        def recommend(self, workload: Mapping[str, Any]) -> dict[str, Any]:
            return {}

    assert judge(Bare(), BY_NUMBER[8], draws=1).verdict == "fails"


def test_refusals_alone_judge_nothing() -> None:
    def refused(subject: Subject, source: np.random.Generator) -> Iterator[Finding]:
        raise InputError("no", field="x")
        yield

    def nothing(subject: Subject, source: np.random.Generator) -> Iterator[Finding]:
        raise NotApplicableError("no power is known")
        yield

    found = judge(Toy(), law_of(refused), draws=3)
    assert (found.verdict, dict(found.refused), found.obeyed) == ("not judged", {"no": 3}, False)
    found = judge(Toy(), law_of(nothing), draws=3)
    assert (found.verdict, found.obeyed) == ("does not apply", True)
    assert found.record()["reason"] == "no power is known"


def test_an_excuse_does_not_cover_another_failure() -> None:
    def both(subject: Subject, source: np.random.Generator) -> Iterator[Finding]:
        yield Finding("wide", "", "", holds=False, severity=9.0, excused="more drives")
        if source.random() < 0.5:
            yield Finding("false", "", "", holds=False, severity=0.1)

    found = judge(Toy(), law_of(both), draws=20)
    assert found.verdict == "fails"
    assert found.worst is not None
    assert found.worst.probe == "false"


def test_an_unbounded_end_is_infinite() -> None:
    assert number("unbounded") == math.inf
    row = {"late": estimate(1.0, 0.5, "unbounded")}  # type: ignore[arg-type]
    found = figure(row, "late")
    assert found is not None
    assert (found.low, found.high) == (0.5, math.inf)
    assert figure({"late": None}, "late") is None


@pytest.mark.parametrize("number", NUMBERS)
def test_the_shipped_profile_obeys(number: int) -> None:
    found = judge(shipped("samsung-980-pro-1tb"), BY_NUMBER[number], draws=2)
    assert found.obeyed, found.worst


def draws_of(number: int, most: int) -> int:
    """How often to draw for a law: one draw of the seventh asks for some thirty answers."""
    return max(most // 5, 1) if number == 7 else most


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_the_shipped_profile_obeys_more_draws(number: int) -> None:
    draws = draws_of(number, 10)
    found = judge(shipped("samsung-980-pro-1tb"), BY_NUMBER[number], draws=draws, seed=1)
    assert found.obeyed, found.worst


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_other_drives_obey(number: int) -> None:
    for device in OTHERS:
        found = judge(shipped(device), BY_NUMBER[number], draws=draws_of(number, 3), seed=2)
        assert found.obeyed, (device, found.worst)


@pytest.mark.soak
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("device", ["samsung-980-pro-1tb", *OTHERS])
def test_every_drive_obeys_hundreds_of_draws(device: str, number: int) -> None:
    found = judge(shipped(device), BY_NUMBER[number], draws=300, seed=3)
    assert found.obeyed, found.worst


def test_every_law_is_judged_in_turn() -> None:
    found = list(judge_all(Toy(), draws=1, laws=LAWS[11:14]))
    assert [one.law.number for one in found] == [12, 13, 14]
