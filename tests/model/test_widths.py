"""Widths: of few scores, of many, and on the profile's own answers."""

import numpy as np
import pytest

from iojoule.model.fit.surfaces import fit_surfaces
from iojoule.model.fit.widths import (
    FLOOR_SD,
    QUANTILE,
    TELLING_SCORES,
    conformal_factor,
    interval_widths,
    width_factor,
)
from iojoule.model.recipe import generic_recipe
from tests.model.conftest import Maker


def test_without_scores_the_public_drives_tell_the_width() -> None:
    assert width_factor(np.zeros(0)) == pytest.approx(QUANTILE)
    found = interval_widths({}, ["latency", "p99"])
    assert {(one.quantity, one.region, one.scores) for one in found} == {
        (name, region, 0) for name in ("latency", "p99") for region in ("inside", "outside")
    }
    assert {one.factor for one in found} == {QUANTILE}


def test_few_scores_move_the_scale() -> None:
    # five scores of 1 are as many as the prior counts for: nothing changes
    assert width_factor(np.ones(5)) == pytest.approx(QUANTILE)
    assert width_factor(np.full(5, 3.0)) == pytest.approx(QUANTILE * np.sqrt(5.0))
    assert width_factor(np.full(15, 0.0)) == pytest.approx(QUANTILE / 2.0)


def test_many_scores_tell_their_own_quantile() -> None:
    scores = np.abs(np.random.default_rng(1).normal(size=TELLING_SCORES))
    assert width_factor(scores) == conformal_factor(scores)


def test_more_rows_of_a_smooth_drive_narrow_the_answer(measure: Maker) -> None:
    factors = []
    for depths in ((1, 16, 256), (1, 4, 16, 64, 256), (1, 2, 4, 8, 16, 32, 64, 128, 256)):
        rows = measure(sizes=(4096,), depths=depths)
        fit = fit_surfaces(generic_recipe("truth", "Truth"), rows, None)[0]
        own = {(w.quantity, w.region): w for w in fit.exported().widths}
        assert own["latency", "inside"].scores == len(depths) - 2
        assert own["latency", "inside"].floor_sd == FLOOR_SD["latency"]
        factors.append(own["latency", "inside"].factor)
    assert factors[0] > factors[1] > factors[2]
