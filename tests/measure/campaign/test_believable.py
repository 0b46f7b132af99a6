"""What makes a run fail: power that was not seen or was out of range, clocks that were set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from iojoule.measure.campaign import believable
from iojoule.measure.errors import FioError, SensorError

SECOND = 1_000_000_000


def power(mean: float | None = 2.6, error: float | None = 0.01, coverage: float = 1.0) -> Any:
    return SimpleNamespace(
        sensor="meter", mean_watts=mean, standard_error_watts=error, coverage=coverage
    )


def recording(watts: list[float], full_scale: float | None) -> Any:
    """Samples of one rail, 50 us apart."""
    window = SimpleNamespace(
        times_ns=np.arange(len(watts)) * 50_000,
        values=np.array(watts)[:, None],
        flags=np.zeros(len(watts), dtype=np.uint8),
    )
    rails = (SimpleNamespace(full_scale=full_scale),)
    return cast(Any, SimpleNamespace(samples=lambda *_: (window, rails)))


def test_a_mean_of_few_samples_is_refused() -> None:
    believable.require_seen(power(coverage=0.6))
    believable.require_seen(power(mean=None, coverage=0.0))  # too slow a meter says why itself
    with pytest.raises(SensorError):
        believable.require_seen(power(coverage=0.176))


def test_a_mean_that_is_less_than_its_error_is_refused() -> None:
    with pytest.raises(SensorError):
        believable.require_seen(power(mean=0.2, error=0.3))


@pytest.mark.parametrize("clipped", [1, 10_000])
def test_power_at_full_scale_is_refused(clipped: int) -> None:
    watts = [2.6] * 20_000
    believable.require_in_range(recording(watts, 85.0), power(), 0, SECOND)
    believable.require_in_range(recording(watts, None), power(), 0, SECOND)
    watts[5_000 : 5_000 + clipped] = [85.0] * clipped
    with pytest.raises(SensorError):
        believable.require_in_range(recording(watts, 85.0), power(), 0, SECOND)


@pytest.mark.parametrize("seconds", [-3600, -2, 2, 3600])
def test_a_clock_that_was_set_is_refused(seconds: int) -> None:
    believable.require_clocks(5 * SECOND, 5 * SECOND + 40_000)
    with pytest.raises(FioError):
        believable.require_clocks(5 * SECOND, (5 + seconds) * SECOND)


@pytest.mark.parametrize(("begin", "end"), [(-2, 8), (2, 12), (3600, 3610)])
def test_a_part_that_was_measured_at_another_time_is_refused(begin: int, end: int) -> None:
    believable.require_inside(0, 10 * SECOND, 0, 10 * SECOND)
    with pytest.raises(FioError):
        believable.require_inside(begin * SECOND, end * SECOND, 0, 10 * SECOND)
