import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.model.fit.performance import polish

Floats = NDArray[np.float64]
F_SCALE = 3.0
X = np.linspace(0.0, 3.0, 25)
Y = 2.0 * np.exp(-1.3 * X) + 0.05 * np.sin(40.0 * X)
Y[7] += 4.0  # an outlier far beyond f_scale


def decay(vector: Floats) -> Floats:
    """Residuals of amplitude x exp(-rate x), in standard deviations of 0.05."""
    amplitude, rate = vector[..., 0:1], vector[..., 1:2]
    return np.asarray((amplitude * np.exp(-rate * X) - Y) / 0.05)


def gradient(vector: Floats) -> Floats:
    """Of the soft-L1 cost, from the closed form of the residuals' derivatives."""
    falls = np.exp(-vector[1] * X) / 0.05
    jacobian = np.stack([falls, -vector[0] * X * falls], axis=1)
    residual = decay(vector)
    return np.asarray(jacobian.T @ (residual / np.sqrt(1.0 + (residual / F_SCALE) ** 2)))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
def test_wherever_a_solver_stops_the_polished_optimum_is_the_same(tolerance: float) -> None:
    rough = least_squares(
        decay, [1.0, 0.5], loss="soft_l1", f_scale=F_SCALE, ftol=tolerance, xtol=tolerance
    ).x
    found = polish(decay, rough, F_SCALE)
    assert np.abs(gradient(found)).max() < 1e-5
    reference = polish(decay, np.array([2.0, 1.3]), F_SCALE)
    assert found == pytest.approx(reference, abs=1e-7)


def test_where_the_loss_is_not_defined_the_start_comes_back() -> None:
    start = np.array([1.0])
    assert polish(lambda x: np.where(x > 1.0, np.nan, x - 3.0), start, F_SCALE) is start
