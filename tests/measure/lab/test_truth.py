"""The true physics of the virtual drive obey the laws of a closed loop."""

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.lab.truth import random_reads


def test_a_closed_loop_keeps_its_depth_in_flight() -> None:
    for depth in (1, 4, 16):
        truth = random_reads(4096, depth, 0)
        requests = truth.throughput_bytes_per_second / 4096 * truth.latency_mean_ns / 1e9
        assert requests == pytest.approx(depth, rel=0.02)


def test_a_lower_power_state_draws_and_does_less() -> None:
    fast, slow = random_reads(65536, 16, 0), random_reads(65536, 16, 2)
    assert slow.device_power_watts < fast.device_power_watts
    assert slow.throughput_bytes_per_second < fast.throughput_bytes_per_second


def test_joules_per_gigabyte_are_watts_over_throughput() -> None:
    truth = random_reads(16384, 4, 1)
    expected = truth.device_power_watts / (truth.throughput_bytes_per_second / 1e9)
    assert truth.joules_per_gb == pytest.approx(expected)


def test_an_unknown_drive_is_refused() -> None:
    with pytest.raises(InputError):
        random_reads(4096, 1, 0, "no-such-drive")
