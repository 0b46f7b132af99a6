"""Shapley values: known numbers, their axioms, and how far the closed form is from them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.meter.shapley import exact_shapley, sampled_shapley, saturating_shapley

Floats = NDArray[np.float64]
LOADS = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=6).map(np.array)


def saturating(loads: Floats, scale: float, amplitude: float) -> Callable[[Floats], float]:
    return lambda members: float(amplitude * -np.expm1(-loads[members].sum() / scale))


def test_three_users_of_a_concave_drive() -> None:
    # 90, 9 and 1 k IOPS; 4.87 W together
    value = saturating(np.array([90.0, 9.0, 1.0]), 60.0, 6.0)
    assert exact_shapley(value, 3) == pytest.approx([4.302, 0.508, 0.057], abs=5e-4)


def test_of_a_linear_cost_the_share_is_proportional() -> None:
    loads = np.array([90.0, 9.0, 1.0])
    shares = exact_shapley(lambda members: 0.05 * loads[members].sum(), 3)
    assert shares == pytest.approx(0.05 * loads)


def test_of_a_drive_that_is_on_if_used_the_share_is_equal() -> None:
    shares = exact_shapley(lambda members: 2.0 * members.any(), 3)
    assert shares == pytest.approx([2 / 3] * 3)


@given(LOADS, st.floats(1.0, 200.0))
def test_axioms(loads: Floats, scale: float) -> None:
    players = len(loads)
    value = saturating(np.append(loads, [0.0, loads[0]]), scale, 1.0)
    shares = exact_shapley(value, players + 2)
    assert shares.sum() == pytest.approx(value(np.ones(players + 2, dtype=bool)), abs=1e-12)
    assert shares[players] == pytest.approx(0.0, abs=1e-12)
    assert shares[players + 1] == pytest.approx(shares[0], abs=1e-12)


@given(LOADS, st.floats(1.0, 200.0))
def test_the_integral_is_the_sum_over_coalitions(loads: Floats, scale: float) -> None:
    exact = exact_shapley(saturating(loads, scale, 3.0), len(loads))
    assert saturating_shapley(loads, scale, 3.0) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(LOADS, st.integers(0, 1 << 30))
def test_sampled_orders_agree_within_their_error(loads: Floats, seed: int) -> None:
    value = saturating(loads, 60.0, 6.0)
    sampled = sampled_shapley(value, len(loads), orders=200, generator=np.random.default_rng(seed))
    exact = exact_shapley(value, len(loads))
    assert np.all(np.abs(sampled.joules - exact) <= 6 * sampled.standard_error + 1e-9)
    assert sampled.joules.sum() == pytest.approx(exact.sum(), abs=1e-9)


def test_fifty_groups_against_sampled_orders() -> None:
    generator = np.random.default_rng(50)
    loads = 10 ** generator.uniform(0, 2, 50)
    value = saturating(loads, loads.sum(), 6.0)
    sampled = sampled_shapley(value, 50, orders=400, generator=generator)
    exact = saturating_shapley(loads, loads.sum(), 6.0)
    assert np.all(np.abs(sampled.joules - exact) <= 6 * sampled.standard_error + 1e-9)
    # many groups: the closed form converges to the Shapley value
    assert exact.sum() * loads / loads.sum() == pytest.approx(exact, rel=0.03)


def deviation(loads: Floats, total_in_scales: float) -> Floats:
    """Proportional share relative to the Shapley value, minus 1."""
    scale = loads.sum() / total_in_scales
    fair = saturating_shapley(loads, scale)
    proportional = fair.sum() * loads / loads.sum()
    return np.asarray(proportional / fair - 1)


def test_the_closed_form_at_90_to_9_to_1() -> None:
    found = deviation(np.array([90.0, 9.0, 1.0]), 100 / 60)
    assert found == pytest.approx([0.018, -0.137, -0.151], abs=0.0007)


@pytest.mark.parametrize(
    ("total_in_scales", "largest"), [(0.25, 0.005), (0.5, 0.020), (1.0, 0.075), (2.0, 0.238)]
)
def test_the_largest_deviation_of_the_closed_form(total_in_scales: float, largest: float) -> None:
    """The figures that attribution.py states."""
    generator = np.random.default_rng(19)
    found = max(
        np.abs(deviation(10 ** generator.uniform(0, 3, players), total_in_scales)).max()
        for players in generator.integers(2, 9, 2000)
    )
    assert found == pytest.approx(largest, abs=0.0007)
