"""What a measurement does to a joint normal distribution, against the textbook."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.recommender.adaptive.normal import Normal


def joint(size: int, seed: int) -> Normal:
    factor = np.random.default_rng(seed).standard_normal((2, size, size))
    covariances = factor @ factor.transpose(0, 2, 1)
    return Normal(np.arange(size), np.zeros((2, size)), covariances)


@pytest.mark.parametrize("seed", range(3))
def test_measuring_one_by_one_is_conditioning_on_all(seed: int) -> None:
    before, noise, places = joint(5, seed), np.array([0.3, 0.0]), [3, 0]
    after = before
    for place in places:
        after = after.after(place, noise)
    for output in range(2):
        covariance = before.covariances[output]
        seen = covariance[np.ix_(places, places)] + noise[output] ** 2 * np.eye(2)
        cross = covariance[:, places]
        expected = covariance - cross @ np.linalg.solve(seen, cross.T)
        assert after.covariances[output] == pytest.approx(expected, abs=1e-9)


def test_the_order_of_measurements_does_not_matter() -> None:
    before, noise = joint(4, 7), np.array([0.2, 0.5])
    one = before.after(0, noise).after(2, noise)
    other = before.after(2, noise).after(0, noise)
    assert one.covariances == pytest.approx(other.covariances)
