import numpy as np
import pytest

from iojoule.measure.recording.statistics import (
    Sampled,
    clipped_seconds,
    round_means,
    sample_quality,
)

STEP_NS = 50_000


def sampled(watts: np.ndarray, flags: np.ndarray | None = None) -> Sampled:
    times = STEP_NS * np.arange(len(watts), dtype=np.int64)
    return Sampled(times, watts, np.zeros(len(watts), np.uint8) if flags is None else flags)


def noisy(watts: float, count: int = 20_000, noise: float = 0.2) -> np.ndarray:
    return watts + noise * np.random.default_rng(0).standard_normal(count)


def test_noise_repeats_nowhere() -> None:
    found = sample_quality(sampled(noisy(2.6)))
    assert found is not None
    assert found.scatter_watts == pytest.approx(0.2, rel=0.05)
    assert found.longest_constant_seconds < 1e-3


def test_a_stuck_stretch_is_as_long_as_it_was() -> None:
    watts = noisy(2.6)
    watts[4000:14000] = 2.5
    found = sample_quality(sampled(watts))
    assert found is not None
    assert found.longest_constant_seconds == pytest.approx(0.5, abs=2 * STEP_NS * 1e-9)


def test_time_at_full_scale_counts_on_any_rail() -> None:
    values = np.column_stack([noisy(2.6), noisy(1.0)])
    full = [45.4, 165.0]
    assert clipped_seconds(values, full, STEP_NS) == 0.0
    values[4000:8000, 0] = noisy(45.4, 4000, 0.1)
    values[8000:9000, 1] = 165.0
    found = clipped_seconds(values, full, STEP_NS)
    assert found == pytest.approx(5000 * STEP_NS * 1e-9)
    assert clipped_seconds(values, [None, 165.0], STEP_NS) == pytest.approx(1000 * STEP_NS * 1e-9)
    assert clipped_seconds(values, [None, None], STEP_NS) is None


def test_bursts_and_stalls_of_a_drive_are_not_stuck() -> None:
    busy = np.concatenate([noisy(1.6), noisy(5.5), noisy(1.6), noisy(6.0, 2000)])
    found = sample_quality(sampled(busy))
    assert found is not None
    assert found.longest_constant_seconds < 1e-3


def test_repeated_readings_of_a_slow_meter_are_no_stuck_samples() -> None:
    watts = np.repeat(noisy(2.6, 2000), 10)
    flags = np.full(len(watts), 4, np.uint8)
    flags[::10] = 0
    found = sample_quality(sampled(watts, flags))
    assert found is not None
    assert found.longest_constant_seconds == 0.0


def test_few_samples_say_nothing() -> None:
    assert sample_quality(sampled(noisy(2.6, 500))) is None


def test_round_means_are_those_of_equal_parts() -> None:
    watts = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 1000)
    assert round_means(sampled(watts), 0, 5000 * STEP_NS, 5) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert round_means(sampled(watts[:3000]), 0, 5000 * STEP_NS, 5) is None
