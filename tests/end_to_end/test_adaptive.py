"""Adaptive campaigns on simulated drives: a good answer in a fraction of the hours."""

from pathlib import Path

import pytest

from tests.end_to_end.rehearsal import adaptive, factorial_hours
from tests.end_to_end.simulated_drives import case


@pytest.mark.soak
@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_three_per_cent_regret_in_fifteen_per_cent_of_the_hours(
    number: int, tmp_path: Path
) -> None:
    one = case(number)
    found = adaptive(one, 0.15 * factorial_hours(one), tmp_path / "campaign")
    assert found.feasible
    assert found.regret <= 0.03
