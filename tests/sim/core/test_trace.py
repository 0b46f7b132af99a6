"""The native trace reader: what it takes, and where it says what is wrong."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.sim import _core
from iojoule.sim.errors import LimitError, TraceError
from tests.errors import having
from tests.reference_data import MQSIM_RUNS, needs_mqsim_runs


def read(path: Path, memory_bytes: int = 1 << 24) -> _core.Trace:
    limits = _core.Limits()
    limits.memory_bytes = memory_bytes
    return _core.read_trace(str(path), limits)


def read_text(folder: Path, text: str | bytes) -> list[tuple[int, int, int, bool]]:
    path = folder / "t.trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    trace = read(path)
    columns = (trace.arrival_ns, trace.start_sector, trace.sectors, trace.is_read)
    return [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


requests = st.lists(
    st.tuples(
        st.integers(0, 10**15),
        st.integers(0, 2**48),
        st.integers(1, 65536),
        st.sampled_from([0, 1, 2, 40]),
    ),
    min_size=1,
    max_size=20,
)


@given(requests, st.sampled_from([" ", "\t", "   "]), st.sampled_from(["\n", "\r\n", "\n\n\n"]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, int, int]],
    blank: str,
    end: str,
) -> None:
    rows.sort(key=lambda row: row[0])
    lines = [blank.join(map(str, (time, 7, *rest))) for time, *rest in rows]
    text = ("\r\n" if end == "\r\n" else "\n").join(lines) + end
    found = read_text(tmp_path_factory.getbasetemp(), text)
    assert found == [(time, start, size, kind != 0) for time, start, size, kind in rows]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("0 0 0 8 1\n5 0 0 8\n", 2, "has 4 columns, not 5"),
        ("0 0 0 8 1 9\n", 1, "has more than 5 columns"),
        ("9 0 0 8 1\n8 0 0 8 1\n", 2, "goes back from 9 to 8 ns; sort the file"),
        ("0 0 0 8 1\n\n1 0 0 8 1\n", 2, "is empty but requests follow"),
        ("0 0 0 0 1\n", 1, "0 sectors"),
        ("0 0 0 65537 1\n", 1, "number of sectors is beyond 65536"),
        ("0 0 -1 8 1\n", 1, "first sector is not a whole number: '-1'"),
        ("0 0 1.5 8 1\n", 1, "first sector is not a whole number: '1.5'"),
        ("0 0 999999999999999999999999 8 1\n", 1, "is beyond"),
        ("1e9 0 0 8 1\n", 1, "arrival in ns is not a whole number: '1e9'"),
        ("1000000000000001 0 0 8 1\n", 1, "arrival in ns is beyond"),
        ("0 0 0 8 W\n", 1, "type (0 write, else read) is not a whole number: 'W'"),
        ("\ufeff0 0 0 8 1\n", 1, r"'\xef\xbb\xbf0'"),
        ("0 0 0 8 1\r0 0 0 8 1\n", 1, "more than 5 columns"),
        (b"\x00\xff 0 0 8 1\n", 1, r"'\x00\xff'"),
        ("x" * 100 + " 0 0 8 1", 1, "'" + "x" * 24 + "...'"),
        ("", 0, "holds no request"),
        ("\n\n", 0, "holds no request"),
    ],
)
def test_a_damaged_file_is_refused_at_its_line(
    text: str | bytes, line: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceError) as caught:
        read_text(tmp_path, text)
    error = caught.value
    assert said in error.message
    assert error.line == line
    assert error.path == str(tmp_path / "t.trace")
    assert error.message.startswith(f"{error.path}, line {line}: " if line else f"{error.path}: ")


def test_a_missing_file_says_why(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read(tmp_path / "none")


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(TraceError, match="is not a file"):
            read(path)


def test_memory_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    with pytest.raises(LimitError, check=having(limit="memory_bytes")) as caught:
        read(path)
    assert caught.value.limit == "memory_bytes"
    (tmp_path / "lines").write_text("0 0 0 8 1\n" * 100)
    assert len(read(tmp_path / "lines", 4000)) == 100
    with pytest.raises(LimitError):
        read(tmp_path / "lines", 3000)


def test_columns_outlive_the_trace(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("".join(f"{i} 0 {2 * i} 8 {i % 2}\n" for i in range(1000)))
    arrival, is_read = (lambda trace: (trace.arrival_ns, trace.is_read))(read(tmp_path / "t"))
    assert arrival.tolist() == list(range(1000))
    assert is_read.sum() == 500
    assert not arrival.flags.writeable


@needs_mqsim_runs
@pytest.mark.parametrize(
    ("name", "count", "first_ns", "seconds"),
    [("tpcc-small.trace", 6999, 0.94e9, 0.137), ("wsrch-small.trace", 24783, 0, 60)],
)
def test_the_traces_of_mqsim(name: str, count: int, first_ns: float, seconds: float) -> None:
    trace = read(MQSIM_RUNS / "traces" / name)
    assert len(trace) == count
    first, last = (float(trace.arrival_ns[index]) for index in (0, -1))
    assert first == pytest.approx(first_ns, rel=0.01, abs=1e8)
    assert (last - first) / 1e9 == pytest.approx(seconds, rel=0.02)
