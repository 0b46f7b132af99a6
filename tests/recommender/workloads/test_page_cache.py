"""What of buffered jobs reaches the drive."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import floats, sampled_from

from iojoule.datasets.errors import InputError
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.workloads.fio_job import from_fio_job, parse_fio_job
from iojoule.recommender.workloads.page_cache import PageCache, page_cache
from tests.errors import having

GIB = 1 << 30
BUFFERED = """\
[job]
direct=0
ioengine=psync
filename=/data/file
size=8g
time_based
runtime=60
numjobs=4
bs=8k
"""


def asked(options: str, cache_bytes: float = 2 * GIB) -> WorkloadProfile:
    text = BUFFERED + options
    return parse_fio_job(text, Path("job.fio"), cache=PageCache(cache_bytes))


def drive_bytes(options: str, cache_bytes: float = 2 * GIB) -> float:
    stated = asked(options, cache_bytes).workload.demand_bytes_per_second
    assert stated is not None
    return stated


def test_without_a_cache_a_buffered_job_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        parse_fio_job(BUFFERED + "rw=randread\n", Path("job.fio"))
    assert refused.value.field == "direct"
    assert "--page-cache" in str(refused.value)


def test_a_job_that_bypasses_the_cache_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text(BUFFERED.replace("direct=0", "direct=1") + "rw=randread\n")
    assert from_fio_job(path, cache=PageCache(GIB)) == from_fio_job(path)


def test_blocks_at_random_are_found_as_often_as_they_are_kept() -> None:
    """F14 of the thesis: with half of the file in memory, the application reads twice as fast."""
    rated = "rw=randread\nrate_iops=1000\n"
    assert drive_bytes(rated, 4 * GIB) == pytest.approx(0.5 * 4 * 1000 * 8192)
    assert drive_bytes(rated, 2 * GIB) == pytest.approx(0.75 * 4 * 1000 * 8192)


@pytest.mark.parametrize(
    ("jobs", "options", "found"),
    [
        (1, "", 0.0),
        (1, "norandommap=1\n", 0.5),
        (4, "", 0.75 * 0.5),  # the first of four finds it never
        (4, "norandommap\n", 0.5),
    ],
)
def test_a_block_is_found_where_it_was_read_before(jobs: int, options: str, found: float) -> None:
    once = BUFFERED.replace("time_based\n", "").replace("numjobs=4", f"numjobs={jobs}")
    text = f"{once}rw=randread\nrate_iops=1000\n{options}"
    profile = parse_fio_job(text, Path("job.fio"), cache=PageCache(4 * GIB))
    expected = (1.0 - found) * jobs * 1000 * 8192
    assert profile.workload.demand_bytes_per_second == pytest.approx(expected)
    assert any("reads each block once" in note for note in profile.notes) == (not found)


def test_a_file_in_memory_leaves_the_drive_alone() -> None:
    for mode in ("read", "randread"):
        with pytest.raises(InputError) as refused:
            asked(f"rw={mode}\n", 8 * GIB)
        assert refused.value.field == "size"


@pytest.mark.parametrize(("size", "sent"), [("4k", 128), ("128k", 128), ("256k", 256), ("2m", 512)])
def test_readers_in_sequence_are_read_ahead(size: str, sent: int) -> None:
    profile = asked(f"rw=read\nbs={size}\nrate=10m\n")
    assert profile.current.request_bytes == sent * 1024
    assert profile.workload.demand_bytes_per_second == pytest.approx(4 * 10 * 2**20)


def test_read_ahead_is_the_request_size() -> None:
    job = BUFFERED + "rw=read\n"
    cache = page_cache("2GiB", "512KiB")
    assert parse_fio_job(job, Path("job.fio"), cache=cache).current.request_bytes == 512 * 1024


def test_random_requests_are_whole_pages_and_split_at_the_largest() -> None:
    small = asked("rw=randread\nbs=2k\nrate_iops=100\n", GIB)
    assert small.current.request_bytes == 4096
    assert small.workload.demand_bytes_per_second == pytest.approx(4 * 100 * 7 / 8 * 4096)
    assert asked("rw=randread\nbs=1m\n").current.request_bytes == 512 * 1024


def test_the_flusher_merges_what_lies_in_a_row() -> None:
    profile = asked("rw=write\nrate=10m\n")
    assert (profile.current.request_bytes, profile.current.jobs) == (512 * 1024, 1)
    assert profile.workload.demand_bytes_per_second == pytest.approx(4 * 10 * 2**20)
    assert asked("rw=randwrite\nrate_iops=10\n").current.request_bytes == 8192


def test_blocks_that_are_written_again_in_memory_are_written_once() -> None:
    """1 - exp(-x) of N blocks are dirty after x N writes at random; the flusher waits 30 s."""
    rate, blocks = 2000.0, 64 * 2**20 / 8192
    rated = f"rw=randwrite\nsize=64m\nrate_iops={rate:g}\n"
    written = 4 * rate * 30 / blocks
    distinct = blocks * -math.expm1(-written) / 30
    assert drive_bytes(rated, 64 * GIB) == pytest.approx(distinct * 8192)
    assert asked(rated, 64 * GIB).current.request_bytes == 512 * 1024, "all neighbours are dirty"


def test_the_flusher_comes_sooner_where_memory_fills() -> None:
    """A tenth of the memory is a share of the file, whatever the rate."""
    rated = "rw=randwrite\nsize=1g\nrate_iops=1000000\n"
    dirty = 0.2 * 2  # a tenth of 4 GiB
    expected = 4e6 * 8192 * dirty / -math.log1p(-dirty)
    assert drive_bytes(rated, 4 * GIB) == pytest.approx(expected)


def test_neighbours_that_happen_to_be_dirty_are_one_request() -> None:
    """130,001 writes of 8 KiB at 2,000/s to 1 GiB: 14.05 KiB a request by Linux 6.18."""
    profile = asked("rw=randwrite\nsize=1g\nnumjobs=1\nrate_iops=2000\n", 64 * GIB)
    assert 12 <= profile.current.request_bytes / 1024 <= 16


def test_writes_as_fast_as_they_can_into_memory_say_how_fast() -> None:
    with pytest.raises(InputError, check=having(field="rate")):
        asked("rw=randwrite\nsize=64m\n", 64 * GIB)


def test_a_flush_writes_what_came_since_the_last_one() -> None:
    scattered = asked("rw=randwrite\nfsync=8\nrate_iops=800\n")
    assert scattered.workload.flush_every_writes == 8
    assert scattered.workload.demand_bytes_per_second == pytest.approx(4 * 800 * 8192)
    assert (scattered.current.queue_depth, scattered.current.jobs) == (8, 4)
    in_a_row = asked("rw=write\nfsync=8\nrate_iops=800\n")
    assert in_a_row.workload.flush_every_writes == 1
    assert in_a_row.current.request_bytes == 65536


def test_parts_of_a_page_read_it_first() -> None:
    profile = asked("rw=randwrite\nbs=2k\nrate_iops=10\n", GIB)
    assert profile.workload.operation == "mixed"
    assert profile.workload.read_fraction == pytest.approx(7 / 15, rel=1e-3)


def test_files_without_a_name_are_one_for_each_clone() -> None:
    rated = "rw=randread\nsize=1g\nrate_iops=1000\n"
    own = BUFFERED.replace("filename=/data/file\n", "") + rated
    profile = parse_fio_job(own, Path("job.fio"), cache=PageCache(2 * GIB))
    assert profile.workload.working_set_bytes == 4 * GIB
    assert profile.workload.demand_bytes_per_second == pytest.approx(0.5 * 4 * 1000 * 8192)


@pytest.mark.parametrize(
    ("memory", "read_ahead", "field"),
    [
        ("much", None, "page_cache"),
        ("0", None, "page_cache"),
        ("100", None, "page_cache"),
        ("1GiB", "1KiB", "read_ahead"),
        (None, "128KiB", "read_ahead"),
    ],
)
def test_sizes_that_no_cache_has(memory: str | None, read_ahead: str | None, field: str) -> None:
    with pytest.raises(InputError, check=having(field=field)):
        page_cache(memory, read_ahead)


@given(
    mode=sampled_from(["read", "randread", "write", "randwrite", "rw", "randrw"]),
    size=sampled_from(["512", "2k", "4k", "6k", "64k", "1m"]),
    gibibytes=floats(0.01, 7.9),
    flush=sampled_from(["", "fsync=1\n", "fsync=32\n", "sync=1\n"]),
)
def test_no_read_is_added_and_less_memory_asks_the_drive_for_no_less(
    mode: str, size: str, gibibytes: float, flush: str
) -> None:
    job = f"rw={mode}\nbs={size}\nrate_iops=1000\n{flush if 'read' not in mode else ''}"
    more = drive_bytes(job, gibibytes * GIB)
    assert 0 < more <= drive_bytes(job, gibibytes * GIB / 2) * (1 + 1e-3)
