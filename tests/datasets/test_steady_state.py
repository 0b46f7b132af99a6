"""SNIA's definition of the steady state, on series whose answer is known."""

import pytest

from iojoule.datasets.steady_state import steadiness


def test_fewer_than_five_rounds_say_nothing() -> None:
    assert steadiness([1.0] * 4) is None


def test_a_constant_is_steady() -> None:
    found = steadiness([3.0] * 5)
    assert found is not None
    assert found.steady
    assert (found.excursion, found.slope) == (0.0, pytest.approx(0.0, abs=1e-12))


@pytest.mark.parametrize(
    ("rounds", "steady"),
    [
        ([100, 91, 100, 91, 100], True),  # 9 % apart, no trend
        ([100, 79, 100, 79, 100], False),  # 23 % apart
        ([100, 98, 96, 94, 92], True),  # a slope of 8 % over the window
        ([100, 97, 94, 91, 88], False),  # 13 %
    ],
)
def test_excursion_and_slope_are_bounded(rounds: list[float], steady: bool) -> None:
    found = steadiness(rounds)
    assert found is not None
    assert found.steady is steady


def test_only_the_last_five_rounds_count() -> None:
    found = steadiness([500, 300, 200, *[100] * 5])
    assert found is not None
    assert found.steady
