"""Files of traces as rows: plain, gz, zst or tar, a block at a time, with what is wrong in them."""

from __future__ import annotations

import datetime
import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces.formats import UNITS_PS, Parser, TraceFormat, fitting

BLOCK_BYTES = 4 << 20
HEAD_BYTES = 1 << 16
LINE_BYTES = 1 << 20
"""A file without the end of a line in so many bytes is no text."""

_PACKED_BYTES = 4096
"""Of a zst file taken at a time: they may unfold to 128 MiB."""

_OTHER_PACKINGS = re.compile(
    rb"(?P<xz>\xfd7zXZ\x00)|(?P<bzip2>BZh[1-9]1AY)|(?P<zip>PK\x03\x04)|(?P<rar>Rar!\x1a\x07)"
)

WINDOW_ROWS = 1 << 18
"""Rows that are put in order together; a row that is later than that loses its time."""


class Rows(NamedTuple):
    """Requests as arrays of shape (n,); volumes are numbers of the reader's list of names."""

    arrival_ns: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    is_write: NDArray[np.bool_]
    volume: NDArray[np.uint32]
    line: NDArray[np.uint64]
    file: NDArray[np.uint32]

    def pick(self, which: Any) -> Rows:
        """The rows of a mask, an index array or a slice."""
        columns: list[Any] = [column[which] for column in self]
        return Rows(*columns)

    @property
    def total(self) -> int:
        """How many."""
        return len(self.arrival_ns)


def joined(parts: list[Rows]) -> Rows:
    """One after the other."""
    return parts[0] if len(parts) == 1 else Rows(*map(np.concatenate, zip(*parts, strict=True)))


def sort_by_time(rows: Rows) -> Rows:
    """In order of arrival; ties keep their order."""
    if (rows.arrival_ns[1:] >= rows.arrival_ns[:-1]).all():
        return rows
    return rows.pick(np.argsort(rows.arrival_ns, kind="stable"))


_TOLD = {
    "empty": "{} rows have no length and are left out",
    "ignored": "{} rows neither read nor write and are left out",
    "discard": "{} discards are left out",
    "flush": "{} flushes are left out",
    "cut": "the last line is cut off and left out",
    "back": "{} rows go back in time and were sorted",
    "late": f"{{}} rows come more than {WINDOW_ROWS} rows late and take the time they are met at",
    "wrapped": "{} requests reach beyond the drive and are folded back by its size",
}


@dataclass
class Report:
    """What was odd: kind -> how often, and where first."""

    oddities: dict[str, tuple[int, str]] = field(default_factory=dict)
    rows: int = 0

    def add(self, kind: str, count: int, place: str) -> None:
        """Count; the first place is kept."""
        if count:
            before, first = self.oddities.get(kind, (0, place))
            self.oddities[kind] = (before + count, first)

    def notes(self) -> tuple[str, ...]:
        """One sentence for each kind."""
        return tuple(
            f"{_TOLD[kind].format(count)} (first: {place})"
            for kind, (count, place) in self.oddities.items()
        )


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed content of a file."""
    try:
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name the files")
        with path.open("rb") as raw:
            magic = raw.read(8)
        if other := _OTHER_PACKINGS.match(magic):
            raise InputError(
                f"{path}: is compressed with {other.lastgroup}, which is not read; unpack it, or "
                "compress it with gzip or zstd"
            )
        if magic[:2] == b"\x1f\x8b":
            with gzip.open(path, "rb") as file:
                yield cast(IO[bytes], file)
        elif magic[:4] == b"\x28\xb5\x2f\xfd":
            with path.open("rb") as raw:
                yield _unpacked_zst(raw, path)
        else:
            with path.open("rb") as file:
                yield file
    except (EOFError, zlib.error, tarfile.TarError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: the compressed file is damaged or cut off ({error}); fetch it again"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _unpacked_zst(raw: IO[bytes], path: Path) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        raise InputError(
            f"{path}: is compressed with zstd, which needs the extra `traces`: "
            "pip install 'iojoule[traces]'"
        ) from None

    class Reader:
        """One frame after the other, so that an end within a frame is known to be none."""

        def __init__(self) -> None:
            self._frame: Any = None
            self._rest = self._ready = b""

        def read(self, size: int) -> bytes:
            while not self._ready and size:
                packed = self._rest or raw.read(_PACKED_BYTES)
                if not packed:
                    if self._frame is not None:
                        raise EOFError("the end of a frame is missing")
                    return b""
                self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    self._ready = self._frame.decompress(packed)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from None
                self._rest = b""
                if self._frame.eof:
                    self._rest, self._frame = self._frame.unused_data, None
            result, self._ready = self._ready[:size], self._ready[size:]
            return result

    return cast(IO[bytes], Reader())


class _Ahead:
    """A file of which the beginning was read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = head, file

    def read(self, size: int) -> bytes:
        result, self._head = self._head[:size], self._head[size:]
        return result + self._file.read(size - len(result)) if len(result) < size else result


