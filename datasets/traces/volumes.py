"""What each volume of a trace does: the document of `io_summary`, built while the trace streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.io_summary import (
    GAP_SECONDS,
    ONE_TIME,
    IoSource,
    IoSummary,
    IoWindow,
    LogHistogram,
    short_or_pooled,
)
from iojoule.datasets.traces.read import Batch, TraceReader, mixed

Ints = NDArray[np.int64]

STREAMS = 32
"""A request is sequential when one of so many before it ended where it begins."""

BLOCK_BYTES = 4096
_REGISTERS = 1 << 12
_SIZES_KEPT = 4096


@dataclass
class DistinctBlocks:
    """About how many different 4 KiB blocks were touched: HyperLogLog (Flajolet et al., 2007).

    4096 registers: a standard error of 1.6 %.
    """

    registers: NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(_REGISTERS, dtype=np.uint8)
    )

    def add(self, offset_bytes: Ints, size_bytes: Ints) -> None:
        """Take the blocks of requests."""
        first = offset_bytes // BLOCK_BYTES
        count = (offset_bytes + size_bytes - 1) // BLOCK_BYTES - first + 1
        # a few at a time: one request may have a million blocks
        bounds = np.searchsorted(np.cumsum(count), np.arange(0, count.sum(), 1 << 20))
        for begin, end in zip(bounds, [*bounds[1:], len(count)], strict=True):
            part = slice(begin, max(end, begin + 1))
            self._add(first[part], count[part])

    def _add(self, first: Ints, count: Ints) -> None:
        before = np.concatenate([[0], np.cumsum(count)[:-1]])
        blocks = np.arange(count.sum()) + np.repeat(first - before, count)
        hashed = mixed(blocks.astype(np.uint64))
        rest = (hashed >> np.uint64(12)) | np.uint64(1 << 52)
        # how many zeros end the rest: its lowest bit alone is a power of two
        lowest = rest & (~rest + np.uint64(1))
        rank = (np.log2(lowest.astype(np.float64)) + 1).astype(np.uint8)
        np.maximum.at(self.registers, hashed & np.uint64(_REGISTERS - 1), rank)

    @property
    def count(self) -> int:
        """The estimate."""
        empty = int((self.registers == 0).sum())
        alpha = 0.7213 / (1 + 1.079 / _REGISTERS)
        raw = alpha * _REGISTERS**2 / float((2.0 ** -self.registers.astype(float)).sum())
        if raw <= 2.5 * _REGISTERS and empty:
            raw = _REGISTERS * np.log(_REGISTERS / empty)
        return round(raw)


@dataclass
class Volume:
    """Counts of one volume so far."""

    counts: Counter[str] = field(default_factory=Counter)
    sizes: dict[bool, Counter[int]] = field(
        default_factory=lambda: {False: Counter(), True: Counter()}
    )
    first_ns: int = 0
    last_ns: int | None = None
    low: int = 1 << 62
    end_bytes: int = 0
    gaps: LogHistogram = field(default_factory=LogHistogram)
    bursts: LogHistogram = field(default_factory=LogHistogram)
    burst_bytes: int = 0
    sequential: int = 0
    ends: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    touched: DistinctBlocks = field(default_factory=DistinctBlocks)
    per_second: int = 0
    hours: Counter[int] = field(default_factory=Counter)
    _second: tuple[int, int] = (-1, 0)

    def add(self, batch: Batch, gap_seconds: float) -> None:
        """Take the next requests, of this volume alone."""
        for is_write, name in ((False, "read"), (True, "write")):
            size = batch.size_bytes[batch.is_write == is_write]
            self.counts[f"{name}s"] += len(size)
            self.counts[f"{name}_bytes"] += int(size.sum())
            self._add_sizes(is_write, size)
        self.low = min(self.low, int(batch.offset_bytes.min()))
        self.end_bytes = max(self.end_bytes, int((batch.offset_bytes + batch.size_bytes).max()))
        self.touched.add(batch.offset_bytes, batch.size_bytes)
        self._add_order(batch.offset_bytes, batch.offset_bytes + batch.size_bytes)
        self._add_times(batch.arrival_ns, batch.size_bytes, gap_seconds)

    def _add_sizes(self, is_write: bool, size: Ints) -> None:
        values, counts = np.unique(size, return_counts=True)
        counts_by_size = self.sizes[is_write]
        counts_by_size.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if len(counts_by_size) > _SIZES_KEPT:
            # rarely: more sizes than anyone reads; the most frequent ones tell the mix
            self.sizes[is_write] = Counter(dict(counts_by_size.most_common(_SIZES_KEPT // 2)))

    def _add_order(self, offset: Ints, end: Ints) -> None:
        before = len(self.ends)
        ends = np.concatenate([self.ends, end])
        follows = np.zeros(len(offset), dtype=bool)
        for back in range(1, STREAMS + 1):
            # request i stands at place before + i among the ends
            first = max(0, back - before)
            if first >= len(offset):
                break
            follows[first:] |= offset[first:] == ends[before + first - back : len(ends) - back]
        self.sequential += int(follows.sum())
        self.ends = ends[-STREAMS:]

    def _add_times(self, arrival: Ints, size: Ints, gap_seconds: float) -> None:
        if self.last_ns is None:
            self.first_ns = self.last_ns = int(arrival[0])
        gaps = np.diff(arrival, prepend=self.last_ns)
        long = np.flatnonzero(gaps >= gap_seconds * 1e9)
        if len(long):
            self.gaps += LogHistogram.of(gaps[long] / 1e9)
            bursts = np.add.reduceat(size, long)
            closed = np.concatenate([[self.burst_bytes + size[: long[0]].sum()], bursts[:-1]])
            # what came before the first gap is no whole burst
            whole = closed if self.counts["long"] else closed[1:]
            self.bursts += LogHistogram.of(whole)
            self.burst_bytes = int(bursts[-1])
            self.counts["long"] += len(long)
        else:
            self.burst_bytes += int(size.sum())
        self.last_ns = int(arrival[-1])
        self._add_peak(arrival // 1_000_000_000)
        hour, first = np.unique(arrival // 3_600_000_000_000, return_index=True)
        moved = np.add.reduceat(size, first)
        self.hours.update(dict(zip(hour.tolist(), moved.tolist(), strict=True)))

    def _add_peak(self, second: Ints) -> None:
        result, counts = np.unique(second, return_counts=True)
        if result[0] == self._second[0]:
            counts[0] += self._second[1]
        self.per_second = max(self.per_second, int(counts.max()))
        self._second = int(result[-1]), int(counts[-1])

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.counts["reads"] + self.counts["writes"]

    def window(
        self, gap_seconds: float, seconds: float | None, began: float | None, *, exact: bool
    ) -> IoWindow:
        """All of it as one stretch of time; without gaps where the clock is not exact.

        The stretch is that of the trace: before its first request and behind its last a volume
        is idle, which is one more gap where it is long enough.
        """
        fields: dict[str, Any] = {
            **{
                name: self.counts[name] for name in ("reads", "writes", "read_bytes", "write_bytes")
            },
            "read_sizes": dict(sorted(self.sizes[False].items())),
            "write_sizes": dict(sorted(self.sizes[True].items())),
            "gap_floor_seconds": gap_seconds,
            "span_bytes": self.end_bytes - self.low,
            "touched_bytes": min(self.touched.count * BLOCK_BYTES, self.end_bytes - self.low),
        }
        if self.requests > 1:
            fields["sequential_share"] = min(1.0, self.sequential / (self.requests - 1))
        if seconds is not None:
            fields |= {"seconds": seconds, "began_unix_seconds": began}
            if exact:
                outside = seconds - ((self.last_ns or 0) - self.first_ns) / 1e9
                edge = LogHistogram.of([outside] if outside >= gap_seconds else [])
                fields |= {"gaps": self.gaps + edge, "bursts": self.bursts}
                fields["resolution_seconds"] = 0.0
        return IoWindow.model_validate(fields)


@dataclass
class Survey:
    """Every volume of a trace, read to the end.

    Attributes:
        volumes: By name, in the order they were met.
        notes: What was odd in the files.
        seconds: How long the trace tells of them; None where all requests have one time.
        began_unix_seconds: When that began, where the trace tells.
        gap_seconds: Shortest gap that counts.
        exact: Whether the clock is finer than a gap.
        form: Name of the format.
    """

    volumes: dict[str, Volume]
    notes: tuple[str, ...]
    seconds: float | None
    began_unix_seconds: float | None
    gap_seconds: float
    exact: bool
    form: str

    def window(self, volume: Volume) -> IoWindow:
        """What a volume did in the time of the trace."""
        return volume.window(
            self.gap_seconds, self.seconds, self.began_unix_seconds, exact=self.exact
        )

    def summary(self, name: str, *, pooled_from: int = 0) -> IoSummary:
        """The document of one volume.

        Args:
            name: Of the volume.
            pooled_from: How many volumes were merged into it; 0: none.
        """
        window = self.window(self.volumes[name])
        notes = [*self.notes, *short_or_pooled(window.seconds, pooled_from)]
        if window.seconds is None:
            notes.append(ONE_TIME)
        elif not self.exact:
            notes.append("the clock is too coarse for gaps and bursts: arrivals are not described")
        notes.append("a trace of this format tells neither flushes nor completions")
        return IoSummary(
            source=IoSource.TRACE,
            name=f"{self.form}-{name}",
            windows=(window,),
            notes=tuple(notes),
        )


def survey(reader: TraceReader, gap_seconds: float = GAP_SECONDS, *, merge: bool = False) -> Survey:
    """Read a trace to the end.

    Args:
        reader: The trace.
        gap_seconds: Shortest time without a request that counts as a gap.
        merge: Whether all volumes are one; their address ranges are then those of the reader.

    Raises:
        InputError: As `TraceReader.batches`.
    """
    result: dict[int, Volume] = {}
    for batch in reader.batches():
        if merge or len(reader.volumes) == 1:
            result.setdefault(0, Volume()).add(batch, gap_seconds)
            continue
        order = np.argsort(batch.volume, kind="stable")
        each, begins = np.unique(batch.volume[order], return_index=True)
        for volume, which in zip(each.tolist(), np.split(order, begins[1:]), strict=True):
            result.setdefault(volume, Volume()).add(batch.pick(which), gap_seconds)
    names = ["merged"] if merge else [reader.volumes[number] for number in result]
    return Survey(
        dict(zip(names, result.values(), strict=True)),
        reader.notes(),
        reader.observed_seconds,
        reader.began_unix_seconds,
        gap_seconds,
        reader.form.resolution_seconds < gap_seconds / 2,
        reader.form.name,
    )
