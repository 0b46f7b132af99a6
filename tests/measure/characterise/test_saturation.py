import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.characterise.experiments.saturation import fit_saturation

DEPTHS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])


def law(depths: np.ndarray, unloaded: float, most: float, sharpness: float) -> np.ndarray:
    return ((unloaded / depths) ** sharpness + (1 / most) ** sharpness) ** (-1 / sharpness)


@given(
    unloaded=st.floats(1e-5, 1e-2),
    knee=st.floats(3.0, 40.0),
    sharpness=st.floats(1.2, 4.0),
)
def test_the_law_is_found_again(unloaded: float, knee: float, sharpness: float) -> None:
    rates = law(DEPTHS, unloaded, knee / unloaded, sharpness)
    found = fit_saturation(list(DEPTHS), list(rates), [0.005] * len(DEPTHS))
    assert found is not None
    assert np.log(found.knee / knee) == pytest.approx(0, abs=1.96 * found.knee_log_error + 0.02)
    assert found.unloaded_seconds == pytest.approx(unloaded, rel=0.1)
    assert found.rate(DEPTHS) == pytest.approx(rates, rel=0.03)
    share = found.rate(np.array([found.saturation_depth()]))[0] / found.rate_max
    assert share == pytest.approx(0.95, abs=1e-6)


def test_intervals_cover_the_truth_under_noise() -> None:
    source, covered, draws = np.random.default_rng(1), 0, 60
    for _ in range(draws):
        rates = law(DEPTHS, 1e-3, 12e3, 2.0) * np.exp(0.03 * source.normal(size=len(DEPTHS)))
        found = fit_saturation(list(DEPTHS), list(rates), [0.005] * len(DEPTHS))
        assert found is not None
        covered += abs(np.log(found.knee / 12.0)) <= 1.96 * found.knee_log_error
    assert covered >= 0.9 * draws


def test_two_depths_say_nothing() -> None:
    assert fit_saturation([1, 4, 4], [100, 350, 350], [0.01] * 3) is None
