"""A trace of requests, whatever wrote it, and what it says of the workload."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import (
    GAP_SECONDS,
    IoWindow,
    LogHistogram,
    short_or_pooled,
)
from iojoule.recommender.request import lines_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STREAMS = 32
"""A request is sequential when one of so many before it ended where it begins."""


class Kind(IntEnum):
    """What a request asks for."""

    READ = 0
    WRITE = 1
    FLUSH = 2
    DISCARD = 3


@dataclass(frozen=True)
class Trace:
    """Requests in the order they were made; every array has shape (n,).

    Attributes:
        kind: One of `Kind`.
        offset_bytes: Where on the drive.
        size_bytes: How much.
        at_seconds: When it was made; None where the trace tells no times.
        forced: Whether a write has forced unit access; None where the trace does not tell.
        held: When requests were at the drive, shape (m, 2), from sending to completion; None where
            the trace does not tell. It may have other requests than the arrays above, because the
            host joins and splits.
        counts_flushes: Whether the trace has flushes where there were any.
    """

    kind: Ints
    offset_bytes: Ints
    size_bytes: Ints
    at_seconds: Floats | None
    forced: NDArray[np.bool_] | None = None
    held: Floats | None = None
    counts_flushes: bool = True


def window_of(trace: Trace, gap_floor_seconds: float = GAP_SECONDS) -> IoWindow:
    """What the trace says, as one stretch of time.

    Without completions a gap is a time without arrivals. A rate needs an end: the trace's seconds
    are those from the first to the last arrival (or completion), times n/(n-1), as if one more
    request were as far away as the mean.
    """
    read, write = trace.kind == Kind.READ, trace.kind == Kind.WRITE
    data = read | write
    span = None
    if data.any():
        ends = trace.offset_bytes + trace.size_bytes
        span = int(ends[data].max() - trace.offset_bytes[data].min())
    fields: dict[str, object] = {
        "reads": int(read.sum()),
        "writes": int(write.sum()),
        "read_bytes": int(trace.size_bytes[read].sum()),
        "write_bytes": int(trace.size_bytes[write].sum()),
        "flushes": int((trace.kind == Kind.FLUSH).sum()) if trace.counts_flushes else None,
        "discards": int((trace.kind == Kind.DISCARD).sum()),
        "forced_writes": None if trace.forced is None else int((trace.forced & write).sum()),
        "gap_floor_seconds": gap_floor_seconds,
        "read_sizes": _counted(trace.size_bytes[read]),
        "write_sizes": _counted(trace.size_bytes[write]),
        "sequential_share": sequential_share(trace.offset_bytes[data], trace.size_bytes[data]),
        "span_bytes": span,
    }
    if trace.at_seconds is not None:
        fields |= _times(trace, trace.at_seconds, data, gap_floor_seconds)
    return IoWindow.model_validate(fields)


def sequential_share(offset_bytes: Ints, size_bytes: Ints) -> float | None:
    """Share of requests that begin where one of the 32 before them ended; None below two."""
    count = len(offset_bytes)
    if count < 2:
        return None
    ends = offset_bytes + size_bytes
    follows = np.zeros(count, dtype=bool)
    for back in range(1, min(STREAMS, count - 1) + 1):
        follows[back:] |= offset_bytes[back:] == ends[:-back]
    return float(follows[1:].mean())


def _counted(sizes: Ints) -> dict[int, int]:
    found, counts = np.unique(sizes, return_counts=True)
    return {int(size): int(count) for size, count in zip(found, counts, strict=True)}


def _times(
    trace: Trace, at_seconds: Floats, data: NDArray[np.bool_], floor: float
) -> dict[str, object]:
    """Rate, gaps and bursts; requests in flight where the trace has completions."""
    arrivals = at_seconds[data]
    held = trace.held if trace.held is not None else np.column_stack([arrivals, arrivals])
    if len(held) < 2:
        return {}
    held = held[np.argsort(held[:, 0], kind="stable")]
    begin, end = float(held[0, 0]), float(held[:, 1].max())
    seconds = (end - begin) * len(held) / (len(held) - 1)
    if seconds <= 0:
        return {}
    busy_until = np.maximum.accumulate(held[:, 1])
    gaps = held[1:, 0] - busy_until[:-1]
    long = np.flatnonzero(gaps >= floor)
    told: dict[str, object] = {
        "seconds": seconds,
        "gaps": LogHistogram.of(gaps[long]),
        "bursts": LogHistogram.of(_bursts(arrivals, trace.size_bytes[data], held[long + 1, 0])),
        "resolution_seconds": 0.0,
    }
    if trace.held is not None:
        levels = _levels(held)
        told["in_flight"] = levels
        told["busy_seconds"] = sum(time for level, time in levels.items() if level > 0)
    return told


def _bursts(arrivals: Floats, sizes: Ints, begins: Floats) -> Floats:
    """Bytes that arrived from the end of one gap to the end of the next."""
    order = np.argsort(arrivals, kind="stable")
    before = np.concatenate([[0], np.cumsum(sizes[order])])
    return np.diff(before[np.searchsorted(arrivals[order], begins)]).astype(float)


def _levels(held: Floats) -> dict[int, float]:
    """Seconds with so many requests at the drive."""
    moments = np.concatenate([held[:, 0], held[:, 1]])
    change = np.concatenate([np.ones(len(held)), -np.ones(len(held))])
    # a request that ends when another begins has made room for it
    order = np.lexsort((change, moments))
    level = np.cumsum(change[order])[:-1].astype(int)
    lasted = np.diff(moments[order])
    return {int(each): float(lasted[level == each].sum()) for each in np.unique(level[lasted > 0])}


SECTOR_BYTES = 512
EVENT = re.compile(
    r"\s*(?P<device>\d+,\d+)\s+\d+\s+\d+\s+(?P<at>\d+\.\d+)\s+\d+\s+(?P<action>[A-Z]{1,2}|m)"
    r"(?:\s+(?P<does>[A-Z]+))?(?:\s+(?P<sector>\d+)\s\+\s(?P<sectors>\d+))?(?:\s|$)"
)
_END = re.compile(r"\s*(CPU\d+ \(|Total \(|Throughput \(|Events \()")
_REQUESTS = "QDC"
_LONGEST = 18
"""Digits of a number that still fits into 64 bits."""


@dataclass(frozen=True)
class _Event:
    at_seconds: float
    kind: Kind
    forced: bool
    sector: int
    sectors: int


def parse_blkparse(text: str, where: str) -> tuple[Trace, tuple[str, ...]]:
    """Read what blkparse printed in its default form.

    Returns:
        The trace of the drive with the most events, and what it could not tell.

    Raises:
        InputError: A line is none of blkparse's, or nothing was read or written.
    """
    found: dict[str, dict[str, list[_Event]]] = defaultdict(lambda: defaultdict(list))
    odd: Counter[str] = Counter()
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if _END.match(line):
            break
        said = EVENT.match(line)
        if said is None:
            raise InputError(
                f"{where}: line {number}: {line.strip()[:80]!r} is no line of blkparse in its "
                "default form; leave -f and -F out"
            )
        if said["action"] not in _REQUESTS:
            continue
        if max(len(said["sector"] or ""), len(said["at"])) > _LONGEST:
            raise InputError(f"{where}: line {number}: a number is too large")
        events = _events(said)
        found[said["device"]][said["action"]] += events
        if not events:
            odd[said["does"] or "nothing"] += 1
    if not any(events for actions in found.values() for events in actions.values()):
        raise InputError(f"{where}: holds no request (Q, D or C)")
    return _trace(found, odd, where)


def _events(said: re.Match[str]) -> list[_Event]:
    """What a line asks for: a flush, data, a flush and then data, or nothing of these.

    RWBS begins with F where the cache is flushed first, then says what is done; a later F is
    forced unit access.
    """
    does = said["does"] or ""
    letters = does.removeprefix("F")
    sector, sectors, at = int(said["sector"] or 0), int(said["sectors"] or 0), float(said["at"])
    found = [_Event(at, Kind.FLUSH, False, sector, 0)] if does.startswith("F") else []
    if letters[:1] in ("R", "W") and sectors > 0:
        kind = Kind.READ if letters[0] == "R" else Kind.WRITE
        found.append(_Event(at, kind, "F" in letters[1:], sector, sectors))
    elif letters[:1] == "D":
        found.append(_Event(at, Kind.DISCARD, False, sector, sectors))
    return found


def _trace(
    found: dict[str, dict[str, list[_Event]]], odd: Counter[str], where: str
) -> tuple[Trace, tuple[str, ...]]:
    device = max(found, key=lambda each: sum(map(len, found[each].values())))
    notes = []
    if len(found) > 1:
        others = ", ".join(sorted(found.keys() - {device}))
        notes.append(f"events of device {device}; those of {others} are left out")
    if odd:
        listed = ", ".join(f"{count} x {does}" for does, count in sorted(odd.items()))
        notes.append(f"events that move no data are left out: {listed}")
    events = found[device]
    asked = next((events[action] for action in _REQUESTS if events[action]), [])
    if not events["Q"]:
        notes.append("no queued requests (Q): those issued to the drive are taken for them")
    held = _held(events["D"], events["C"])
    if held is None:
        notes.append("requests issued (D) or completed (C) are missing: requests in flight unknown")
    asked = sorted(asked, key=lambda one: one.at_seconds)
    columns = (
        [one.kind for one in asked],
        [one.sector * SECTOR_BYTES for one in asked],
        [one.sectors * SECTOR_BYTES for one in asked],
    )
    kind, offset, size = np.array(columns, dtype=np.int64).reshape(3, -1)
    if not np.isin(kind, (Kind.READ, Kind.WRITE)).any():
        raise InputError(f"{where}: nothing was read or written on device {device}")
    at = np.array([one.at_seconds for one in asked])
    return Trace(kind, offset, size, at, np.array([o.forced for o in asked]), held), tuple(notes)


def _held(issued: list[_Event], completed: list[_Event]) -> NDArray[np.float64] | None:
    """From issue to completion of every request that has both; they meet by their first sector."""
    waiting: dict[tuple[Kind, int], list[float]] = defaultdict(list)
    spans = []
    moments = [(one.at_seconds, False, one) for one in issued]
    moments += [(one.at_seconds, True, one) for one in completed]
    for at, done, one in sorted(moments, key=lambda each: each[:2]):
        place = (one.kind, one.sector)
        if not done:
            waiting[place].append(at)
        elif waiting[place]:
            spans.append((waiting[place].pop(0), at))
    return np.array(spans) if spans else None


FIRST_LINE = re.compile(r"fio version (\d+) iolog\s*$")
_REQUESTS_fio_iolog = {
    "read": Kind.READ,
    "write": Kind.WRITE,
    "trim": Kind.DISCARD,
    "sync": Kind.FLUSH,
    "datasync": Kind.FLUSH,
}
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
    if len(words) != 4 or (action not in _REQUESTS_fio_iolog and action != "wait"):
        form = "TIME FILE ACTION OFFSET BYTES" if timed else "FILE ACTION OFFSET BYTES"
        raise InputError(
            f"{place}: {line.strip()[:80]!r} is not `{form}` with an action of "
            f"{', '.join(_REQUESTS_fio_iolog)}"
        )
    offset = _number(words[2], f"{place}: the offset")
    size = _number(words[3], f"{place}: the length")
    if action == "wait":
        return _WAIT, 0, 0, at
    if size == 0 and action in ("read", "write"):
        raise InputError(f"{place}: a {action} of 0 bytes")
    return _REQUESTS_fio_iolog[action], offset, size, at


def _number(word: str, what: str) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > 19 or int(word) >= _LIMIT:
        raise InputError(f"{what} {word[:40]!r} is not a whole number")
    return int(word)


COLUMNS = ("the arrival in ns", "the device", "the first sector", "the sectors", "the type")
_LIMITS = (1 << 62, 1 << 62, 1 << 48, 1 << 16, 1 << 62)


def parse_mqsim_trace(text: str, where: str) -> tuple[Trace, tuple[str, ...]]:
    """Read a trace.

    Returns:
        The trace, and what it could not tell.

    Raises:
        InputError: A line is none of a trace, or goes back in time; names it.
    """
    rows: list[tuple[int, ...]] = []
    for number, line in enumerate(lines_of(text), start=1):
        words = line.split()
        if not words:
            continue
        place = f"{where}: line {number}"
        if len(words) != len(COLUMNS):
            raise InputError(
                f"{place}: has {len(words)} columns, not 5 (arrival in ns, device, first sector, "
                "sectors, type)"
            )
        row = tuple(
            _number_mqsim_trace(word, limit, f"{place}: {what}")
            for word, limit, what in zip(words, _LIMITS, COLUMNS, strict=True)
        )
        if row[3] == 0:
            raise InputError(f"{place}: the request has 0 sectors")
        if rows and row[0] < rows[-1][0]:
            raise InputError(
                f"{place}: goes back in time from {rows[-1][0]} to {row[0]} ns; sort the file by "
                "its first column"
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{where}: holds no request")
    at, device, sector, sectors, kind = np.array(rows, dtype=np.int64).T
    trace = Trace(
        np.where(kind == 0, Kind.WRITE, Kind.READ),
        sector * SECTOR_BYTES,
        sectors * SECTOR_BYTES,
        at * 1e-9,
        counts_flushes=False,
    )
    notes = ["a trace of MQSim tells neither flushes nor completions"]
    return trace, (*notes, *short_or_pooled(None, len(np.unique(device))))


def _number_mqsim_trace(word: str, limit: int, what: str) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > 19 or int(word) > limit:
        raise InputError(f"{what} {word[:40]!r} is not a whole number up to {limit}")
    return int(word)
