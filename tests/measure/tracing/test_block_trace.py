"""From the pages of all CPUs to the file and the summary of a run, and a loop device for real."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iojoule.measure.drive.block_device import BlockDevice, open_block_device
from iojoule.measure.errors import HostStateError
from iojoule.measure.tracing.block_trace import FILE_NAME, FOLDER, device_number, store, tracer
from iojoule.measure.tracing.requests import COMPLETE, GET, ISSUE, QUEUE, Event
from tests.measure.tracing.pages import FORMATS, LAYOUT, page, pages


def run_of(requests: int) -> tuple[list[Event], list[Event]]:
    """Events of two CPUs: the second completes what the first issues."""
    first: list[Event] = []
    second: list[Event] = []
    for number in range(requests):
        at, sector = 1_000 * number, 8 * number
        first += [
            Event(QUEUE, at, sector, 8, "R"),
            Event(GET, at + 10, sector, 8, "R"),
            Event(ISSUE, at + 100, sector, 8, "R"),
        ]
        second.append(Event(COMPLETE, at + 350, sector, 8, "R"))
    return first, second


def stored(folder: Path, *cpus: bytes):
    for number, data in enumerate(cpus):
        (folder / f"cpu{number}.pages").write_bytes(data)
    return store(folder, LAYOUT, FORMATS)


def test_requests_of_all_processors_are_stored_in_order(tmp_path: Path) -> None:
    trace = stored(tmp_path, *map(pages, run_of(100)))
    table = pq.read_table(tmp_path / FILE_NAME)
    assert table.num_rows == 100
    assert set(table["operation"].to_pylist()) == {"read"}
    assert table["completed_ns"].to_pylist() == [1_000 * number + 350 for number in range(100)]
    assert table["offset_bytes"].to_pylist()[:2] == [0, 4096]
    assert not list(tmp_path.glob("*.pages"))
    summary = trace.summary(0, 10**9)
    assert (summary.requests, summary.bytes, summary.unmatched) == (100, 409_600, 0)
    assert summary.queue_to_issue is not None
    assert summary.issue_to_complete is not None
    assert (summary.queue_to_issue.mean_ns, summary.issue_to_complete.p99_ns) == (100, 250)


def test_only_the_measured_part_is_summed_up(tmp_path: Path) -> None:
    trace = stored(tmp_path, *map(pages, run_of(100)))
    assert trace.summary(50_000, 60_000).requests == 10
    none = trace.summary(10**9, 2 * 10**9)
    assert (none.requests, none.queue_to_issue, none.issue_to_complete) == (0, None, None)


def test_flushes_and_discards_are_no_reads_or_writes(tmp_path: Path) -> None:
    events = [
        Event(ISSUE, 10, 0, 0, "FF"),
        Event(COMPLETE, 20, -1, 0, "FF"),
        Event(ISSUE, 30, 0, 2048, "D"),
        Event(COMPLETE, 40, 0, 2048, "D"),
        Event(ISSUE, 50, 8, 8, "WS"),
        Event(COMPLETE, 60, 8, 8, "WS"),
    ]
    summary = stored(tmp_path, pages(events)).summary(0, 100)
    counts = (summary.requests, summary.bytes, summary.flushes, summary.discards)
    assert counts == (1, 4096, 1, 1)
    assert summary.unmatched == 0
    table = pq.read_table(tmp_path / FILE_NAME)
    assert table["operation"].to_pylist() == ["flush", "discard", "write"]
    assert table["queued_ns"].to_pylist() == [None] * 3


def test_what_the_kernel_dropped_is_told(tmp_path: Path) -> None:
    first, second = run_of(3)
    trace = stored(tmp_path, pages(first), page(0, b"", missed=5) + pages(second))
    assert trace.summary(0, 10**9).lost_events == 5
    assert trace.summary(0, 10**9).requests == 3


def test_without_events_there_is_an_empty_file(tmp_path: Path) -> None:
    assert stored(tmp_path, b"", b"").summary(0, 10).requests == 0
    assert pq.read_table(tmp_path / FILE_NAME).num_rows == 0


def test_the_number_is_the_kernels_own(tmp_path: Path) -> None:
    drive = BlockDevice(Path("/dev/x"), "nvme0n1", "259:300", 1, 512, tmp_path)
    assert device_number(drive) == 259 << 20 | 300
    (tmp_path / "class/block/nvme0n1/device/nvme0/nvme0c0n1").mkdir(parents=True)
    with pytest.raises(HostStateError):  # a hidden path has no number
        device_number(drive)


_TRACES = """
import sys
from pathlib import Path
from iojoule.datasets.errors import IojouleError
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.tracing.block_trace import tracer
try:
    with tracer(BlockDevice(Path("/dev/x"), "loop0", "7:0", 1, 512)):
        pass
