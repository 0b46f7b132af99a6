"""A profile that a user fits, runs in every power state and below full speed, obeys the laws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iojoule.api.validating.campaign import fitted
from iojoule.api.validating.drives import draw_drives
from iojoule.api.validating.laws import subjects
from iojoule.api.validating.truth import WORKS, Grid, tables
from iojoule.recommender.validation.laws import Subject, judge_all

GRID = Grid((4096, 16384, 65536), (1, 4, 16, 64), (1, 4), ("interrupt", "polled"), (0, 1, 2))


@pytest.fixture(
    scope="module",
    params=[pytest.param(0, id="buffered"), pytest.param(2, id="capped", marks=pytest.mark.soak)],
)
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    drive = draw_drives(6, 4)[request.param]
    truth = {work: table for (_, work), table in tables([drive], WORKS, GRID).items()}
    profile = fitted(drive, truth, np.random.default_rng(6), every=True)
    assert profile.write_buffer_bytes is not None
    path: Path = tmp_path_factory.mktemp("fitted") / "profile.json"
    path.write_text(profile.model_dump_json(), encoding="utf-8")
    [found] = subjects([], [path])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("draws", [4, pytest.param(12, marks=pytest.mark.soak)])
def test_the_laws_hold(subject: Subject, draws: int) -> None:
    for found in judge_all(subject, draws=draws, seed=9):
        assert found.obeyed, found.worst
