"""Drives left out of the prior, known by their facts, against what was measured of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iojoule.model.fitting.prior.left_out import (
    NOMINAL,
    effective_rows,
    judge_performance,
    judge_power,
)

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the public measurements (../shared/data) are not here"
)


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


@needs_data
@pytest.mark.soak
def test_performance_of_left_out_drives_is_covered() -> None:
    verdicts = {one.quantity: one for one in judge_performance(DATA) if one.device == "all"}
    for name in ("throughput", "mean latency", "p99"):
        assert verdicts[name].p_value > 0.05
        assert verdicts[name].coverage > NOMINAL - 0.05
    assert verdicts["throughput"].median_error < 0.4
    assert verdicts["throughput"].median_ratio < 15


@pytest.mark.slow
@needs_data
def test_power_of_xie_et_al_is_contained_and_not_wide() -> None:
    found = judge_power(DATA)
    assert {one.device for one in found} == {"samsung-pm9a3", "intel-d7-p5510"}
    for one in found:
        assert one.contains
        assert one.times_as_wide <= 3.0
        assert one.least_low <= one.measured_low <= one.least_high
        assert one.most_low <= one.measured_high <= one.most_high
