"""What two readings of the kernel's counters say of the time between them."""

from pathlib import Path

import pytest

from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.block_io import Reading, Served, between, read_counters
from iojoule.measure.errors import DriveError

SECOND = 10**9


def reading(at: int, requests: int, waited_ms: int, *, in_flight: int = 0, busy_ms: int = 0):
    read = Served(requests, 4096 * requests, waited_ms)
    return Reading(at * SECOND, read, Served(0, 0, 0), busy_ms, in_flight)


def test_rates_and_mean_latency() -> None:
    found = between(reading(0, 100, 50), reading(5, 1100, 2050, busy_ms=2500))
    assert (found.iops, found.throughput_bytes_per_second) == (200, 200 * 4096)
    assert found.latency_mean_ns == 2e6
    assert found.busy_share == 0.5


def test_times_that_pass_32_bits_go_on() -> None:
    end = 1 << 32
    first = Reading(0, Served(1, 1, end - 10), Served(1, 1, end - 5), end - 100, 0)
    last = Reading(SECOND, Served(11, 1, 10), Served(11, 1, 15), 400, 0)
    found = between(first, last)
    assert (found.latency_mean_ns, found.busy_share) == (2e6, 0.5)
    assert between(first, last, "write").latency_mean_ns == 2e6


def test_requests_that_wait_in_vain_take_at_least_so_long() -> None:
    found = between(reading(0, 100, 50), reading(5, 100, 50, in_flight=3))
    assert found.latency_mean_ns == 5e9


def test_a_direction_counts_alone() -> None:
    first = Reading(0, Served(0, 0, 0), Served(0, 0, 0), 0, 0)
    last = Reading(SECOND, Served(10, 40960, 10), Served(90, 368640, 900), 1000, 1)
    assert between(first, last, "read").latency_mean_ns == 1e6
    assert between(first, last, "write").latency_mean_ns == 10e6
    assert between(first, last).latency_mean_ns == 9.1e6


def test_a_drive_that_nobody_asks_has_no_latency() -> None:
    assert between(reading(0, 1, 1), reading(5, 1, 1)).latency_mean_ns is None


def test_the_counters_are_those_of_reads_and_writes(tmp_path: Path) -> None:
    device = BlockDevice(Path("/dev/x"), "x", "1:1", 1, 512, tmp_path)
    with pytest.raises(DriveError, match="has no statistics"):
        read_counters(device)
    (tmp_path / "class/block/x").mkdir(parents=True)
    (tmp_path / "class/block/x/stat").write_text("10 0 80 5 20 0 160 7 3 9 12 0 0 0 0 1 2\n")
    found = read_counters(device)
    assert found.served(None) == Served(30, 240 * 512, 12)
    assert found.served("read") == Served(10, 80 * 512, 5)
    assert found.served("write") == Served(20, 160 * 512, 7)
    assert (found.in_flight, found.busy_ms) == (3, 9)
