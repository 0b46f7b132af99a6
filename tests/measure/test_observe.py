"""What readings of the kernel's counters say, on drives whose every request is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, tuples

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import IoWindow
from iojoule.measure.drive.block_device import Stat
from iojoule.measure.drive.block_io import Disk
from iojoule.measure.errors import DriveError
from iojoule.measure.observe import ObserveRequest, Samples, Watch, sample

INTERVAL = 0.001
WRITE = (Stat.WRITES, Stat.WRITE_SECTORS)
READ = (Stat.READS, Stat.READ_SECTORS)


def readings(
    requests: Sequence[tuple[float, float, int, int]], until: float, flushes: Sequence[float] = ()
) -> Samples:
    """Counters of a drive with requests (arrival, end, sectors, direction) and bare flushes."""
    at = np.arange(0, until, INTERVAL)
    values = np.zeros((len(at), len(Stat)), dtype=np.int64)
    for begin, end, sectors, direction in requests:
        number, moved = READ if direction == 0 else WRITE
        values[at >= end, number] += 1
        values[at >= end, moved] += sectors
        values[(at >= begin) & (at < end), Stat.IN_FLIGHT] += 1
    for moment in flushes:
        # the kernel counts the request that asks for it as a write
        values[at >= moment, Stat.WRITES] += 1
        values[at >= moment, Stat.FLUSHES] += 1
    return Samples(at, values)


def watched(samples: Samples, blocks: int = 1) -> IoWindow:
    """In one block, or in several that share their edges as the sampler's do."""
    watch = Watch(0.0)
    edges = np.linspace(0, len(samples) - 1, blocks + 1).astype(int)
    for first, last in pairwise(edges):
        part = slice(first, last + 1)
        watch.add(Samples(samples.at_seconds[part], samples.values[part]))
    return watch.window()


def test_bursts_and_the_gaps_between_them() -> None:
    requests = [
        (start + k * 0.004, start + (k + 1) * 0.004, 8, 1)
        for start in (0.1, 0.4, 0.9)
        for k in range(5)
    ]
    seen = watched(readings(requests, 1.2))
    assert seen.gaps is not None
    assert seen.bursts is not None
    assert (seen.gaps.count, seen.bursts.count) == (2, 1)
    assert seen.gaps.percentile(1) == pytest.approx(0.28, rel=0.04)
    assert seen.gaps.percentile(99) == pytest.approx(0.48, rel=0.04)
    assert seen.bursts.total == 5 * 4096
    assert (seen.writes, seen.write_bytes, seen.write_sizes) == (15, 15 * 4096, {4096: 15})
    assert seen.mean_in_flight == pytest.approx(1)
    assert seen.busy_seconds == pytest.approx(15 * 0.004, rel=0.1)


def test_a_gap_across_two_blocks_is_one_gap() -> None:
    requests = [(0.1, 0.11, 8, 0), (0.5, 0.51, 8, 0), (0.62, 0.63, 8, 0)]
    whole, parts = watched(readings(requests, 0.8)), watched(readings(requests, 0.8), blocks=7)
    assert whole.gaps == parts.gaps
    assert whole.bursts == parts.bursts
    assert whole.busy_seconds == pytest.approx(parts.busy_seconds)


def test_a_gap_at_whose_edge_a_reading_came_late_is_counted_and_not_measured() -> None:
    requests = [(0.2 * k, 0.2 * k + 0.01, 8, 0) for k in range(1, 9)]
    every = readings(requests, 2.0)
    late = (every.at_seconds > 0.75) & (every.at_seconds < 0.83)
    seen = watched(Samples(every.at_seconds[~late], every.values[~late]))
    assert seen.gaps is not None
    assert seen.bursts is not None
    assert (seen.gaps.count, seen.unsure_gaps, seen.bursts.count) == (5, 2, 6)
    assert seen.gaps.total == pytest.approx(5 * 0.19, rel=0.02)


def test_a_request_for_a_flush_is_no_write() -> None:
    requests = [(0.1 * k, 0.1 * k + 0.01, 16, 1) for k in range(1, 9)]
    seen = watched(readings(requests, 1.0, flushes=[0.25, 0.45, 0.65, 0.85]))
    assert (seen.writes, seen.flushes) == (8, 4)
    assert seen.write_sizes == {8192: 8}


def test_a_flush_that_a_write_brings_is_not_taken_off() -> None:
    samples = readings([(0.1 * k, 0.1 * k + 0.01, 16, 1) for k in range(1, 9)], 1.0)
    for k in range(1, 9):
        # before its data: the kernel flushes first, and counts the one request when it is done
        samples.values[samples.at_seconds >= 0.1 * k + 0.005, Stat.FLUSHES] += 1
    seen = watched(samples)
    assert (seen.writes, seen.flushes) == (8, 8)


def test_old_kernels_count_less() -> None:
    samples = readings([(0.1, 0.11, 8, 1), (0.2, 0.21, 8, 1)], 0.3)
    watch = Watch(0.0)
    watch.add(Samples(samples.at_seconds, samples.values, False, False))
    assert watch.window().flushes is None
    assert watch.window().discards is None


spans = tuples(floats(0, 0.9), floats(0.0005, 0.05), integers(1, 256), integers(0, 1))


@given(lists(spans, max_size=30), integers(1, 5))
def test_counts_and_time_are_kept_whatever_comes(
    spans: list[tuple[float, float, int, int]], blocks: int
) -> None:
    requests = [(begin, begin + last, size, way) for begin, last, size, way in spans]
    seen = watched(readings(requests, 1.0), blocks)
    assert seen.seconds == pytest.approx(0.999)
    assert seen.requests == len(requests)
    assert seen.bytes == 512 * sum(size for _, _, size, _ in requests)
    assert sum(seen.in_flight.values()) == pytest.approx(seen.seconds)
    assert seen.gaps is not None
    assert seen.gaps.total + (seen.busy_seconds or 0) <= seen.seconds * (1 + 1e-9)


def stat(folder: Path, text: str) -> Disk:
    folder.mkdir()
    (folder / "stat").write_text(text)
    return Disk(Path("/dev/x"), folder)


def test_counters_are_read_from_the_kernels_file(tmp_path: Path) -> None:
    line = " ".join(str(number) for number in range(17))
    blocks = list(sample(stat(tmp_path / "x", line), 0.02))
    assert sum(map(len, blocks)) >= 2
    assert blocks[0].values[0].tolist() == list(range(17))
    assert blocks[0].counts_flushes
    older = next(sample(stat(tmp_path / "y", " ".join(line.split()[:11])), 0.01))
    assert not older.counts_flushes
    assert not older.counts_discards


def test_a_drive_without_counters_is_named(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="/dev/x"):
        list(sample(stat(tmp_path / "x", "nothing"), 0.01))
    with pytest.raises(DriveError, match="has no statistics"):
        list(sample(Disk(Path("/dev/x"), tmp_path / "gone"), 0.01))


def test_gaps_need_several_readings() -> None:
    with pytest.raises(InputError, match="--interval"):
        ObserveRequest(Path("/dev/x"), 1, interval_seconds=0.01, gap_seconds=0.02)
    with pytest.raises(InputError, match="shorter than"):
        ObserveRequest(Path("/dev/x"), 60, repeat=2, every_seconds=10)
