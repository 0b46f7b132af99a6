"""Regression on its own: what it learns, and how sure it says it is."""

import numpy as np
import pytest

from iojoule.model.fit.gaussian_process import GaussianProcess, _Search


def smooth(x: np.ndarray) -> np.ndarray:
    return np.sin(3 * x[:, 0]) + 2 * x[:, 1]


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(5)


def test_it_learns_a_smooth_surface_and_its_noise(source: np.random.Generator) -> None:
    x = source.random((80, 3))
    fitted = GaussianProcess(x, smooth(x) + 0.03 * source.standard_normal(80))
    new = source.random((200, 3))
    mean, covariance = fitted.posterior(new)
    error = mean - smooth(new)
    assert np.sqrt(np.mean(error**2)) < 0.05
    assert 0.02 < fitted.noise < 0.045
    sd = np.sqrt(np.diag(covariance))
    assert np.mean(np.abs(error) < 1.645 * sd) > 0.8
    assert 0.6 < fitted.surprise() < 1.6
    lengths = fitted.hyperparameters.lengths
    assert lengths[2] > lengths[0], "an input that does nothing gets a long length"


def test_the_marginal_is_the_diagonal_of_the_joint(source: np.random.Generator) -> None:
    x = source.random((20, 2))
    fitted = GaussianProcess(x, smooth(x))
    new = source.random((30, 2))
    mean, covariance = fitted.posterior(new)
    alone, variance = fitted.marginal(new)
    assert alone == pytest.approx(mean)
    assert variance == pytest.approx(np.diag(covariance), abs=1e-9)


def test_leave_one_out_is_what_leaving_one_out_gives(source: np.random.Generator) -> None:
    x = source.random((12, 2))
    y = smooth(x) + 0.1 * source.standard_normal(12)
    fitted = GaussianProcess(x, y)
    total = fitted._prior(x, x) + np.eye(12) * (np.exp(2 * fitted._theta[-1]) + 1e-8)
    scaled = (y - y.mean()) / y.std()
    errors = []
    for out in range(12):
        keep = np.arange(12) != out
        weights = np.linalg.solve(total[np.ix_(keep, keep)], total[keep, out])
        variance = total[out, out] - weights @ total[keep, out]
        errors.append((scaled[out] - weights @ scaled[keep]) / np.sqrt(variance))
    assert fitted.surprise() == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


def test_the_gradient_is_that_of_the_density(source: np.random.Generator) -> None:
    x = source.random((15, 2))
    search = _Search(x, smooth(x), (-3.0, 1.0))
    theta = np.array([0.1, -0.4, 0.3, -2.0])
    _, gradient = search._loss(theta)
    step = 1e-5
    for place in range(4):
        shift = step * np.eye(4)[place]
        numeric = (search._loss(theta + shift)[0] - search._loss(theta - shift)[0]) / (2 * step)
        assert gradient[place] == pytest.approx(numeric, rel=1e-4, abs=1e-6)


def test_values_that_are_all_the_same_are_no_problem() -> None:
    x = np.linspace(0, 1, 6)[:, None]
    mean, variance = GaussianProcess(x, np.full(6, 2.5)).marginal(x)
    assert mean == pytest.approx(2.5, abs=1e-3)
    assert np.all(variance < 1e-3)
