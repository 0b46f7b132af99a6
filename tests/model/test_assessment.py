"""What a profile says of its own errors must be what leaving out shows."""

import numpy as np
import pytest

from iojoule.datasets.profile import Assessment, DeviceProfile
from iojoule.model.fit.backtest import (
    JUDGED_MAX,
    POINTS_MAX,
    interval_scores,
    judge,
    judge_intervals,
)
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.surfaces import fit_surfaces
from iojoule.model.fit.widths import held_out
from iojoule.model.recipe import generic_recipe
from tests.model.conftest import Maker


def fitted(measure: Maker, **how: object) -> DeviceProfile:
    return fit_profile(generic_recipe("truth", "Truth"), measure(**how), [])


@pytest.fixture(scope="module")
def assessment(measure: Maker) -> Assessment:
    found = fitted(measure, jobs=(1, 4), noise=0.01, watts=True).assessment
    assert found is not None
    return found


def test_errors_of_a_drive_within_the_family_are_smaller_than_the_baselines(
    assessment: Assessment,
) -> None:
    inside = [
        one
        for one in assessment.held_out
        if one.region == "inside" and one.quantity == "throughput_bytes_per_second"
    ]
    assert {one.left_out for one in inside} == {"queue_depth", "request_bytes"}
    for one in inside:
        assert one.median_error <= one.p90_error
        assert one.median_error < one.baseline_median_error
        assert one.covered <= one.interval_rows <= one.rows


def test_values_add_up_to_the_whole_axis(assessment: Assessment) -> None:
    for axis in ("queue_depth", "request_bytes"):
        own = [
            one
            for one in assessment.held_out
            if one.left_out == axis and one.quantity == "latency_mean_ns"
        ]
        whole = sum(one.rows for one in own if one.value is None)
        assert whole == sum(one.rows for one in own if one.value is not None)


def test_interval_scores_are_those_of_the_report(measure: Maker) -> None:
    fit = fit_surfaces(generic_recipe("truth", "Truth"), measure(noise=0.02), None)[0]
    outcomes = [
        one
        for fold, model in held_out(fit.rows, fit.fitted)
        for one in judge(fit.rows, fold, model)
        if one.quantity == "mean latency"
    ]
    scores = [
        interval_score
        for interval_score in interval_scores(outcomes, "model")
        if interval_score is not None
    ]
    verdict = judge_intervals(outcomes, "model")
    assert verdict.rows == len(scores)
    assert verdict.covered == sum(covered for covered, _ in scores)
    assert verdict.score == pytest.approx(np.mean([score for _, score in scores]))


def test_points_are_the_ratio_of_observed_to_answered(assessment: Assessment) -> None:
    (points,) = assessment.performance
    assert points.total == len(points.latency) == 30
    assert set(points.path) == {"io_uring/interrupt/none"}
    assert np.median(np.abs(points.latency)) < 0.02
    assert assessment.power is not None
    # the drive draws 2.5 W + 0.6 nJ a byte + 1 uJ a read, exactly
    assert np.abs(assessment.power.watts).max() < 0.01


def test_many_rows_leave_few_points(measure: Maker) -> None:
    sizes = tuple(4096 * 4**step for step in range(3))
    rows = measure(sizes=sizes, depths=tuple(range(1, 16)), jobs=(1, 2, 3, 4, 5, 6), watts=True)
    found = fit_profile(generic_recipe("truth", "Truth"), rows, []).assessment
    assert found is not None
    (points,) = found.performance
    assert points.total == len(rows) > POINTS_MAX
    assert len(points.latency) == POINTS_MAX
    judged = [one.rows for one in found.held_out if one.value is None]
    assert sum(judged) <= 3 * (JUDGED_MAX + 20)
    assert len(set(zip(points.request_bytes, points.queue_depth, points.jobs, strict=True))) == (
        POINTS_MAX
    )


def test_too_few_rows_leave_nothing_to_judge(measure: Maker) -> None:
    found = fitted(measure, sizes=(4096,), depths=(1, 4)).assessment
    assert found is not None
    assert found.held_out == []
    assert found.power is None
