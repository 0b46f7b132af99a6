"""The baselines are exact where their own law holds."""

import numpy as np
import pytest

from iojoule.model.fit.backtest import clustered_p_value, hyperbola, interpolate


def test_interpolation_is_exact_on_power_laws_also_beyond() -> None:
    x = np.array([1.0, 4.0, 16.0, 64.0])
    y = 3.0 * x**0.7
    for at in (2.0, 32.0, 256.0, 0.25):
        assert interpolate(x, y, at) == pytest.approx(3.0 * at**0.7)


def test_interpolation_is_monotone() -> None:
    x = np.array([1.0, 4.0, 16.0, 64.0])
    y = np.array([10.0, 39.0, 40.0, 40.5])
    between = [interpolate(x, y, at) for at in np.geomspace(1, 64, 50)]
    assert between == sorted(between)


def test_hyperbola_is_exact_on_hyperbolas() -> None:
    x = np.array([1.0, 4.0, 64.0])
    rate = 5e5 * x / (x + 12.0)
    assert hyperbola(x, rate, 16.0, rising=True) == pytest.approx(5e5 * 16 / 28)
    assert hyperbola(x, x / rate, 16.0, rising=False) == pytest.approx(28 / 5e5)


def test_rows_of_one_series_count_as_one_when_they_move_together() -> None:
    together = [(str(series), series != 0) for series in range(5) for _ in range(10)]
    spread = [(str(row % 5), row >= 10) for row in range(50)]
    # 80 % of 50 independent rows contradicts 90 %; five series that agree in themselves do not
    assert clustered_p_value(spread) < 0.05
    assert clustered_p_value(together) > 0.3
