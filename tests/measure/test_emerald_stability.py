import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.emerald import stability


@given(value=st.floats(0.01, 1e6), count=st.integers(5, 60))
def test_a_constant_is_stable(value: float, count: int) -> None:
    found = stability([value] * count)
    assert found.stable is True
    assert found.deviation == pytest.approx(0, abs=1e-9)


def test_a_step_has_its_closed_form() -> None:
    """From 0.9 to 1.1: smoothed from the mean on, the low half ends at 1 - 0.1 (1 - 0.75^n)."""
    found = stability([0.9] * 10 + [1.1] * 10)
    assert found.stable is False
    low = 0.1 * (1 - 0.75**10)
    high = 0.1 - (0.1 + low) * 0.75**10
    assert found.deviation == pytest.approx(max(low, high))


def test_scatter_that_averages_out_is_stable_and_a_drift_is_not() -> None:
    assert stability([1.0, 1.1, 0.9] * 10).stable is True
    assert stability([1 + 0.02 * n for n in range(30)]).stable is False


def test_few_periods_say_nothing() -> None:
    assert stability([1.0] * 4).stable is None
    assert stability([0.0] * 10).stable is None
