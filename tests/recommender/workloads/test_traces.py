"""Traces as they are written, what they say, and what is refused by its line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import (
    DrawFn,
    composite,
    floats,
    integers,
    lists,
    sampled_from,
    text,
    tuples,
)

from iojoule.datasets.errors import InputError
from iojoule.recommender.workloads.sources import SourceKind, kind_of, open_source, summary_of
from iojoule.recommender.workloads.trace import (
    Kind,
    Trace,
    parse_blkparse,
    parse_fio_iolog,
    parse_mqsim_trace,
    sequential_share,
    window_of,
)

# printed by blkparse 1.3.0 of Debian 12 from events that were put together for it
BLKPARSE = """\
  8,0    0        1     0.000000000    77  Q  WS 1000 + 16 [(null)]
  8,0    0        2     0.000010000    77  G  WS 1000 + 16 [(null)]
  8,0    0        3     0.000020000    77  D  WS 1000 + 16 [(null)]
  8,0    0        4     0.002000000    77  C  WS 1000 + 16 [0]
  8,0    0        5     0.003000000    77  Q FWS [(null)]
  8,0    0        6     0.003010000    77  D  FN [(null)]
  8,0    0        7     0.005000000    77  C  FN 0 [0]
  8,0    0        8     0.100000000    77  Q  RA 5000 + 8 [(null)]
  8,0    0        9     0.100100000    77  D  RA 5000 + 8 [(null)]
  8,0    0       10     0.101000000    77  C   R 5000 + 8 [0]
  8,0    0       11     0.150000000    77  Q FWFM 6000 + 8 [(null)]
  8,0    0       12     0.151000000    77  D  WF 6000 + 8 [(null)]
  8,0    0       13     0.152000000    77  C  WF 6000 + 8 [0]
  8,0    0       14     0.160000000    77  Q   D 7000 + 128 [(null)]
  8,0    0       15     0.161000000    77  X   W 7000 / 7064 [(null)]
  8,0    0       16     0.161500000    77  P   N [(null)]
  8,0    0       17     0.162000000    77  U   N [(null)] 1
  8,0    0       18     0.163000000    77  M   W 1016 + 8 [(null)]
  8,0    0       19     0.164000000    77  A   R 9000 + 8 <- (8,1) 3000
  8,0    0       20     0.165000000    77  D   D 7000 + 128 [(null)]
  8,0    0       21     0.170000000    77  C   D 7000 + 128 [0]
CPU0 (dev):
 Reads Queued:           2,       68KiB	 Writes Queued:           3,       12KiB

