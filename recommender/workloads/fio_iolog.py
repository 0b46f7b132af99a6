"""fio's iologs, version 2 (order, waits) and version 3 (microseconds).

Source: fio's HOWTO, "Trace file format v2" and "v3", and read_iolog() in its iolog.c.
"""

from __future__ import annotations

import re

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.recommender.workloads.trace import Kind, Trace

FIRST_LINE = re.compile(r"fio version (\d+) iolog\s*$")
_REQUESTS = {
    "read": Kind.READ, "write": Kind.WRITE, "trim": Kind.DISCARD,
    "sync": Kind.FLUSH, "datasync": Kind.FLUSH,
}  # fmt: skip
_FILES = ("add", "open", "close", "unlink")
_LIMIT = 1 << 62


def parse_fio_iolog(text: str, where: str) -> tuple[Trace, tuple[str, ...]]:
    """Read an iolog.

    Returns:
        The trace (its times are None for version 2), and what it could not tell.

    Raises:
        InputError: Another file or version, or a line that is none; names the line.
    """
    lines = text.splitlines()
    told = FIRST_LINE.match(lines[0]) if lines else None
    if told is None:
        raise InputError(f"{where}: line 1: is not `fio version 2 iolog` or version 3")
    if told[1] not in ("2", "3"):
        raise InputError(
            f"{where}: line 1: version {told[1]} is not read; write it with fio's write_iolog"
        )
    timed = told[1] == "3"
    rows: list[tuple[int, int, int, int]] = []
    waits = 0
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = _row(line, f"{where}: line {number}", timed=timed)
        if row is None:
            continue
        if row[0] == _WAIT:
            waits += 1
            continue
        if rows and row[3] < rows[-1][3]:
            raise InputError(
                f"{where}: line {number}: goes back in time from {rows[-1][3]} to {row[3]} us; "
                "sort the file, and give each clone's log by itself"
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{where}: holds no request")
    kind, offset, size, at = np.array(rows, dtype=np.int64).T
    notes = [] if timed else ["version 2 of the iolog tells no times: no demand, no gaps"]
    if waits:
        notes.append(f"{waits} waits of the iolog are left out")
    return Trace(kind, offset, size, at * 1e-6 if timed else None), tuple(notes)


_WAIT = -1


def _row(line: str, place: str, *, timed: bool) -> tuple[int, int, int, int] | None:
    """Kind, offset, bytes and microseconds of one line; None where it opens or closes a file."""
    words = line.split()
    at = 0
    if timed:
        at = _number(words[0], f"{place}: the time")
        words = words[1:]
    action = words[1] if len(words) > 1 else ""
    if len(words) == 2 and action in _FILES:
        return None
    if len(words) != 4 or (action not in _REQUESTS and action != "wait"):
        form = "TIME FILE ACTION OFFSET BYTES" if timed else "FILE ACTION OFFSET BYTES"
        raise InputError(
            f"{place}: {line.strip()[:80]!r} is not `{form}` with an action of "
            f"{', '.join(_REQUESTS)}"
        )
    offset = _number(words[2], f"{place}: the offset")
    size = _number(words[3], f"{place}: the length")
    if action == "wait":
        return _WAIT, 0, 0, at
    if size == 0 and action in ("read", "write"):
        raise InputError(f"{place}: a {action} of 0 bytes")
    return _REQUESTS[action], offset, size, at


def _number(word: str, what: str) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > 19 or int(word) >= _LIMIT:
        raise InputError(f"{what} {word[:40]!r} is not a whole number")
    return int(word)
