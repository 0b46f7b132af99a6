import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.characterise.experiments.proportionality import proportionality

SHARES = np.linspace(0, 1, 9)


@given(idle=st.floats(0, 9.9))
def test_a_straight_line_has_its_closed_form(idle: float) -> None:
    """Power idle + (peak - idle) u: the range is 1 - idle / peak, and so is the index."""
    peak = 10.0
    found = proportionality(SHARES, idle + (peak - idle) * SHARES, np.full(9, 1e-6))
    assert found is not None
    assert found.dynamic_range[0] == pytest.approx(1 - idle / peak)
    assert found.index[0] == pytest.approx(1 - idle / peak)
    assert found.curvature[0] == pytest.approx(0, abs=1e-9)


def test_power_that_jumps_at_the_first_work_bends_downwards() -> None:
    found = proportionality(SHARES, 2 + 8 * np.sqrt(SHARES), np.full(9, 0.01))
    assert found is not None
    assert found.curvature[2] < 0
    assert found.index[0] < found.dynamic_range[0]


def test_the_interval_grows_with_the_errors_and_holds_the_value() -> None:
    watts = 2 + 8 * SHARES
    narrow = proportionality(SHARES, watts, np.full(9, 0.01))
    wide = proportionality(SHARES, watts, np.full(9, 0.5))
    assert narrow is not None
    assert wide is not None
    assert wide.index[2] - wide.index[1] > 10 * (narrow.index[2] - narrow.index[1])
    for value, low, high in (narrow.index, wide.index, wide.dynamic_range):
        assert low <= value <= high


def test_what_does_not_begin_at_idle_says_nothing() -> None:
    assert proportionality(SHARES[1:], SHARES[1:], np.ones(8)) is None
    assert proportionality(SHARES[:2], SHARES[:2], np.ones(2)) is None
