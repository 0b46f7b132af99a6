"""Traces of every format: what their rows say, and what is refused by its line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, integers, lists, sampled_from, tuples

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces import read as reading
from iojoule.datasets.traces.formats import FORMATS, fitting, format_of
from iojoule.datasets.traces.read import Selection, TraceReader, ranges_of
from iojoule.datasets.traces.stream import head_of
from iojoule.datasets.traces.volumes import survey
from tests.datasets.traces.written import (
    QUOTED,
    Quoted,
    read,
    reader_of,
    rows_of,
)
from tests.reference_data import TRACES, needs_traces

every_format = pytest.mark.parametrize("quoted", QUOTED, ids=lambda one: one.form)


def alibaba(count: int, step_us: int = 130) -> bytes:
    rng = np.random.default_rng(count)
    return b"".join(
        b"%d,%s,%d,%d,%d\n"
        % (
            volume,
            b"RW"[write : write + 1],
            block * 4096,
            size * 512,
            1577808000000000 + i * step_us,
        )
        for i, (volume, write, block, size) in enumerate(
            zip(
                rng.integers(0, 9, count),
                rng.integers(0, 2, count),
                rng.integers(0, 1 << 20, count),
                rng.integers(1, 99, count),
                strict=True,
            )
        )
    )


@pytest.fixture
def written(tmp_path: Path, quoted: Quoted) -> Path:
    path = tmp_path / "trace"
    path.write_bytes(quoted.text)
    return path


@every_format
def test_rows_mean_what_their_publisher_says(written: Path, quoted: Quoted) -> None:
    assert rows_of(reader_of(written, quoted.form)) == quoted.rows


@every_format
@pytest.mark.parametrize("block_bytes", [1, 7, 100])
def test_the_size_of_a_block_changes_nothing(
    written: Path, quoted: Quoted, block_bytes: int
) -> None:
    reader = reader_of(written, quoted.form, block_bytes=block_bytes)
    assert rows_of(reader) == quoted.rows
    whole = reader_of(written, quoted.form)
    rows_of(whole)
    assert reader.notes() == whole.notes()


@every_format
def test_compressed_files_hold_the_same(tmp_path: Path, quoted: Quoted) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = {
        "gz": gzip.compress(quoted.text),
        "zst": zstandard.compress(quoted.text),
        "frames": zstandard.compress(quoted.text[:20]) + zstandard.compress(quoted.text[20:]),
        "tar.gz": gzip.compress(_tar(quoted.text)),
    }
    for ending, content in packed.items():
        path = tmp_path / f"trace.{ending}"
        path.write_bytes(content)
        assert rows_of(reader_of(path, quoted.form)) == quoted.rows


def _tar(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("2018-10-01-01/1538323200")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@every_format
def test_a_file_fits_its_own_format_alone(quoted: Quoted) -> None:
    assert fitting(quoted.text) == [quoted.form]


@every_format
def test_a_format_is_taken_without_its_name_only_where_no_other_means_something_else(
    quoted: Quoted,
) -> None:
    if FORMATS[quoted.form].guessable:
        assert format_of(quoted.text, "x").name == quoted.form
    else:
        with pytest.raises(InputError, match=quoted.form):
            format_of(quoted.text, "x")


@every_format
def test_a_file_whose_first_rows_fit_is_of_that_format(quoted: Quoted) -> None:
    """So that reading it names the line that does not."""
    if quoted.form == "cloudphysics" or not FORMATS[quoted.form].guessable:
        pytest.skip("has no lines, or is never guessed")
    assert format_of(quoted.text + b"1234,no row\n", "x").name == quoted.form


@every_format
def test_a_row_of_another_format_is_named_with_its_line(tmp_path: Path, quoted: Quoted) -> None:
    if quoted.form == "cloudphysics":
        pytest.skip("has no lines")
    other = b"0,303574,3584,r,0.5\n" if quoted.form != "spc" else b"938513000 4 264719034 16 0\n"
    # before the end, because a summary ends blkparse's events
    first, rest = quoted.text.split(b"\n", 1)
    head = first + b"\n"
    path = tmp_path / "mixed"
    path.write_bytes(head + other + rest)
    with pytest.raises(InputError, match=rf"mixed: line 2:.*{quoted.form}.*the line fits"):
        read(reader_of(path, quoted.form))


@every_format
@pytest.mark.parametrize("cut", [1, 3, 8])
def test_a_cut_last_row_is_left_out_and_named(tmp_path: Path, quoted: Quoted, cut: int) -> None:
    text = quoted.text.rstrip(b"\n")
    path = tmp_path / "trace"
    path.write_bytes(text[:-cut])
    reader = reader_of(path, quoted.form)
    rows = rows_of(reader)
    # a number may be cut to a shorter one; but no time may go back, and no row may be made up
    assert rows[: len(quoted.rows) - 1] == quoted.rows[: len(rows[: len(quoted.rows) - 1])]
    if len(rows) < len(quoted.rows):
        assert "cut" in reader.report.oddities or "empty" in reader.report.oddities


def test_a_cut_time_is_no_time(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(5)[:-6])
    reader = reader_of(path, "alibaba")
    assert read(reader).arrival_ns.tolist() == [0, 130_000, 260_000, 390_000]
    assert reader.report.oddities["cut"] == (1, f"{path}: line 5")


def test_compressed_files_that_were_cut_are_refused(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    text = alibaba(2000)
    for packed in (gzip.compress(text), zstandard.compress(text)):
        path = tmp_path / "trace.packed"
        path.write_bytes(packed[:-100])
        with pytest.raises(InputError, match="damaged or cut off"):
            read(reader_of(path, "alibaba"))


def test_rows_without_length_are_counted_with_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"0,1,512,r,0.0\n0,2,0,w,0.1\n0,3,0,w,0.2\n0,4,512,w,0.3\n")
    reader = reader_of(path, "spc")
    assert len(read(reader).arrival_ns) == 2
    assert reader.report.oddities == {"empty": (2, f"{path}: line 2")}


def test_rows_out_of_order_are_sorted_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"0,1,512,r,1.0\n0,2,512,w,0.25\n0,3,512,w,0.5\n0,4,512,w,2.0\n")
    reader = reader_of(path, "spc")
    batch = read(reader)
    assert (batch.offset_bytes // 512).tolist() == [2, 3, 1, 4]
    assert batch.arrival_ns.tolist() == [0, 250_000_000, 750_000_000, 1_750_000_000]
    assert reader.report.oddities == {"back": (2, f"{path}: line 2")}


@settings(max_examples=40, deadline=None)
@given(
    lists(tuples(integers(0, 40), integers(0, 3)), min_size=1, max_size=60),
    integers(1, 9),
    integers(1, 70),
)
def test_any_order_becomes_one_that_never_goes_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int]],
    window: int,
    block_bytes: int,
) -> None:
    path = tmp_path_factory.mktemp("traces") / "trace"
    path.write_bytes(b"".join(b"%d %d %d 1 1\n" % (at, v, n) for n, (at, v) in enumerate(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "WINDOW_ROWS", window)
        reader = reader_of(path, "mqsim", Selection(time_unit="ns"), block_bytes)
        batch = read(reader)
        again = read(reader_of(path, "mqsim", Selection(time_unit="ns")))
    assert sorted(batch.offset_bytes // 512) == list(range(len(rows)))
    assert (np.diff(batch.arrival_ns) >= 0).all()
    for one, other in zip(batch, again, strict=True):
        assert (one == other).all()
    if "back" not in reader.report.oddities:
        assert batch.arrival_ns.tolist() == [at - rows[0][0] for at, _ in rows]


def test_files_are_one_trace_by_time_whatever_their_order(tmp_path: Path) -> None:
    lines = alibaba(5000).splitlines(keepends=True)
    paths = []
    for number in range(4):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(b"".join(lines[number::4] if number < 2 else lines[number * 1000 :: 4]))
        paths.append(path)
    whole = tmp_path / "whole"
    kept = {line for path in paths for line in path.read_bytes().splitlines(keepends=True)}
    whole.write_bytes(b"".join(line for line in lines if line in kept))
    form = FORMATS["alibaba"]
    merged = TraceReader((paths[3], paths[0], paths[2], paths[1]), form)
    apart = [line for path in paths for line in path.read_bytes().splitlines()]
    assert len(read(merged).arrival_ns) == len(apart)
    first = read(TraceReader((paths[0], paths[1]), form))
    assert (np.diff(first.arrival_ns) >= 0).all()
    same = {number: line for number, line in enumerate(lines) if number % 4 < 2}
    assert first.offset_bytes.tolist() == [int(line.split(b",")[2]) for line in same.values()]


def test_volumes_are_picked_and_unknown_ones_named(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(500))
    everything = rows_of(reader_of(path, "alibaba"))
    picked = rows_of(reader_of(path, "alibaba", Selection(volumes=("3", "5"))))
    assert picked == [row for row in everything if row[4] in "35"]
    for names in (("77",), ("3", "77")):
        with pytest.raises(InputError, match="--volume 77"):
            read(reader_of(path, "alibaba", Selection(volumes=names)))
    # what comes later is not known
    reader = reader_of(path, "alibaba", Selection(volumes=("3", "77"), seconds=0.02))
    read(reader)
    assert reader.unmet == ("77",)


def test_merged_volumes_never_share_an_address(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(3000))
    plain = reader_of(path, "alibaba")
    alone = read(plain)
    end = alone.offset_bytes + alone.size_bytes
    ends = {
        name: int(end[alone.volume == number].max()) for number, name in enumerate(plain.volumes)
    }
    ranges = ranges_of(ends)
    placed = read(reader_of(path, "alibaba", Selection(ranges=ranges)))
    owner = sorted((ranges[name], ranges[name] + ends[name]) for name in ends)
    assert all(before[1] <= after[0] for before, after in pairwise(owner))
    base = np.array([ranges[name] for name in plain.volumes])
    assert (placed.offset_bytes - base[placed.volume] == alone.offset_bytes).all()


def test_time_is_cut_and_scaled(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(1000, step_us=1000))
    batch = read(reader_of(path, "alibaba", Selection(start_seconds=0.2, seconds=0.1, speed=4)))
    assert len(batch.arrival_ns) == 100
    assert batch.arrival_ns.tolist()[:3] == [0, 250_000, 500_000]


@pytest.mark.parametrize("speed", [1e-12, 1e-300])
def test_a_speed_at_which_a_trace_never_ends_is_named(tmp_path: Path, speed: float) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(1000, step_us=1000_000))
    with pytest.raises(InputError) as refused:
        read(reader_of(path, "alibaba", Selection(speed=speed)))
    assert refused.value.field == "speed"


def test_a_sample_keeps_regions_whole_and_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(alibaba(20_000))
    reader = reader_of(path, "alibaba", Selection(sample=0.25))
    kept = read(reader)
    alone = reader_of(path, "alibaba")
    whole = read(alone)
    region = set(zip(kept.volume.tolist(), (kept.offset_bytes >> 20).tolist(), strict=True))
    inside = [
        key in region
        for key in zip(whole.volume.tolist(), (whole.offset_bytes >> 20).tolist(), strict=True)
    ]
    assert sum(inside) == len(kept.arrival_ns) == reader.sampled.requests_kept
    assert reader.sampled.requests == 20_000
    assert 0.2 < reader.sampled.requests_kept / 20_000 < 0.3


def test_requests_beyond_the_drive_are_named_or_folded_back(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"0,1,512,r,0.0\n0,3000,512,w,0.1\n")
    with pytest.raises(InputError, match=r"trace: line 2: the request ends at byte 1536512"):
        read(reader_of(path, "spc", Selection(capacity_bytes=1 << 20)))
    reader = reader_of(path, "spc", Selection(capacity_bytes=1 << 20, wrap=True))
    batch = read(reader)
    assert (batch.offset_bytes + batch.size_bytes <= 1 << 20).all()
    assert reader.report.oddities["wrapped"] == (1, f"{path}: line 2")


@given(
    requests=lists(tuples(integers(0, 1 << 22), sampled_from([512, 4096, 66048])), min_size=1),
    capacity=integers(1 << 8, 1 << 12),
)
def test_a_folded_address_keeps_its_place_whatever_the_size_of_its_requests(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[int, int]], capacity: int
) -> None:
    """But for a request that the end of the drive would split: it is at the beginning."""
    path, capacity_bytes = tmp_path_factory.mktemp("wrap") / "trace", capacity * 512
    path.write_text("".join(f"0,{sector},{size},r,0.0\n" for sector, size in requests))
    batch = read(reader_of(path, "spc", Selection(capacity_bytes=capacity_bytes, wrap=True)))
    for (sector, size), placed in zip(requests, batch.offset_bytes.tolist(), strict=True):
        folded = sector * 512 % capacity_bytes
        assert placed == (folded if folded + size <= capacity_bytes else 0)


def test_a_unit_of_time_counts_for_waits(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("fio version 2 iolog\na read 0 512\na wait 1500 0\na read 0 512\n")
    for unit, wait_ns in (("ns", 1500), (None, 1_500_000), ("ms", 1_500_000_000)):
        batch = read(reader_of(path, "fio-iolog", Selection(time_unit=unit)))
        assert batch.arrival_ns.tolist() == [0, wait_ns]


def test_files_of_an_archive_without_a_last_end_of_line_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "trace.tar"
    with tarfile.open(path, "w") as archive:
        for number, text in enumerate([b"0,1,512,r,0.0", b"0,2,512,r,0.1\n", b"0,3,512,r,0.2"]):
            member = tarfile.TarInfo(str(number))
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    assert read(reader_of(path, "spc")).offset_bytes.tolist() == [512, 1024, 1536]


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_file_of_another_packing_is_named(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pack(alibaba(10)))
    with pytest.raises(InputError, match=r"trace: is compressed with (bzip2|xz)"):
        format_of(head_of(path), str(path))


@pytest.mark.parametrize(
    ("form", "text", "sensible"),
    [
        ("alibaba", b"0,R,0,4096,1577808000\n", "s (2019-12-31)"),
        ("tencent", b"1538323199000,8,8,0,1\n", "as ms it would be a date"),
        (
            "mqsim",
            b"".join(b"%d 0 8 8 1\n" % (i * 20) for i in range(200)),
            "us (5e+04 requests/s)",
        ),
        ("mqsim", b"".join(b"%d 0 8 8 1\n" % (i * 10**13) for i in range(200)), "ps (0.1"),
    ],
)
def test_a_unit_of_time_that_cannot_be_is_refused_with_one_that_can(
    tmp_path: Path, form: str, text: bytes, sensible: str
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(text)
    with pytest.raises(InputError) as refused:
        read(reader_of(path, form))
    assert sensible in str(refused.value)


def test_a_stated_unit_of_time_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"".join(b"%d 0 8 8 1\n" % (i * 20) for i in range(200)))
    batch = read(reader_of(path, "mqsim", Selection(time_unit="us")))
    assert batch.arrival_ns[1] == 20_000


@settings(max_examples=150, deadline=None)
@given(sampled_from(QUOTED), binary(max_size=40), integers(0, 400), integers(0, 30))
def test_no_damage_ends_in_anything_but_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, quoted: Quoted, damage: bytes, at: int, lost: int
) -> None:
    at = min(at, len(quoted.text))
    path = tmp_path_factory.mktemp("traces") / "trace"
    path.write_bytes(quoted.text[:at] + damage + quoted.text[at + lost :])
    for form in (quoted.form, *FORMATS):
        try:
            batch = read(reader_of(path, form))
        except InputError:
            continue
        assert (np.diff(batch.arrival_ns) >= 0).all()
        assert (batch.size_bytes > 0).all()
        assert (batch.offset_bytes >= 0).all()


def test_a_text_without_lines_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"1" * (3 << 20))
    with pytest.raises(InputError, match="longer than 1 MiB"):
        read(reader_of(path, "spc"))


@needs_traces
@pytest.mark.parametrize(
    ("name", "form", "requests", "volumes", "seconds"),
    [
        ("umass_financial1_first949.spc", "spc", 949, 16, 28.442623),
        ("umass_financial1_first10000.ssdsim.ascii", "mqsim", 10_000, 22, 259.601203125),
        ("cloudphysics_first20000.vscsi", "cloudphysics", 20_000, 1, 1798.785463),
        ("blkparse_nvme_flush_header.txt", "blkparse", 225, 1, 25.017676409),
    ],
)
def test_real_files_hold_what_they_hold(
    name: str, form: str, requests: int, volumes: int, seconds: float
) -> None:
    reader = reader_of(TRACES / name, form)
    batch = read(reader)
    assert (len(batch.arrival_ns), len(reader.volumes)) == (requests, volumes)
    assert batch.arrival_ns[-1] / 1e9 == pytest.approx(seconds, abs=1e-9)


@needs_traces
def test_one_trace_in_two_formats_is_the_same_but_for_its_rounded_times() -> None:
    spc = read(reader_of(TRACES / "umass_financial1_first949.spc", "spc"))
    other = read(reader_of(TRACES / "umass_financial1_first10000.ssdsim.ascii", "mqsim"))
    assert (spc.offset_bytes == other.offset_bytes[:949]).all()
    assert (spc.is_write == other.is_write[:949]).all()
    assert (spc.size_bytes == other.size_bytes[:949]).all()
    assert np.abs(spc.arrival_ns - other.arrival_ns[:949]).max() < 2_000


_STREAMED = """
import re, sys
from pathlib import Path
from iojoule.datasets.traces.formats import FORMATS
from iojoule.datasets.traces.read import TraceReader
reader = TraceReader((Path(sys.argv[1]),), FORMATS["tencent"])
count = sum(len(batch.arrival_ns) for batch in reader.batches())
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(count, int(peak[1]) // 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rows = b"".join(b"1538323199,%d,584,%d,%d\n" % (i * 8, i % 2, i % 99) for i in range(100_000))
    peaks = []
    for copies in (15, 60):
        path = tmp_path / f"{copies}.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            for _ in range(copies):
                file.write(rows)
        done = subprocess.run(
            [sys.executable, "-c", _STREAMED, str(path)], capture_output=True, text=True, check=True
        )
        count, peak_mib = map(int, done.stdout.split())
        assert count == copies * 100_000
        peaks.append(peak_mib)
    # 4.5 million more rows would be 180 MiB
    assert peaks[1] < peaks[0] + 20
    assert peaks[1] < 250


def shared(tmp_path: Path) -> Path:
    """A request a second of volume 0 for 1000 s; of volume 1 ten within 1 ms after 300 s."""
    rows = [(1_000_000 * i, 0, 8192 * i) for i in range(1000)]
    rows += [(300_000_000 + 100 * i, 1, 4096 * i) for i in range(10)]
    path = tmp_path / "trace"
    path.write_text(
        "".join(f"{v},W,{at},4096,{1577808000000000 + us}\n" for us, v, at in sorted(rows))
    )
    return path


def test_what_volumes_move_adds_up_to_what_all_of_them_move(tmp_path: Path) -> None:
    path = shared(tmp_path)
    seen = survey(reader_of(path, "alibaba"))
    windows = [seen.window(seen.volumes[name]) for name in "01"]
    alone = survey(reader_of(path, "alibaba", Selection(volumes=("1",))))
    pooled = survey(reader_of(path, "alibaba"), merge=True)
    window = pooled.window(pooled.volumes["merged"])
    assert window.seconds == pytest.approx(999 * 1010 / 1009)
    assert window.bytes == sum(each.bytes for each in windows)
    assert {each.seconds for each in windows} == {window.seconds}
    assert alone.window(alone.volumes["1"]) == windows[1]


def test_a_volume_is_idle_before_its_first_request_and_behind_its_last(tmp_path: Path) -> None:
    seen = survey(reader_of(shared(tmp_path), "alibaba", Selection(seconds=700.0)))
    steady, burst = (seen.window(seen.volumes[name]) for name in "01")
    assert steady.seconds == burst.seconds == 700.0
    assert burst.gaps is not None
    assert (burst.gaps.count, burst.gaps.total) == (1, pytest.approx(700 - 9e-4))
    # a request each second is a gap of a second behind each, also behind the last
    assert steady.gaps is not None
    assert (steady.gaps.count, steady.gaps.total) == (700, pytest.approx(700))
    later = survey(reader_of(shared(tmp_path), "alibaba", Selection(start_seconds=100.0)))
    began = [seen.began_unix_seconds, later.began_unix_seconds]
    assert began == [1577808000.0, 1577808100.0]


def test_requests_of_one_time_tell_no_demand(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("0,R,4096,4096,1577808000000000\n" * 3)
    seen = survey(reader_of(path, "alibaba"))
    assert seen.window(seen.volumes["0"]).seconds is None
    assert any("one time" in note for note in seen.summary("0").notes)


def test_a_zst_file_cut_within_a_frame_is_refused_wherever_that_is(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    text, path = alibaba(3000), tmp_path / "trace.zst"
    streamed = zstandard.ZstdCompressor().compressobj()
    sizeless = streamed.compress(text) + streamed.flush()
    frames = b"".join(zstandard.compress(text[i : i + 20_000]) for i in (0, 20_000))
    for packed in (sizeless, frames):
        for cut in (5, len(packed) // 2 + 7, len(packed) - 1):
            path.write_bytes(packed[:cut])
            with pytest.raises(InputError, match="damaged or cut off"):
                read(reader_of(path, "alibaba"))
    path.write_bytes(sizeless)
    assert len(read(reader_of(path, "alibaba")).arrival_ns) == 3000


def test_the_last_step_of_a_coarse_clock_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("".join(f"{1538323199 + i // 200},{i},16,0,7\n" for i in range(2000)))
    seen = survey(reader_of(path, "tencent"))
    window = seen.window(seen.volumes["7"])
    assert window.seconds == pytest.approx(10.0)
    assert window.bytes / 10.0 == 200 * 8192
