"""The public mixes with a share of reads left out, beside taking turns."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.fit.hold_out import MixOutcome, mix_outcomes
from tests.reference_data import PUBLIC_DATA, needs_public_data

pytestmark = [
    pytest.mark.soak,
    needs_public_data,
]


@pytest.fixture(scope="module")
def outcomes() -> list[MixOutcome]:
    return mix_outcomes(PUBLIC_DATA)


def errors(outcomes: list[MixOutcome], name: str) -> np.ndarray:
    return np.abs(np.concatenate([getattr(outcome, name) for outcome in outcomes]))


def test_every_share_of_every_drive_is_left_out(outcomes: list[MixOutcome]) -> None:
    assert len({outcome.drive for outcome in outcomes}) == 3
    assert len(outcomes) == 15


def test_measured_mixes_predict_a_share_left_out_better_than_turns(
    outcomes: list[MixOutcome],
) -> None:
    assert np.median(errors(outcomes, "error")) < 0.5 * np.median(errors(outcomes, "turns"))
    assert np.median(errors(outcomes, "error")) < 0.03


def test_where_no_mix_was_measured_the_law_is_no_worse_than_turns(
    outcomes: list[MixOutcome],
) -> None:
    for figure in (np.mean, np.median):
        untaught, turns = (errors(outcomes, f"untaught{one}") for one in ("", "_turns"))
        assert figure(untaught) <= figure(turns)


def test_intervals_hold_what_they_promise(outcomes: list[MixOutcome]) -> None:
    inside = np.concatenate([outcome.inside for outcome in outcomes])
    # 105 rows of 15 shares move together: about 40 independent ones, 90 % of which vary by 10
    assert 0.8 <= inside.mean() <= 1.0
    assert np.median(np.concatenate([outcome.width for outcome in outcomes])) < 1.3
