"""Bars: how many of 200 recommendations break their SLA, and what they cost beyond the best.

The first judgement of a seed simulates for some minutes; truth is kept in build/truth.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from iojoule.api.cli.validate_recommendations import CASES, SEED
from iojoule.api.validating.judging import Outcome
from iojoule.api.validating.recommendations import validate
from iojoule.api.validating.report import MOST_DECLINED, MOST_REGRET, Summary, summaries
from iojoule.recommender.rows import LIKELY

KEPT = Path(__file__).parents[2] / "build" / "truth"


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    begun = time.perf_counter()
    found = validate(CASES, SEED, kept=KEPT)
    took = time.perf_counter() - begun
    print(f"\n{CASES} questions in {took:.0f} s")
    for one in summaries(found):
        print(one.model_dump_json(indent=2))
    return found


@pytest.fixture(scope="module")
def ours(outcomes: list[Outcome]) -> Summary:
    return summaries(outcomes)[0]


def test_no_more_picks_break_their_sla_than_stated(ours: Summary) -> None:
    assert ours.violated.share is not None
    assert ours.violated.share <= ours.stated
    every = ours.bounds[-1]
    assert every.share.share is not None
    assert every.share.share <= every.stated


def test_savings_are_covered_after_the_choice(ours: Summary) -> None:
    assert ours.savings_covered.high >= 0.9
    assert ours.false_savings.low <= 0.05


def test_point_predictions_break_more(outcomes: list[Outcome]) -> None:
    ours, _, points = summaries(outcomes)
    assert points.violated.share is not None
    assert ours.violated.share is not None
    assert points.violated.share > ours.violated.share


@pytest.mark.xfail(reason="missed, see docs/validation.md")
def test_little_is_declined_that_is_possible(ours: Summary) -> None:
    assert ours.declined_possible.share is not None
    assert ours.declined_possible.share <= MOST_DECLINED


def test_changes_save(ours: Summary) -> None:
    assert ours.changes_that_save.share is not None
    assert ours.changes_that_save.share >= LIKELY


@pytest.mark.xfail(reason="missed, see docs/validation.md")
def test_mean_regret_is_small(ours: Summary) -> None:
    assert ours.regret is not None
    assert ours.regret.mean <= MOST_REGRET
