"""The best of many predictions is flattered by its error; the widened interval covers it."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.predictor import NORMAL_90
from iojoule.recommender.selection import rivals, widening


def test_one_row_needs_no_widening_and_many_need_more() -> None:
    assert widening(1) == pytest.approx(1.0)
    assert widening(20) == pytest.approx(2.8070 / 1.6449, rel=1e-3)  # upper 0.25 % of a normal


def test_rivals_are_the_rows_within_reach() -> None:
    values = np.array([10.0, 10.1, 10.5, 12.0])
    assert rivals(values, np.full(4, 0.1), 0) == 2
    assert rivals(values, np.full(4, 1.0), 0) == 4
    assert rivals(values, np.zeros(4), 0) == 1


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.1, 1.0])
def test_the_chosen_row_is_covered_after_the_choice(spread: float) -> None:
    """Truths `spread` apart, seen with errors of 0.1: coverage before and after, 2,000 draws."""
    rng = np.random.default_rng(7)
    sd, rows, draws = 0.1, 30, 2000
    before = after = 0
    for _ in range(draws):
        truth = 10.0 + spread * rng.standard_normal(rows)
        seen = truth + sd * rng.standard_normal(rows)
        chosen = int(np.argmin(seen))
        half = NORMAL_90 * sd
        error = abs(seen[chosen] - truth[chosen])
        before += error <= half
        after += error <= half * widening(rivals(seen, np.full(rows, sd), chosen))
    if spread < sd:
        assert before / draws < 0.6
    assert after / draws >= 0.9
