"""A trace of requests, whatever wrote it, and what it says of the workload."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.io_summary import GAP_SECONDS, IoWindow, LogHistogram

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
