"""What a format of block traces is: where the values of a row stand, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.traces._native import Dialect, Layout, RowParser

Columns = tuple[NDArray[Any], ...]

UNITS_PS = {
    "ps": 1,
    "ns": 1000,
    "100ns": 100_000,
    "us": 1_000_000,
    "ms": 10**9,
    "s": 10**12,
}
"""Units of time in picoseconds."""


class Parser(Protocol):
    """Turns the content of one file into rows, a block at a time.

    `defect` is the field of the first row that is none of the format, or empty; `lines` counts
    lines or records so far; `odd` is a reason -> how many rows were left out for it, and the first.
    """

    @property
    def defect(self) -> str: ...  # noqa: D102
    @property
    def defect_text(self) -> bytes: ...  # noqa: D102
    @property
    def lines(self) -> int: ...  # noqa: D102
    @property
    def ended(self) -> bool: ...  # noqa: D102
    @property
    def volumes(self) -> list[bytes]: ...  # noqa: D102
    @property
    def odd(self) -> dict[str, tuple[int, int]]: ...  # noqa: D102

    def feed(self, text: bytes) -> Columns:
        """Arrival in ns, offset, size, whether it writes, volume number and line, shape (n,)."""
        ...


@dataclass(frozen=True)
class TraceFormat:
    """One format.

    Attributes:
        name: What --format takes.
        describes: One line.
        row: An example.
        unit: Of its times, one of `UNITS_PS`; a format with a fixed clock has it in its rows.
        layout: Fields of `Layout`, without the unit of time.
        wall_clock: Whether times are of the calendar (ns since 1970 once read).
        resolution_seconds: Step of the clock where it is coarse.
        guessable: Whether a file may be taken for it without being named: not where another format
            looks alike and means something else.
        shared_names: Whether a volume's name means the same volume in every file.
        record_bytes: Of a binary format; 0: text.
        parser: Makes the parser from the file's first bytes and the unit; None: from `layout`.
        notes: What the format cannot tell.
    """

    name: str
    describes: str
    row: str
    unit: str
    layout: Mapping[str, Any] = field(default_factory=dict)
    wall_clock: bool = False
    resolution_seconds: float = 0.0
    guessable: bool = True
    shared_names: bool = False
    record_bytes: int = 0
    parser: Callable[[bytes, str, str], Parser] | None = None
    notes: tuple[str, ...] = ()

    def open(self, head: bytes, where: str, unit: str | None = None) -> Parser:
        """A parser for a file that begins with `head`.

        Raises:
            InputError: The file's beginning is none of the format, or the unit is unknown.
        """
        if unit is not None and unit not in UNITS_PS:
            raise InputError(f"--time-unit {unit}: is none of {', '.join(UNITS_PS)}")
        if self.parser is not None:
            return self.parser(head, where, unit or self.unit)
        return row_parser(self.layout, unit or self.unit, fixed_origin=unit is None)


def row_parser(layout: Mapping[str, Any], unit: str, *, fixed_origin: bool = True) -> RowParser:
    """The native parser of a layout; a unit of the user's own counts from 1970."""
    described = Layout()
    for name, value in layout.items():
        setattr(described, name, value)
    described.time_unit_ps = UNITS_PS[unit]
    if not fixed_origin:
        described.time_origin = 0
    return RowParser(described)


def rows_before_defect(form: TraceFormat, head: bytes) -> tuple[int, bool]:
    """How many of the whole lines at the beginning of a file are rows of a format, and if all."""
    if form.record_bytes == 0 and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    try:
        parser = form.open(head, "")
    except InputError:
        return 0, False
    arrival_ns, *_ = parser.feed(head)
    rows = len(arrival_ns) + sum(left_out for left_out, _ in parser.odd.values())
    return rows, rows > 0 and not parser.defect


class Columnar:
    """A parser of fixed binary records: `columns` says what an array of them holds.

    Args:
        record: Type of one record.
        columns: From records to arrival in ns, offset, size, whether it writes, and which records
            are reads or writes.
        name: Of the one volume.
    """

    def __init__(
        self,
        record: np.dtype[Any],
        columns: Callable[[NDArray[Any]], Columns],
        name: str,
    ) -> None:
        self._record, self._columns = record, columns
        self.volumes = [name.encode()]
        self.defect, self.defect_text, self.lines, self.ended = "", b"", 0, False
        self.odd: dict[str, tuple[int, int]] = {}

    def feed(self, text: bytes) -> Columns:
        """Rows of whole records."""
        rows = np.frombuffer(text, dtype=self._record, count=len(text) // self._record.itemsize)
        *columns, known = self._columns(rows)
        lines = np.arange(self.lines + 1, self.lines + len(rows) + 1, dtype=np.uint64)
        self.lines += len(rows)
        empty = known & (columns[2] == 0)
        for reason, left_out in (("ignored", ~known), ("empty", empty)):
            if left_out.any():
                count, first = self.odd.get(reason, (0, int(lines[left_out][0])))
                self.odd[reason] = (count + int(left_out.sum()), first)
        keep_rows = known & ~empty
        volume = np.zeros(int(keep_rows.sum()), dtype=np.uint32)
        arrival_ns, offset, size, is_write = (column[keep_rows] for column in columns)
        return arrival_ns, offset, size, is_write.astype(np.uint8), volume, lines[keep_rows]


__all__ = [
    "UNITS_PS",
    "Columnar",
    "Columns",
    "Dialect",
    "Parser",
    "TraceFormat",
    "rows_before_defect",
]
