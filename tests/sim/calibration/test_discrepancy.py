"""The learned residual corrects near its points; far from them it says that it does not know."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.sim.calibration.residual import NORMAL_90, learn, place_of

SIZES, DEPTHS = np.arange(12.0, 19.0), np.arange(0.0, 9.0, 2.0)


def grid(sizes: np.ndarray, depths: np.ndarray) -> np.ndarray:
    return np.array(
        [place_of([size, depth, 0.0], "a", ["a"]) for size in sizes for depth in depths]
    )


def smooth(at: np.ndarray) -> np.ndarray:
    return 0.2 * np.sin(at[:, 0] / 2) + 0.02 * at[:, 1]


def test_a_smooth_residual_is_known_between_its_points_and_not_far_away() -> None:
    residual = learn(grid(SIZES, DEPTHS), smooth(grid(SIZES, DEPTHS)))
    between = grid(SIZES[:-1] + 0.5, DEPTHS[:-1] + 1)
    mean, near_sd = residual(between)
    assert np.abs(mean - smooth(between)).max() < 0.02
    far = np.array([place_of([40.0, 20.0, 0.0], "a", ["a"])])
    assert residual(far)[1][0] > 2 * near_sd.max()


@pytest.mark.slow
def test_left_out_sizes_of_a_rough_residual_lie_in_the_interval() -> None:
    random = np.random.default_rng(3)
    sizes = np.arange(12.0, 32.0)
    at = grid(sizes, DEPTHS)
    by_size = dict(zip(sizes, random.normal(0, 0.1, len(sizes)), strict=True))
    errors = np.array([by_size[size] for size in at[:, 0]]) + 0.02 * at[:, 1]
    inside = []
    for size in sizes[1:-1]:
        out = at[:, 0] == size
        mean, sd = learn(at[~out], errors[~out])(at[out])
        inside += list(np.abs(errors[out] - mean) <= NORMAL_90 * sd)
    assert np.mean(inside) >= 0.8


def test_too_few_points_teach_nothing_but_their_size() -> None:
    at = grid(SIZES[:2], DEPTHS[:2])
    mean, sd = learn(at, np.full(4, 0.1))(at)
    assert (mean == 0).all()
    assert sd[0] == 0.1
