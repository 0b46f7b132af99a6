"""The saturation curve against its closed forms."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.model.evaluate.surface import log_mean_latency, log_smooth_max, split_commands

latency = st.floats(1e3, 1e7)
rate = st.floats(1e-6, 1e-2)
sharpness = st.floats(0.8, 8.0)


def mean_latency(requests: float, unloaded: float, capacity: float, k: float) -> float:
    one = np.array([requests])
    return float(
        np.exp(
            log_mean_latency(np.log(one), np.log([unloaded]), np.log([capacity]), np.array([k]))
        )[0]
    )


@given(latency, rate, sharpness)
def test_saturates_between_unloaded_latency_and_capacity(
    unloaded: float, capacity: float, k: float
) -> None:
    depths = [1.0, 2.0, 8.0, 64.0, 1024.0]
    times = [mean_latency(n, unloaded, capacity, k) for n in depths]
    rates = [n / r for n, r in zip(depths, times, strict=True)]
    assert all(r >= unloaded * (1 - 1e-9) for r in times)
    assert all(x <= capacity * (1 + 1e-9) for x in rates)
    for series in (times, rates):  # rising, but for the last digits
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(series))


@given(latency, rate)
def test_plain_hyperbola_is_the_case_of_sharpness_one(unloaded: float, capacity: float) -> None:
    assert mean_latency(8, unloaded, capacity, 1.0) == pytest.approx(unloaded + 8 / capacity)


def test_smooth_maximum_tends_to_the_maximum() -> None:
    a, b = np.array([1.0, 5.0]), np.array([2.0, -3.0])
    np.testing.assert_allclose(log_smooth_max(a, b, 400.0), np.maximum(a, b), atol=1e-3)


def test_requests_above_the_transfer_limit_are_split() -> None:
    commands, log2_bytes = split_commands(np.array([4096.0, 524288.0, 524800.0, 4194304.0]), 524288)
    assert commands.tolist() == [1, 1, 2, 8]
    assert log2_bytes.tolist() == [12, 19, np.log2(262400), 19]