except IojouleError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_where_it_is_not_allowed_it_is_said() -> None:
    words = [sys.executable, "-c", _TRACES]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("setpriv is not installed: apt-get install util-linux")
        words = [setpriv, "--bounding-set=-sys_admin", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == HostStateError.exit_code, done.stderr
    assert "--trace" in done.stdout


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[BlockDevice]:
    """A loop device of the test's own, 64 MiB."""
    if os.geteuid() != 0 or shutil.which("fio") is None:
        pytest.skip("needs root and fio")
    image = tmp_path / "image"
    image.write_bytes(b"\1" * (64 << 20))
    words = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip("no loop device can be made here")
    path = made.stdout.strip()
    try:
        device = open_block_device(Path(path))
        try:
            with tracer(device):
                pass
        except HostStateError as error:
            pytest.skip(error.message)
        yield device
    finally:
        subprocess.run(["losetup", "--detach", path], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "operation"),
    [
        (["--rw=randread", "--bs=4k", "--iodepth=16", "--number_ios=2000"], "read"),
        (["--rw=write", "--bs=4k", "--iodepth=32", "--iodepth_batch=32"], "write"),
        (["--rw=read", "--bs=1M", "--iodepth=2", "--number_ios=20"], "read"),
        (["--rw=randwrite", "--bs=4k", "--fsync=1", "--number_ios=20"], "write"),
    ],
)
def test_a_trace_counts_what_the_kernel_counts(
    loop: BlockDevice, tmp_path: Path, words: list[str], operation: str
) -> None:
    before = counters(loop)
    begin = time.monotonic_ns()
    with tracer(loop) as tracing:
        with tracing.recording(tmp_path):
            subprocess.run(
                ["fio", "--name=x", f"--filename={loop.path}", "--direct=1", "--size=16M",
                 "--ioengine=libaio", *words],
                capture_output=True, check=True,
            )  # fmt: skip
        trace = tracing.requests(tmp_path)
        folder = tracing.source.folder
        assert folder.is_dir()
    assert not folder.exists()
    now = counters(loop)
    summary = trace.summary(begin, time.monotonic_ns())
    first = 0 if operation == "read" else 4
    done, merged, sectors = (now[first + place] - before[first + place] for place in (0, 1, 2))
    if summary.lost_events == 0:
        data = summary.requests + (summary.flushes if operation == "write" else 0)
        assert (data, summary.merges, summary.bytes) == (done, merged, 512 * sectors)
        assert summary.unmatched == 0
    assert pq.read_table(tmp_path / FOLDER / FILE_NAME).num_rows >= summary.requests


def counters(device: BlockDevice) -> list[int]:
    return [int(word) for word in (device.folder / "stat").read_text().split()]


@pytest.mark.slow
def test_what_a_killed_campaign_left_is_removed(loop: BlockDevice) -> None:
    with tracer(loop) as tracing:
        left = tracing.source.folder.with_name("iojoule-4194304")  # above any process id
        left.mkdir()
        with pytest.raises(HostStateError), tracer(loop):
            pass  # its own name is taken, by this process
        assert not left.exists()
    with tracer(loop) as again, pytest.raises(HostStateError):
        replace(again.source, folder=Path("/nowhere")).start()
