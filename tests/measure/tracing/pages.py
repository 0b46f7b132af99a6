"""Ring buffer pages made up for tests, in the layouts of Linux 6.1."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from iojoule.measure.tracing.requests import COMPLETE, EVENTS, ISSUE, Event
from iojoule.measure.tracing.ring_buffer import EventFormat, PageLayout

HEADER = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
LAYOUT = PageLayout.parse(HEADER, "test")
ROOM = 4080


def format_text(number: int, name: str) -> str:
    """A `format` file; issue has the size in bytes between length and letters, as in the kernel."""
    lines = [
        "field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
        "field:int common_pid;\toffset:4;\tsize:4;\tsigned:1;",
        "",
        "field:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;",
        "field:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;",
        "field:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;",
    ]
    if name == COMPLETE:
        lines += ["field:int error;\toffset:28;\tsize:4;\tsigned:1;"]
    if name == ISSUE:
        lines += ["field:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;"]
    at = 32 if name in (ISSUE, COMPLETE) else 28
    lines += [f"field:char rwbs[10];\toffset:{at};\tsize:10;\tsigned:0;"]
    return f"name: {name}\nID: {number}\nformat:\n\t" + "\n\t".join(lines) + '\n\nprint fmt: "%d"\n'


FORMATS = {
    name: EventFormat.parse(format_text(2000 + place, name), "test")
    for place, name in enumerate(EVENTS)
}


def payload(event: Event) -> bytes:
    layout = FORMATS[event.name]
    data = bytearray(44)
    struct.pack_into("<H", data, 0, layout.number)
    struct.pack_into("<q", data, layout.fields["sector"].offset, event.sector)
    struct.pack_into("<I", data, layout.fields["nr_sector"].offset, event.sectors)
    if "error" in layout.fields:
        struct.pack_into("<i", data, layout.fields["error"].offset, event.error)
    letters = event.rwbs.encode() + b"\0junk"
    start = layout.fields["rwbs"].offset
    data[start : start + min(len(letters), 10)] = letters[:10]
    return bytes(data)


def entry(event: Event, delta: int, *, long: bool = False) -> bytes:
    data = payload(event)
    if long:
        return struct.pack("<II", delta << 5, 4 + len(data)) + data
    return struct.pack("<I", delta << 5 | len(data) // 4) + data


def page(began: int, content: bytes, *, missed: int | None = None) -> bytes:
    """A page; `missed` = how many entries the kernel dropped before it, 0 = it does not say."""
    word = len(content)
    rest = b""
    if missed is not None:
        word |= 1 << 31
        if missed:
            word |= 1 << 30
            rest = struct.pack("<Q", missed)
    return struct.pack("<QQ", began, word) + (content + rest).ljust(ROOM, b"\xa5")


def pages(events: Sequence[Event], per_page: int = 20) -> bytes:
    """Events of one CPU, in order of time."""
    found = b""
    for first in range(0, len(events), per_page):
        some = events[first : first + per_page]
        began = now = some[0].at_ns
        content = b""
        for event in some:
            content += entry(event, event.at_ns - now)
            now = event.at_ns
        found += page(began, content)
    return found
