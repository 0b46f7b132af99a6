"""The written-out sums are the matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.model.evaluate import linear_law


@pytest.mark.parametrize("zeros", [[], [0], [2, 4]])
def test_values_and_variances_are_the_matrix_products(zeros: list[int]) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(50, 6))
    x[:, zeros] = 0.0
    half = random.normal(size=(6, 6))
    covariance = half @ half.T
    covariance[0, 3] = covariance[3, 0] = 0.0
    theta = random.normal(size=6)
    assert linear_law.values(x, theta) == pytest.approx(x @ theta)
    assert linear_law.variances(x, covariance) == pytest.approx(np.diag(x @ covariance @ x.T))
