"""The search for the parameters and their posterior, on simulators in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.model.evaluate.bands import Floats
from iojoule.sim.calibration.estimate import (
    PRIOR_SD,
    Estimate,
    Fit,
    Simulate,
    Target,
    indistinct,
    posterior,
    search,
)

X = np.linspace(-1, 1, 9)
FEATURES = np.stack([10 * X, 0 * X, 0 * X], axis=1)
MIDDLE = np.array([0.5, 0.5])


def line(cubes: Floats) -> Floats:
    return cubes[:, :1] + cubes[:, 1:2] * X


def bent(cubes: Floats) -> Floats:
    return np.exp(2 * cubes[:, :1] * X) + np.sin(1.5 * cubes[:, 1:2])


def only_the_sum(cubes: Floats) -> Floats:
    return np.repeat(cubes[:, :1] + cubes[:, 1:2], len(X), axis=1) + 0.3 * X


def target(outputs: Floats, sd: float = 0.01) -> Target:
    return Target(outputs, np.full(len(X), sd), FEATURES)


def found(simulate: Simulate, truth: list[float], start: Floats = MIDDLE) -> tuple[Estimate, Fit]:
    aim = target(simulate(np.array([truth]))[0])
    estimate = search(aim, simulate, start, rounds=2, designs=8)
    return estimate, Fit(aim, start, estimate.discrepancy_sd)


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98))
def test_the_truth_is_found_within_its_interval(a: float, b: float) -> None:
    for simulate in (line, bent):
        estimate, fit = found(simulate, [a, b])
        known = posterior(fit, estimate)
        assert np.all(np.abs(estimate.cube - [a, b]) < np.maximum(3 * known.sd, 0.03))


def test_what_the_data_say_is_known_better_than_before() -> None:
    estimate, fit = found(line, [0.7, 0.2])
    known = posterior(fit, estimate)
    assert np.all(known.sd < 0.2 * PRIOR_SD)
    assert indistinct(known, ["a", "b"]) == []
    assert known.draws.mean(axis=0) == pytest.approx(estimate.cube, abs=0.02)


def test_what_only_enters_as_a_sum_is_named() -> None:
    estimate, fit = found(only_the_sum, [0.5, 0.5], np.array([0.4, 0.4]))
    told = indistinct(posterior(fit, estimate), ["a", "b"])
    assert any(names == ["a", "b"] and "their sum" in said for names, said in told)


def test_what_has_no_effect_is_named_and_stays_where_the_drive_is() -> None:
    def first_only(cubes: Floats) -> Floats:
        return cubes[:, :1] + 0.0 * cubes[:, 1:2] + 0.3 * X

    estimate, fit = found(first_only, [0.6, 0.9], np.array([0.5, 0.3]))
    told = indistinct(posterior(fit, estimate), ["a", "b"])
    assert [names for names, _ in told] == [["b"]]
    assert estimate.cube[1] == pytest.approx(0.3, abs=0.05)


def test_what_has_no_effect_is_not_credited_with_a_bend_of_another() -> None:
    def bent_first(cubes: Floats) -> Floats:
        return np.exp(3 * cubes[:, :1]) + 0.3 * X

    aim = target(bent_first(np.array([[0.9, 0.5]]))[0])
    for seed in range(10):
        estimate = search(aim, bent_first, np.array([0.1, 0.5]), rounds=1, designs=3, seed=seed)
        assert not estimate.slopes[:, 1].any()


def test_designs_that_cannot_be_simulated_are_passed_over() -> None:
    def half(cubes: Floats) -> Floats:
        outputs = line(cubes)
        outputs[cubes[:, 0] > 0.55] = np.nan
        return outputs

    estimate, _ = found(half, [0.5, 0.4])
    assert np.isfinite(estimate.outputs).all()
    assert estimate.cube == pytest.approx([0.5, 0.4], abs=0.05)


def test_draws_stay_in_the_cube() -> None:
    estimate, fit = found(line, [0.999, 0.001])
    draws = posterior(fit, estimate).draws
    assert draws.min() >= 0
    assert draws.max() <= 1


def test_one_parameter_is_a_calibration_too() -> None:
    def slope(cubes: Floats) -> Floats:
        return cubes[:, :1] * X

    aim = target(slope(np.array([[0.3]]))[0])
    estimate = search(aim, slope, np.array([0.5]), rounds=1, designs=8)
    assert estimate.cube == pytest.approx([0.3], abs=0.03)
