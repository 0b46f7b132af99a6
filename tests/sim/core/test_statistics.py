"""The recorder of latencies against sorted lists, and its histogram against its stated error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from iojoule.sim import _core

PERCENTILES = {"p50_ns": 5000, "p90_ns": 9000, "p99_ns": 9900, "p999_ns": 9990, "p9999_ns": 9999}
EXACT_SAMPLES = 1 << 22


def summary(*parts: NDArray[np.uint64]) -> _core.LatencySummary:
    recorder = _core.LatencyRecorder()
    for part in parts:
        recorder.record(part)
    return recorder.summary()


def ranked(values: NDArray[np.uint64], per_ten_thousand: int) -> int:
    """The value at index p (n - 1), rounded half up, of the sorted values."""
    index = (per_ten_thousand * (len(values) - 1) + 5000) // 10000
    return int(np.sort(values)[index])


@given(st.lists(st.integers(0, 2**63), min_size=1, max_size=300))
def test_percentiles_are_those_of_the_sorted_values(latencies: list[int]) -> None:
    values = np.array(latencies, np.uint64)
    told = summary(values)
    assert told.count == len(latencies)
    assert (told.min_ns, told.max_ns) == (min(latencies), max(latencies))
    assert told.mean_ns == pytest.approx(sum(latencies) / len(latencies), rel=1e-12)
    assert told.percentile_relative_error == 0
    assert {name: getattr(told, name) for name in PERCENTILES} == {
        name: ranked(values, share) for name, share in PERCENTILES.items()
    }


def test_nothing_recorded_is_all_zero() -> None:
    told = summary()
    assert [getattr(told, name) for name in ("count", "mean_ns", "min_ns", *PERCENTILES)] == [0] * 8


def test_a_thousand_and_one_steps() -> None:
    told = summary(np.arange(1001, dtype=np.uint64))
    assert (told.p50_ns, told.p90_ns, told.p99_ns, told.p999_ns) == (500, 900, 990, 999)


@given(
    st.lists(st.integers(0, 2**40), max_size=50),
    st.lists(st.integers(0, 2**40), max_size=50),
)
def test_merging_is_recording_in_one(left: list[int], right: list[int]) -> None:
    merged, other = _core.LatencyRecorder(), _core.LatencyRecorder()
    merged.record(np.array(left, np.uint64))
    other.record(np.array(right, np.uint64))
    merged.merge(other)
    one = summary(np.array(left + right, np.uint64))
    fields = ("count", "mean_ns", "min_ns", "max_ns", *PERCENTILES)
    told = merged.summary()
    assert [getattr(told, name) for name in fields] == [getattr(one, name) for name in fields]


def many(count: int) -> NDArray[np.uint64]:
    """Latencies from 1 us to 10 s, log-uniform."""
    return np.asarray(10.0 ** np.random.default_rng(7).uniform(3, 10, count), np.uint64)


def test_up_to_four_mebi_samples_are_exact() -> None:
    values = many(EXACT_SAMPLES)
    told = summary(values)
    assert told.percentile_relative_error == 0
    assert told.p99_ns == ranked(values, 9900)


def test_beyond_that_percentiles_keep_the_stated_error() -> None:
    values = many(EXACT_SAMPLES + 1)
    told = summary(values)
    assert 0 < told.percentile_relative_error <= 2**-10
    for name, share in PERCENTILES.items():
        exact = ranked(values, share)
        assert abs(getattr(told, name) - exact) <= told.percentile_relative_error * exact
    assert told.mean_ns == pytest.approx(values.astype(float).mean(), rel=1e-9)
    assert (told.min_ns, told.max_ns) == (values.min(), values.max())


def test_recorders_beyond_the_limit_merge() -> None:
    values = many(EXACT_SAMPLES + 1)
    merged, other = _core.LatencyRecorder(), _core.LatencyRecorder()
    merged.record(values[: len(values) // 2])
    other.record(values[len(values) // 2 :])
    merged.merge(other)
    told, one = merged.summary(), summary(values)
    assert [getattr(told, name) for name in PERCENTILES] == [
        getattr(one, name) for name in PERCENTILES
    ]
    merged.merge(merged)
    assert merged.summary().count == 2 * len(values)


def test_sums_beyond_64_bits_keep_the_mean() -> None:
    values = np.full(1000, 2**63, np.uint64)
    assert summary(values).mean_ns == 2.0**63


def test_small_values_are_exact_in_the_histogram_too() -> None:
    values = np.arange(EXACT_SAMPLES + 1000, dtype=np.uint64) % 2048
    told = summary(values)
    assert told.percentile_relative_error > 0
    assert told.p50_ns == ranked(values, 5000)
    assert told.p9999_ns == ranked(values, 9999)
