"""The text that blkparse prints of a block trace (blktrace).

Source: blkparse(1), "DEFAULT OUTPUT", "ACTION IDENTIFIERS" and "RWBS DESCRIPTION": device, CPU,
sequence, seconds, process, action, what it does, `sector + sectors`. What the application asks for
are its queued requests (Q); how long the drive was at work follows from what was issued to it (D)
and completed (C), after joining and splitting. Sectors have 512 B.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.recommender.workloads.trace import Kind, Trace

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
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
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
