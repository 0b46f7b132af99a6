"""History matching and posterior on simulators in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.sim.calibration.history_matching import (
    Emulator,
    Floats,
    Target,
    implausibility,
    indistinct,
    match,
    sample_posterior,
    spread,
)

X = np.linspace(-1, 1, 9)
FEATURES = np.stack([10 * X, 0 * X, 0 * X], axis=1)


def line(cubes: Floats) -> Floats:
    return cubes[:, :1] + cubes[:, 1:2] * X


def only_the_sum(cubes: Floats) -> Floats:
    return np.repeat(cubes[:, :1] + cubes[:, 1:2], len(X), axis=1) + 0.3 * X


def target(outputs: Floats, sd: float = 0.01) -> Target:
    return Target(outputs, np.full(len(X), sd), FEATURES)


def test_the_truth_is_never_ruled_out_and_most_of_the_cube_is() -> None:
    truth = np.array([[0.7, 0.2]])
    aim = target(line(truth)[0])
    found = match(aim, line, np.array([0.5, 0.5]), waves=3, designs=15)
    assert implausibility(aim, found.emulator, truth, found.discrepancy_sd)[0] < 3
    assert found.waves[-1].plausible_share < 0.2
    posterior = sample_posterior(aim, found)
    assert posterior.mean == pytest.approx(truth[0], abs=0.03)
    assert indistinct(posterior, ["a", "b"]) == []


def test_what_only_enters_as_a_sum_is_named() -> None:
    aim = target(only_the_sum(np.array([[0.5, 0.5]]))[0])
    found = match(aim, only_the_sum, np.array([0.4, 0.4]), waves=2, designs=15)
    told = indistinct(sample_posterior(aim, found), ["a", "b"])
    assert any(names == ["a", "b"] and "their sum" in said for names, said in told)


def test_what_has_no_effect_is_named() -> None:
    def first_only(cubes: Floats) -> Floats:
        return cubes[:, :1] + 0.0 * cubes[:, 1:2] + 0.3 * X

    aim = target(first_only(np.array([[0.6, 0.5]]))[0])
    found = match(aim, first_only, np.array([0.5, 0.5]), waves=2, designs=15)
    told = indistinct(sample_posterior(aim, found), ["a", "b"])
    assert any(names == ["b"] and "next to nothing" in said for names, said in told)


def test_designs_that_cannot_be_simulated_are_passed_over() -> None:
    def half(cubes: Floats) -> Floats:
        outputs = line(cubes)
        outputs[cubes[:, 0] > 0.8] = np.nan
        return outputs

    aim = target(line(np.array([[0.4, 0.4]]))[0])
    found = match(aim, half, np.array([0.5, 0.5]), waves=2, designs=15)
    assert np.isfinite(found.outputs).all()


def test_the_emulator_knows_a_smooth_simulator_and_how_well() -> None:
    random = np.random.default_rng(1)

    def smooth(cubes: Floats) -> Floats:
        return np.stack([np.sin(2 * cubes[:, 0]) + cubes[:, 1] ** 2, np.exp(cubes[:, 2])], axis=1)

    at = random.random((60, 3))
    new = random.random((100, 3))
    mean, deviation = Emulator(at, smooth(at))(new)
    errors = np.abs(mean - smooth(new))
    assert errors.max() < 0.05
    assert (errors < 3 * deviation + 1e-3).mean() > 0.9


def test_chosen_points_lie_far_apart() -> None:
    sample = np.concatenate([np.zeros((50, 2)), np.ones((50, 2)), [[0.0, 1.0]]])
    chosen = spread(sample, 3, 0)
    assert {tuple(point) for point in chosen} == {(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)}


def test_one_parameter_is_a_calibration_too() -> None:
    def slope(cubes: Floats) -> Floats:
        return cubes[:, :1] * X

    aim = target(slope(np.array([[0.3]]))[0])
    found = match(aim, slope, np.array([0.5]), waves=2, designs=10)
    assert sample_posterior(aim, found).mean == pytest.approx([0.3], abs=0.03)