def blocks(path: Path, block_bytes: int = BLOCK_BYTES, line_end: bytes = b"") -> Iterator[bytes]:
    """The content, decompressed, the files of a tar archive one after the other.

    Args:
        path: Where.
        block_bytes: At a time.
        line_end: Stands between two files of an archive where the first does not end with it.

    Raises:
        InputError: It cannot be read, or the compressed file is damaged.
    """
    with _readable(path) as file:
        head = _filled(file, 512)
        whole = cast(IO[bytes], _Ahead(head, file))
        if head[257:262] != b"ustar":
            while block := whole.read(block_bytes):
                yield block
            return
        between = b""
        with tarfile.open(fileobj=whole, mode="r|") as archive:
            for member in archive:
                if (content := archive.extractfile(member)) is not None:
                    while block := content.read(block_bytes):
                        yield between + block
                        between = b"" if block.endswith(line_end) else line_end


def _filled(file: IO[bytes], size: int) -> bytes:
    result = b""
    while len(result) < size and (more := file.read(size - len(result))):
        result += more
    return result


def head_of(path: Path) -> bytes:
    """The first `HEAD_BYTES` of the content."""
    result = b""
    for block in blocks(path, HEAD_BYTES):
        result += block
        if len(result) >= HEAD_BYTES:
            break
    return result[:HEAD_BYTES]


