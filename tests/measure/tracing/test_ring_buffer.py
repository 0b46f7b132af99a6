"""Pages of the trace ring buffer: times, lengths, losses, damage."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.errors import HostStateError
from iojoule.measure.tracing.requests import COMPLETE, ISSUE, QUEUE, Event
from iojoule.measure.tracing.ring_buffer import EventFormat, PageLayout, read_entries
from tests.measure.tracing.pages import FORMATS, HEADER, LAYOUT, entry, format_text, page, pages

READ = Event(QUEUE, 1000, 8, 8, "RA")


def test_layouts_are_those_that_the_kernel_states() -> None:
    assert PageLayout.parse(HEADER, "x").size_bytes == 4096
    fields = EventFormat.parse(format_text(7, ISSUE), "x").fields
    assert (fields["rwbs"].offset, fields["rwbs"].size) == (32, 10)
    assert fields["sector"].size == 8
    for text in ("", "ID: 7\n", "field:int x; offset:0; size:4;"):
        with pytest.raises(HostStateError):
            EventFormat.parse(text, "x")
    with pytest.raises(HostStateError):
        PageLayout.parse("", "x")


def test_values_and_texts_are_read_where_the_format_says() -> None:
    event = Event(COMPLETE, 5, -1, 16, "FWS", -5)
    found = read_entries(pages([event]), LAYOUT)
    fields, rows = FORMATS[COMPLETE].fields, np.arange(1)
    assert found.at_ns.tolist() == [5]
    assert found.values(fields["common_type"], rows).tolist() == [FORMATS[COMPLETE].number]
    assert found.signed(fields["sector"], rows).tolist() == [-1]
    assert found.values(fields["nr_sector"], rows).tolist() == [16]
    assert found.signed(fields["error"], rows).tolist() == [-5]
    assert found.texts(fields["rwbs"], rows).tolist() == [b"FWS"]


def test_times_add_up_over_extensions_stamps_and_padding() -> None:
    stamp = (3 << 27) + 9
    content = (
        entry(READ, 4)
        + struct.pack("<II", 2 << 5 | 30, 1)  # 2^27 + 2 later
        + entry(READ, 1, long=True)
        + struct.pack("<II", 5 << 5 | 29, 8)  # 12 bytes that were thrown away
        + b"5678"
        + entry(READ, 1)
        + struct.pack("<II", (stamp & (1 << 27) - 1) << 5 | 31, stamp >> 27)
        + entry(READ, 7)
        + struct.pack("<I", 29)  # the rest is empty
        + entry(READ, 1)
    )
    found = read_entries(page(100, content), LAYOUT)
    later = 100 + 4 + (1 << 27) + 2 + 1
    assert found.at_ns.tolist() == [104, later, later + 5 + 1, stamp + 7]
    sectors = found.values(FORMATS[QUEUE].fields["sector"], np.arange(4))
    assert sectors.tolist() == [8] * 4


@pytest.mark.parametrize(("missed", "lost"), [(None, 0), (0, 1), (7, 7)])
def test_losses_are_counted(missed: int | None, lost: int) -> None:
    found = read_entries(page(1, entry(READ, 0), missed=missed), LAYOUT)
    assert (len(found.at_ns), found.lost) == (1, lost)


def test_part_of_a_page_at_the_end_is_ignored() -> None:
    data = pages([READ] * 3)
    assert len(read_entries(data + data[:100], LAYOUT).at_ns) == 3
    assert len(read_entries(b"", LAYOUT).at_ns) == 0


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_a_damaged_page_ends_and_stays_within_itself(content: bytes, word: int) -> None:
    data = struct.pack("<QQ", 1, word) + content.ljust(4080, b"\1")
    found = read_entries(data, LAYOUT)
    assert (found.offsets <= len(data)).all()
