"""Reads pages of the kernel's trace ring buffer, by the layouts that the kernel states.

Source: Documentation/trace/events.rst (files `format` and `header_page`) and
include/linux/ring_buffer.h of Linux 6.1: an entry begins with a word of 5 bits type or length and
27 bits time since the one before.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import HostStateError

Ints = NDArray[np.int64]

_PADDING, _EXTEND, _STAMP = 29, 30, 31
_MISSED, _MISSED_STORED = 1 << 31, 1 << 30
_HIGH = 0x1F << 59
"""Bits of a time that an absolute stamp does not hold."""

_FIELD = re.compile(r"field:\s*(.+?)\s*(\w+)(\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);")


@dataclass(frozen=True)
class Field:
    """Where a value stands in an entry: offset and size in bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class EventFormat:
    """Number and fields of one event, as its file `format` states them."""

    number: int
    fields: dict[str, Field]

    @classmethod
    def parse(cls, text: str, place: str) -> EventFormat:
        """Read a `format` file.

        Raises:
            HostStateError: It is none; names the place.
        """
        number = re.search(r"^ID:\s*(\d+)$", text, re.MULTILINE)
        fields = fields_of(text)
        if number is None or not fields:
            raise HostStateError(f"{place}: states no layout of an event")
        return cls(int(number[1]), fields)


def fields_of(text: str) -> dict[str, Field]:
    """Fields of a `format` or `header_page` file."""
    return {
        name: Field(int(offset), int(size)) for _, name, _, offset, size in _FIELD.findall(text)
    }


@dataclass(frozen=True)
class PageLayout:
    """Layout of a page; `size_bytes` is what one read returns."""

    size_bytes: int
    commit: Field
    data_offset: int

    @classmethod
    def parse(cls, text: str, place: str) -> PageLayout:
        """Read `events/header_page`.

        Raises:
            HostStateError: It is none; names the place.
        """
        fields = fields_of(text)
        if not {"commit", "data"} <= set(fields):
            raise HostStateError(f"{place}: states no layout of a page")
        data = fields["data"]
        return cls(data.offset + data.size, fields["commit"], data.offset)


@dataclass(frozen=True)
class Entries:
    """Entries of one CPU in order; arrays have shape (n,).

    Attributes:
        buffer: All pages, one after the other.
        at_ns: Time by the trace's clock.
        offsets: Where each entry begins in `buffer`.
        lost: Entries that the kernel dropped; where it does not count them, one for each gap.
    """

    buffer: NDArray[np.uint8]
    at_ns: Ints
    offsets: Ints
    lost: int

    def values(self, field: Field, rows: Ints) -> Ints:
        """An unsigned number of each of some entries."""
        parts = self.buffer[self.offsets[rows, None] + field.offset + np.arange(field.size)]
        return np.ascontiguousarray(parts).view(f"<u{field.size}")[:, 0].astype(np.int64)

    def signed(self, field: Field, rows: Ints) -> Ints:
        """A signed number of each of some entries."""
        shift = 64 - 8 * field.size
        signed: Ints = (self.values(field, rows) << shift) >> shift
        return signed

    def texts(self, field: Field, rows: Ints) -> NDArray[np.bytes_]:
        """A text of fixed length of each of some entries, to its first null."""
        parts = self.buffer[self.offsets[rows, None] + field.offset + np.arange(field.size)]
        ended = np.cumsum(parts == 0, axis=1) > 0
        parts = np.where(ended, np.uint8(0), parts)
        return np.ascontiguousarray(parts).view(f"S{field.size}")[:, 0]


def read_entries(data: bytes, layout: PageLayout) -> Entries:
    """All entries of consecutive pages of one CPU; what follows the last whole page is ignored."""
    times: list[int] = []
    offsets: list[int] = []
    lost = 0
    whole = len(data) - len(data) % layout.size_bytes
    for page in range(0, whole, layout.size_bytes):
        entries, dropped = _page(data, page, layout)
        lost += dropped
        for at, offset in entries:
            times.append(at)
            offsets.append(offset)
    return Entries(
        np.frombuffer(data, dtype=np.uint8),
        np.array(times, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        lost,
    )


def _page(data: bytes, page: int, layout: PageLayout) -> tuple[Iterator[tuple[int, int]], int]:
    (began,) = struct.unpack_from("<Q", data, page)
    code = "<Q" if layout.commit.size == 8 else "<I"
    (word,) = struct.unpack_from(code, data, page + layout.commit.offset)
    room = layout.size_bytes - layout.data_offset
    used = min(word & (_MISSED_STORED - 1), room)
    start = page + layout.data_offset
    lost = 0
    if word & _MISSED:
        lost = 1
        if word & _MISSED_STORED and used + 8 <= room:
            (lost,) = struct.unpack_from("<Q", data, start + used)
    return _walk(data, start, start + used, began), lost


def _walk(data: bytes, place: int, end: int, now: int) -> Iterator[tuple[int, int]]:
    """Times and places of the entries between two places."""
    word = struct.Struct("<I").unpack_from
    while place + 4 <= end:
        (head,) = word(data, place)
        kind, delta = head & 31, head >> 5
        if 1 <= kind < _PADDING:
            now += delta
            yield now, place + 4
            place += 4 + 4 * kind
            continue
        if place + 8 > end:
            return
        (more,) = word(data, place + 4)
        if kind == 0:
            now += delta
            yield now, place + 8
            place += 4 + more
        elif kind == _PADDING:
            if delta == 0:
                return
            now += delta
            place += 4 + more
        elif kind == _EXTEND:
            now += (more << 27) + delta
            place += 8
        else:
            now = (now & _HIGH) | (more << 27) | delta
            place += 8