Throughput (R/W): 400KiB/s / 70KiB/s
Events (dev): 21 entries
Skips: 0 forward (0 -   0.0%)
Input file dev.blktrace.0 added
"""

IOLOG_3 = """\
fio version 3 iolog
0 /dev/x add
5 /dev/x open
1000 /dev/x write 0 4096
1100 /dev/x write 4096 4096
1200 /dev/x datasync 0 0
501000 /dev/x read 81920 8192
501500 /dev/x trim 0 65536
601000 /dev/x close
"""

IOLOG_2 = """\
fio version 2 iolog
/dev/x add
/dev/x open
/dev/x read 0 4096
/dev/x wait 100 0
/dev/x write 8192 4096
/dev/x close
"""

MQSIM = "0 1 0 8 0\n\n1000000 1 8 8 1\n500000000 1 64 16 1\n"


def test_blkparse_text_tells_requests_flushes_and_time_at_the_drive() -> None:
    trace, notes = parse_blkparse(BLKPARSE, "trace.txt")
    seen = window_of(trace)
    assert (seen.reads, seen.writes, seen.discards) == (1, 2, 1)
    assert (seen.read_bytes, seen.write_bytes) == (4096, 8192 + 4096)
    assert seen.flushes == 2, "one by itself and one that a write brought"
    assert seen.forced_writes == 1
    assert seen.busy_seconds == pytest.approx(0.00198 + 0.00199 + 0.0009 + 0.001 + 0.005)
    assert seen.gaps is not None
    assert seen.gaps.count == 3
    assert seen.gaps.total == pytest.approx((0.1001 - 0.005) + (0.151 - 0.101) + 0.013)
    assert notes == ()


def test_of_several_devices_the_busiest_counts() -> None:
    other = "  8,16   0        1     0.000000000    77  Q   R 1 + 8 [x]\n"
    trace, notes = parse_blkparse(other + BLKPARSE, "trace.txt")
    assert len(trace.kind) == 6
    assert any("8,16" in note for note in notes)


def test_a_timed_iolog_tells_rate_and_gaps() -> None:
    trace, notes = parse_fio_iolog(IOLOG_3, "log")
    seen = window_of(trace)
    assert (seen.reads, seen.writes, seen.flushes, seen.discards) == (1, 2, 1, 1)
    assert seen.seconds == pytest.approx(0.5 * 3 / 2), "one more would come a mean interval later"
    assert seen.gaps is not None
    assert seen.gaps.total == pytest.approx(0.4999)
    assert seen.sequential_share == pytest.approx(0.5)
    assert notes == ()


def test_an_untimed_iolog_tells_no_rate() -> None:
    trace, notes = parse_fio_iolog(IOLOG_2, "log")
    seen = window_of(trace)
    assert (seen.reads, seen.writes, seen.seconds, seen.gaps) == (1, 1, None, None)
    assert any("no times" in note for note in notes)
    assert any("1 wait" in note for note in notes)


def test_a_trace_of_mqsim() -> None:
    trace, _ = parse_mqsim_trace(MQSIM, "trace")
    seen = window_of(trace)
    assert (seen.reads, seen.writes, seen.flushes) == (2, 1, None)
    assert seen.read_bytes == (8 + 16) * 512
    assert seen.gaps is not None
    assert seen.gaps.total == pytest.approx(0.499)


@pytest.mark.parametrize(
    ("parse", "written", "line"),
    [
        (parse_fio_iolog, "", 1),
        (parse_fio_iolog, "fio version 1 iolog\n", 1),
        (parse_fio_iolog, IOLOG_3 + "oops\n", 10),
        (parse_fio_iolog, IOLOG_3 + "5 /dev/x read 0 4096\n", 10),
        (parse_fio_iolog, IOLOG_2 + "/dev/x read -1 4096\n", 8),
        (parse_fio_iolog, IOLOG_2 + "/dev/x read 0 0\n", 8),
        (parse_mqsim_trace, MQSIM + "1 1 1 1\n", 5),
        (parse_mqsim_trace, MQSIM + "1 1 1 1 1\n", 5),
        (parse_mqsim_trace, "1 1 1 0 1\n", 1),
        (parse_mqsim_trace, "1 1 1 1e3 1\n", 1),
        (parse_blkparse, "8,0 hello\n" + BLKPARSE, 1),
    ],
)
def test_what_is_none_of_a_trace_is_named_by_its_line(
    parse: Callable[[str, str], object], written: str, line: int
) -> None:
    with pytest.raises(InputError, match=f"some.file: line {line}:"):
        parse(written, "some.file")


@pytest.mark.parametrize(
    ("parse", "written"),
    [
        (parse_fio_iolog, "fio version 3 iolog\n"),
        (parse_mqsim_trace, "\n"),
        (parse_blkparse, BLKPARSE[BLKPARSE.index("CPU0") :]),
        (parse_blkparse, BLKPARSE.splitlines()[4]),
    ],
)
def test_a_trace_without_requests_says_so(
    parse: Callable[[str, str], object], written: str
) -> None:
    with pytest.raises(InputError, match=r"some.file: (holds no request|nothing was read)"):
        parse(written, "some.file")


@composite
def almost(draw: DrawFn) -> str:
    """Lines of real traces, some of them damaged."""
    words = text(" \t0123456789+,.:[]-QDCRWFNAMS", max_size=12)
    lines = [*BLKPARSE.splitlines(), *IOLOG_3.splitlines(), *IOLOG_2.splitlines(), "1 2 3 4 5"]
    first = draw(sampled_from(["fio version 3 iolog", "fio version 2 iolog", "0 0 0 8 1", ""]))
    chosen = draw(lists(sampled_from(lines) | words, max_size=12))
    return "\n".join([first, *chosen])


@given(
    sampled_from([parse_fio_iolog, parse_blkparse, parse_mqsim_trace]),
    text(max_size=200) | almost(),
)
def test_any_text_is_a_trace_or_refused_with_its_name(
    parse: Callable[[str, str], tuple[Trace, tuple[str, ...]]], written: str
) -> None:
    refused = None
    try:
        trace, _ = parse(written, "some.file")
    except InputError as error:
        refused = error
    if refused is None:
        assert window_of(trace).requests >= 0
    else:
        assert refused.message.startswith("some.file: ")


@given(text(max_size=100) | almost())
def test_any_text_is_of_a_kind_or_refused(written: str) -> None:
    with contextlib.suppress(InputError):
        assert kind_of(written, Path("some.file")) in SourceKind


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (BLKPARSE, SourceKind.BLKPARSE),
        (IOLOG_3, SourceKind.FIO_IOLOG),
        (MQSIM, SourceKind.MQSIM_TRACE),
        ("# a job\n[global]\n", SourceKind.FIO_JOB),
        ('{"schema_version": 1}', SourceKind.OBSERVED),
    ],
)
def test_the_first_line_tells_what_a_file_is(
    tmp_path: Path, written: str, kind: SourceKind
) -> None:
    path = tmp_path / "file"
    path.write_text(written)
    assert open_source(path).kind is kind


requests = lists(
    tuples(integers(0, 1), integers(0, 1 << 20), integers(1, 256), floats(0, 0.2)),
    min_size=2, max_size=60,
)  # fmt: skip


@given(requests)
def test_time_at_the_drive_and_gaps_fill_the_trace(
    requests: list[tuple[int, int, int, float]],
) -> None:
    kind, offset, size, lasted = (np.array(column) for column in zip(*requests, strict=True))
    at = np.cumsum(np.linspace(0, 0.05, len(kind)))
    trace = Trace(kind, offset * 512, size * 512, at, held=np.column_stack([at, at + lasted]))
    seen = window_of(trace, 1e-9)
    assert seen.gaps is not None
    end = float((at + lasted).max())
    assert seen.gaps.total + (seen.busy_seconds or 0) == pytest.approx(end, abs=1e-6)
    assert sum(level * time for level, time in seen.in_flight.items()) == pytest.approx(
        lasted.sum(), abs=1e-6
    )


def test_streams_that_take_turns_are_sequential() -> None:
    streams = np.array([0, 1 << 30]) + np.arange(50)[:, np.newaxis] * 4096
    sizes = np.full(100, 4096)
    assert sequential_share(streams.ravel(), sizes) == pytest.approx(98 / 99)
    chance = np.random.default_rng(1).integers(0, 1 << 20, 1000) * 4096
    assert sequential_share(chance, np.full(1000, 4096)) == pytest.approx(0, abs=0.01)
    assert sequential_share(chance[:1], sizes[:1]) is None


def test_a_flush_is_no_data() -> None:
    trace = Trace(
        np.array([Kind.FLUSH, Kind.WRITE]), np.zeros(2, int), np.array([0, 512]), np.array([0, 1.0])
    )
    assert window_of(trace).requests == 1


def test_a_trace_of_one_time_says_that_it_tells_no_demand() -> None:
    text = "fio version 3 iolog\n5 f read 0 4096\n5 f read 8192 4096\n"
    seen = summary_of(Path("t"), text, SourceKind.FIO_IOLOG)
    assert seen.windows[0].seconds is None
    assert any("one time" in note for note in seen.notes)
