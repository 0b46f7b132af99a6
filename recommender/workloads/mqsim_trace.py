"""MQSim's traces: arrival in ns, device, first sector, sectors, type (0 write, else read).

Sectors have 512 B. Source: MQSim's README, and what `iojoule simulate` takes (docs/simulator.md).
"""

from __future__ import annotations

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.recommender.workloads.trace import Kind, Trace

SECTOR_BYTES = 512
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
    for number, line in enumerate(text.splitlines(), start=1):
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
            _number(word, limit, f"{place}: {what}")
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
    at, _, sector, sectors, kind = np.array(rows, dtype=np.int64).T
    trace = Trace(
        np.where(kind == 0, Kind.WRITE, Kind.READ),
        sector * SECTOR_BYTES,
        sectors * SECTOR_BYTES,
        at * 1e-9,
        counts_flushes=False,
    )
    return trace, ("a trace of MQSim tells neither flushes nor completions",)


def _number(word: str, limit: int, what: str) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > 19 or int(word) > limit:
        raise InputError(f"{what} {word[:40]!r} is not a whole number up to {limit}")
    return int(word)
