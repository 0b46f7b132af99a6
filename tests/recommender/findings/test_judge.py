"""The rules of judging, on cases that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.findings import Asked
from iojoule.recommender.validation.finding_estimates import (
    Estimate,
    Spread,
    difference,
    judge,
    judge_order,
    ratio,
)


def finding(**changes: Any) -> Asked:
    row: dict[str, Any] = {
        "fact_id": "000-001", "section": "1", "class": "micro", "status": "asked", "device": ["a"],
        "quantity": "iops", "form": "ratio", "published": 2.0, "judged": "value", "over": "mean",
        "direction": "up", "configuration": {}, "against": [{"queue_depth": 1}],
    }  # fmt: skip
    row |= changes
    if row["form"] in ("value", "order"):
        row.pop("against")
    return Asked.model_validate(row)


def test_a_value_must_lie_inside_the_interval() -> None:
    assert judge(finding(), [Spread(1.8, 1.5, 2.1)]).magnitude
    assert not judge(finding(), [Spread(1.8, 1.5, 1.9)]).magnitude


@pytest.mark.parametrize(
    ("published", "value", "right"),
    [(2.0, 1.001, True), (2.0, 0.999, False), (1.01, 0.985, True), (1.01, 0.97, False)],
)
def test_direction_is_the_side_of_one_but_for_effects_within_repeats(
    published: float, value: float, right: bool
) -> None:
    verdict = judge(finding(published=published), [Spread(value, 0.1, 10.0)])
    assert verdict.direction is right


def test_up_to_takes_the_most_extreme_setting() -> None:
    row = finding(judged="up to", over="max")
    verdict = judge(row, [Spread(3.0, 2.5, 3.5), Spread(1.5, 1.0, 2.2)])
    assert verdict.predicted == Spread(3.0, 2.5, 3.5)
    assert not verdict.magnitude


def test_a_bound_holds_where_the_interval_reaches_into_it() -> None:
    least = finding(judged="at least", over="min")
    assert judge(least, [Spread(1.5, 1.0, 2.1), Spread(9.0, 8.0, 9.5)]).magnitude
    assert not judge(least, [Spread(1.5, 1.0, 1.9), Spread(9.0, 8.0, 9.5)]).magnitude
    most = finding(judged="at most", over="max", published=0.4, direction="down")
    assert judge(most, [Spread(0.5, 0.39, 0.6)]).magnitude
    assert not judge(most, [Spread(0.5, 0.41, 0.6)]).magnitude


def test_a_range_must_overlap() -> None:
    row = finding(judged="range", published=1.05, published_high=1.17)
    assert judge(row, [Spread(1.3, 1.16, 1.5)]).magnitude
    assert not judge(row, [Spread(1.3, 1.18, 1.5)]).magnitude


@pytest.mark.parametrize(
    ("judged", "value", "right"),
    [("value", 1.9, True), ("value", 2.1, False), ("value", 0.49, False), ("at least", 9.0, True),
     ("at least", 0.4, False), ("at most", 0.01, True), ("at most", 2.1, False)],
)  # fmt: skip
def test_a_level_is_judged_within_a_factor_of_two(judged: str, value: float, right: bool) -> None:
    row = finding(form="value", judged=judged, published=1.0, direction="level")
    assert judge(row, [Spread(value, 0.0, 99.0)]).direction is right


def test_the_same_means_within_a_tenth() -> None:
    row = finding(published=1.0, direction="same")
    assert judge(row, [Spread(1.09, 0.9, 1.2)]).direction
    assert not judge(row, [Spread(1.12, 0.9, 1.2)]).direction


def test_several_settings_are_averaged_in_log_units() -> None:
    found = judge(finding(), [Spread(1.0, 1.0, 1.0), Spread(4.0, 4.0, 4.0)]).predicted
    assert found is not None
    assert found.value == pytest.approx(2.0)


def test_a_ranking_forgives_what_repeats_differ_by() -> None:
    row = finding(
        form="order", judged="order", direction="order", published=None,
        ranked=[{"engine": "a"}, {"engine": "b"}],
    )  # fmt: skip
    assert judge_order(row, [[1.0, 1.015]]).direction
    assert not judge_order(row, [[1.0, 1.03]]).direction
    assert not judge_order(row, [[2.0, 1.0], [1.0, 1.03]]).direction


class _Layout:
    covariance = np.diag([0.04, 0.01])


def _estimate(value: float, shared: tuple[float, float], own: float) -> Estimate:
    return Estimate(value, np.array(shared), own, 0, LAYOUT)  # type: ignore[arg-type]


LAYOUT = _Layout()


def test_what_both_sides_share_cancels_in_a_ratio() -> None:
    a, b = _estimate(3.0, (1.0, 0.0), 0.0), _estimate(2.0, (1.0, 0.0), 0.0)
    found = ratio(a, b)
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_what_is_their_own_adds_up() -> None:
    a, b = _estimate(3.0, (1.0, 0.0), 0.3), _estimate(3.0, (0.0, 1.0), 0.4)
    half = 1.6448536 * np.sqrt(0.04 + 0.01 + 0.09 + 0.16)
    assert np.log(ratio(a, b).high) == pytest.approx(half)


def test_a_difference_weighs_errors_by_the_values() -> None:
    a, b = _estimate(3.0, (1.0, 0.0), 0.0), _estimate(2.0, (1.0, 0.0), 0.0)
    found = difference(a, b)
    assert found.value == 1.0
    assert found.high - found.value == pytest.approx(1.6448536 * 0.2)
