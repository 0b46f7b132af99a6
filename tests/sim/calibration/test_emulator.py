"""Emulators of the simulator's outputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from iojoule.sim.calibration.history_matching import Emulator, Floats


def cubes(number: int, seed: int) -> Floats:
    return np.random.default_rng(seed).uniform(size=(number, 3))


def outputs(at: Floats) -> Floats:
    """Two outputs of three parameters, the last of which has no effect."""
    bend = np.sin(3 * at[:, 0])
    return np.stack([2 * at[:, 1] + bend, 1 - at[:, 1] ** 2 + 0.5 * bend], axis=1)


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    at = cubes(60, seed=1)
    return Emulator(at, outputs(at))


def test_it_answers_between_its_design_points(emulator: Emulator) -> None:
    at = cubes(200, seed=2)
    mean, sd = emulator(at)
    assert mean.shape == sd.shape == (200, 2)
    assert np.sqrt(np.mean((mean - outputs(at)) ** 2)) < 0.01


def test_it_is_less_sure_where_nothing_was_simulated(emulator: Emulator) -> None:
    _, known = emulator(cubes(60, seed=1))
    _, beyond = emulator(cubes(60, seed=1) + 2.0)
    assert np.all(np.median(beyond, axis=0) > 2 * np.median(known, axis=0))


def test_few_points_leave_a_linear_trend() -> None:
    at = cubes(8, seed=3)
    line = (3 * at[:, :1] - at[:, 1:2]) + 1
    mean, _ = Emulator(at, line)(cubes(20, seed=4))
    new = cubes(20, seed=4)
    assert mean == pytest.approx((3 * new[:, :1] - new[:, 1:2]) + 1, abs=1e-3)


def test_it_can_be_sent_to_another_process(emulator: Emulator) -> None:
    at = cubes(10, seed=5)
    sent = pickle.loads(pickle.dumps(emulator))
    assert np.array_equal(sent(at)[0], emulator(at)[0])
