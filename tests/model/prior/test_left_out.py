"""Drives left out of the prior, known by their facts, against what was measured of them."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.fit.learn_prior import measured_drives
from iojoule.model.fit.prior_left_out import (
    MEASURED_WATTS,
    NOMINAL,
    WATTS_SETS,
    effective_rows,
    judge_performance,
    judge_power,
    score_drive,
)
from tests.reference_data import PUBLIC_DATA, needs_public_data


def test_rows_of_a_series_that_are_all_alike_are_worth_one() -> None:
    assert effective_rows([[True] * 50, [False] * 50, [True] * 50, [False] * 50]) == pytest.approx(
        4.0, rel=0.1
    )


def test_independent_rows_are_worth_themselves() -> None:
    random = np.random.default_rng(2)
    series = [(random.random(200) < 0.9).tolist() for _ in range(10)]
    assert effective_rows(series) > 1000


def test_one_series_is_worth_one_row() -> None:
    assert effective_rows([[True, False, True]]) == 1.0


@needs_public_data
@pytest.mark.soak
def test_performance_of_left_out_drives_is_covered() -> None:
    verdicts = {(one.device, one.quantity): one for one in judge_performance(PUBLIC_DATA)}
    for name in ("throughput", "mean latency", "p99", "device watts"):
        assert verdicts["all", name].p_value > 0.05
        assert verdicts["all", name].coverage > NOMINAL
    assert verdicts["all", "throughput"].median_error < 0.4
    assert verdicts["all", "device watts"].median_ratio < 2.5
    told = ("samsung-980-pro-1tb", "samsung-860-pro", "kingston-dc500m")  # by a data sheet
    assert all(verdicts[name, "throughput"].median_ratio < 3.5 for name in told)


@pytest.mark.slow
@needs_public_data
def test_every_figure_of_a_left_out_drive_is_judged() -> None:
    device = "samsung-980-pro-1tb"
    watts = [
        one
        for one in score_drive(device, measured_drives(PUBLIC_DATA), PUBLIC_DATA)
        if one.quantity == "device watts"
    ]
    assert {watt.series.removeprefix(f"{device} ") for watt in watts} == set(WATTS_SETS[device])
    assert np.mean([watt.inside for watt in watts]) > NOMINAL


@pytest.mark.soak
@needs_public_data
def test_measured_powers_are_contained_and_where_a_sheet_is_known_not_wide() -> None:
    found = judge_power(PUBLIC_DATA)
    assert {one.device for one in found} == set(MEASURED_WATTS)
    assert all(one.contains for one in found)
    assert sum(one.has_sheet for one in found) == 4  # too few to claim a coverage of
    assert np.median([one.most_ratio for one in found if one.has_sheet]) <= 2.5
    assert all(one.most_ratio > 4.0 for one in found if not one.has_sheet)