class TraceFile:
    """One file, read once.

    Args:
        path: Where.
        form: Its format.
        number: Of the file among those that are read together.
        report: Takes what is odd.
        unit: Of its times, where the user says so.
        block_bytes: How much is read at a time; the rows do not depend on it.
    """

    def __init__(
        self,
        path: Path,
        form: TraceFormat,
        number: int,
        report: Report,
        *,
        unit: str | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.path, self._form, self._number, self._report = path, form, number, report
        self._unit, self._block_bytes = unit, block_bytes
        self._latest = -(1 << 63)
        self.volumes: list[str] = []

    def place(self, line: int) -> str:
        """Where a row stands."""
        return f"{self.path}: {'record' if self._form.record_bytes else 'line'} {line}"

    def rows(self) -> Iterator[Rows]:
        """The rows, in the order of the file.

        Raises:
            InputError: A row is none of the format; names it.
        """
        head = head_of(self.path)
        if not head:
            raise InputError(f"{self.path}: is empty")
        parser = self._form.open(head, str(self.path), self._unit)
        step = getattr(parser, "record_bytes", 0)
        rest = b""
        for block in blocks(self.path, self._block_bytes, b"" if step else b"\n"):
            text = rest + block if rest else block
            end = len(text) // step * step if step else text.rfind(b"\n") + 1
            rest = text[end:]
            if not step and len(rest) > LINE_BYTES:
                raise InputError(
                    f"{self.place(parser.lines + 1)}: is longer than 1 MiB: this is no text of "
                    f"the format {self._form.name}"
                )
            if end == 0:
                continue
            rows = self._parsed(parser, text[:end])
            if parser.defect:
                raise self._refusal(parser)
            yield rows
            if parser.ended:
                rest = b""
                break
        if rest:
            yield from self._last(parser, rest, step)
        for kind, (count, line) in parser.odd.items():
            self._report.add(kind, count, self.place(line))

    def _parsed(self, parser: Parser, text: bytes) -> Rows:
        arrival, offset, size, is_write, volume, line = parser.feed(text)
        known = parser.volumes
        if len(known) > len(self.volumes):
            self.volumes += [name.decode(errors="replace") for name in known[len(self.volumes) :]]
        file = np.full(len(arrival), self._number, dtype=np.uint32)
        rows = Rows(arrival, offset, size, is_write.astype(bool), volume, line, file)
        if rows.total:
            self._count_back(rows)
        self._report.rows += rows.total
        return rows

    def _count_back(self, rows: Rows) -> None:
        latest = np.maximum.accumulate(np.concatenate([[self._latest], rows.arrival_ns]))
        back = np.flatnonzero(rows.arrival_ns < latest[:-1])
        self._latest = int(latest[-1])
        if len(back):
            self._report.add("back", len(back), self.place(int(rows.line[back[0]])))

    def _last(self, parser: Parser, rest: bytes, step: int) -> Iterator[Rows]:
        """A last line without an end: whole, or cut off; its time may be what is cut."""
        if not step:
            latest = self._latest
            before = dict(self._report.oddities)
            rows = self._parsed(parser, rest)
            if not parser.defect and not (rows.total and rows.arrival_ns[-1] < latest):
                yield rows
                return
            self._report.oddities = before
            self._report.rows -= rows.total
        self._report.add("cut", 1, self.place(parser.lines + (1 if step else 0)))

    def _refusal(self, parser: Parser) -> InputError:
        shown = parser.defect_text.decode(errors="replace")
        text = (
            f"{self.place(parser.lines)}: {shown[:80]!r} is no row of the format {self._form.name} "
            f"(such as {self._form.row.strip()!r}): {_WRONG[parser.defect]}"
        )
        if parser.defect == "time" and (units := self._dated_units(parser.defect_text)):
            text += f"; as {' or '.join(units)} it would be a date: --time-unit"
        others = [name for name in fitting(parser.defect_text) if name != self._form.name]
        if others:
            text += f"; the line fits {', '.join(others)}: is the file of several formats?"
        return InputError(text)

    def _dated_units(self, line: bytes) -> list[str]:
        """Units in which a line's time would be of the calendar."""
        result = []
        for unit in UNITS_PS if self._form.wall_clock else ():
            arrival_ns = self._form.open(line, str(self.path), unit).feed(line)[0]
            if len(arrival_ns) and _is_date(float(arrival_ns[0])):
                result.append(unit)
        return result

    def check_times(self, arrival_ns: NDArray[np.int64]) -> None:
        """Refuse times that no clock or drive has, unless the user states the unit."""
        if self._unit is None and (doubt := unlikely_times(arrival_ns, self._form)):
            raise InputError(
                f"{self.place(1)} and on: {doubt}; state the unit with --time-unit, or "
                f"--time-unit {self._form.unit} where the times are right"
            )


_WRONG = {
    "columns": "it has other columns",
    "time": "its time is no number, or is too large for the unit",
    "offset": "its address is no whole number below 2^62 bytes",
    "size": "its length is no whole number below 4 GiB",
    "operation": "its operation is unknown",
    "version": "its version differs from that of the first record",
}

_FASTEST, _SLOWEST = 2e7, 1e-3
"""Requests a second that no drive serves, and that no trace has."""
_USUAL = (0.1, 1e6)
_ENOUGH = 100
_YEARS = (1990, 2100)


def unlikely_times(arrival_ns: NDArray[np.int64], form: TraceFormat) -> str | None:
    """What speaks against the unit of time, with the units that would make sense; None: nothing."""
    unit_ns = UNITS_PS[form.unit] / 1000
    if form.wall_clock:
        first_ns = float(arrival_ns[0])
        if _is_date(first_ns):
            return None
        likely = [
            f"{name} ({_date(first_ns / unit_ns * ps / 1000)})"
            for name, ps in UNITS_PS.items()
            if _is_date(first_ns / unit_ns * ps / 1000)
        ]
        shown = " or ".join(likely) or "none"
        return (
            f"as {form.unit} since 1970 the times are not between {_YEARS[0]} and {_YEARS[1]}; "
            f"units that would make sense: {shown}"
        )
    span_ns = int(arrival_ns.max()) - int(arrival_ns.min())
    if len(arrival_ns) < _ENOUGH or span_ns <= 0:
        return None
    rate = (len(arrival_ns) - 1) / (span_ns / 1e9)
    if _SLOWEST <= rate <= _FASTEST:
        return None
    scaled = {name: rate * unit_ns * 1000 / ps for name, ps in UNITS_PS.items()}
    likely = [
        f"{name} ({each:.3g} requests/s)"
        for name, each in scaled.items()
        if _USUAL[0] <= each <= _USUAL[1]
    ]
    return (
        f"as {form.unit} the trace has {rate:.3g} requests/s; units that would make sense: "
        f"{' or '.join(likely) or 'none'}"
    )


def _is_date(ns: float) -> bool:
    first, last = (datetime.datetime(y, 1, 1, tzinfo=datetime.UTC).timestamp() for y in _YEARS)
    return first <= ns / 1e9 < last


def _date(ns: float) -> str:
    return f"{datetime.datetime.fromtimestamp(ns / 1e9, tz=datetime.UTC):%Y-%m-%d}"
