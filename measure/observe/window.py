"""From readings of the counters to what was seen: mix, sizes, concurrency, gaps, bursts.

A stretch between two readings is idle when nothing was in flight at either end and nothing
completed in between; a gap begins and ends half an interval beyond the idle readings. The kernel
counts a request that only asks for a flush as a write of no bytes (block/blk-flush.c,
blk_account_io_done in block/blk-mq.c), so these are taken off the writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.io_summary import GAP_SECONDS, IoWindow, LogHistogram
from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.observe.samples import Samples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LATE = 5
"""A reading that takes so many times longer than the median one is late."""

UNSURE_SHARE = 0.1
"""A gap whose length is known to no better than this is left out of the histogram."""


@dataclass
class Watch:
    """Adds up blocks of readings of one drive.

    Args:
        began_unix_seconds: When the first reading was taken.
        gap_floor_seconds: Shortest gap that parts two bursts.
    """

    began_unix_seconds: float
    gap_floor_seconds: float = GAP_SECONDS
    _first: tuple[float, Ints] | None = None
    _last: tuple[float, Ints] | None = None
    _levels: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    _read_sizes: Counter[int] = field(default_factory=Counter)
    _write_sizes: Counter[int] = field(default_factory=Counter)
    _busy_seconds: float = 0.0
    _longest_seconds: float = 0.0
    _bare: tuple[int, int] = (0, 0)
    _gap_seconds: list[float] = field(default_factory=list)
    _unsure_gaps: int = 0
    _bytes_before: list[float] = field(default_factory=list)
    _open: Floats = field(default_factory=lambda: np.empty((0, 5)))
    _counts: tuple[bool, bool] = (True, True)

    def add(self, samples: Samples) -> None:
        """Take in one block."""
        if len(samples) < 2:
            return
        if self._first is None:
            self._first = (float(samples.at_seconds[0]), samples.values[0])
        self._last = (float(samples.at_seconds[-1]), samples.values[-1])
        self._counts = (samples.counts_flushes, samples.counts_discards)
        steps = np.diff(samples.at_seconds)
        come = np.diff(samples.values, axis=0)
        self._longest_seconds = max(self._longest_seconds, float(np.percentile(steps, 99)))
        self._add_sizes(come)
        self._add_bare_flushes(come)
        self._add_times(samples, steps, come)

    def _add_sizes(self, come: Ints) -> None:
        """A step with one request of a direction shows that request's size."""
        for number, sectors, sizes in (
            (Samples.READS, Samples.READ_SECTORS, self._read_sizes),
            (Samples.WRITES, Samples.WRITE_SECTORS, self._write_sizes),
        ):
            alone = (come[:, number] == 1) & (come[:, sectors] > 0)
            found = zip(*np.unique(come[alone, sectors], return_counts=True), strict=True)
            sizes.update({int(size) * SECTOR_BYTES: int(count) for size, count in found})

    def _add_bare_flushes(self, come: Ints) -> None:
        """Steps that flushed and wrote no data tell how many writes a flush is counted as."""
        told = (come[:, Samples.FLUSHES] > 0) & (come[:, Samples.WRITE_SECTORS] == 0)
        flushes, bare = self._bare
        self._bare = (
            flushes + int(come[told, Samples.FLUSHES].sum()),
            bare + int(come[told, Samples.WRITES].sum()),
        )

    def _add_times(self, samples: Samples, steps: Floats, come: Ints) -> None:
        level = samples.values[:, Samples.IN_FLIGHT]
        changed = (come[:, list(_COMPLETIONS)] != 0).any(axis=1)
        idle = (level[:-1] <= 0) & (level[1:] <= 0) & ~changed
        idle &= ~_flushing(samples, come)
        self._busy_seconds += float(steps[~idle].sum())
        held = np.where(idle, 0, np.maximum(level[1:], 1))
        for each in np.unique(held):
            self._levels[int(each)] += float(steps[held == each].sum())
        self._add_gaps(_joined(np.concatenate([self._open, _stretches(samples, idle)])), samples)

    def _add_gaps(self, stretches: Floats, samples: Samples) -> None:
        """Keep what is a gap; a stretch that reaches the end of the block may go on.

        Where a reading came so late that a gap is known to no better than 10 %, its length is left
        out; lateness has nothing to do with it, so the others stand for it.
        """
        assert self._first is not None
        goes_on = stretches[:, 2] == samples.at_seconds[-1]
        self._open = stretches[goes_on]
        before, after = np.diff(stretches[:, :2]).ravel(), np.diff(stretches[:, 2:4]).ravel()
        gap = stretches[:, 2] - stretches[:, 1] + (before + after) / 2
        whole = ~goes_on & (stretches[:, 1] > self._first[0])
        kept = whole & (gap >= self.gap_floor_seconds)
        usual = LATE * float(np.median(np.diff(samples.at_seconds)))
        late = (np.maximum(before, after) > usual) & (before + after > 2 * UNSURE_SHARE * gap)
        self._gap_seconds.extend(gap[kept & ~late])
        self._unsure_gaps += int((kept & late).sum())
        self._bytes_before.extend(stretches[kept, 4])

    def window(self) -> IoWindow:
        """What was seen so far."""
        if self._first is None or self._last is None:
            return IoWindow(began_unix_seconds=self.began_unix_seconds)
        come = self._last[1] - self._first[1]
        counts_flushes, counts_discards = self._counts
        flushes = int(come[Samples.FLUSHES]) if counts_flushes else None
        return IoWindow(
            began_unix_seconds=self.began_unix_seconds,
            seconds=self._last[0] - self._first[0],
            reads=int(come[Samples.READS]),
            writes=int(come[Samples.WRITES]) - self.bare_flushes(flushes or 0),
            read_bytes=int(come[Samples.READ_SECTORS]) * SECTOR_BYTES,
            write_bytes=int(come[Samples.WRITE_SECTORS]) * SECTOR_BYTES,
            flushes=flushes,
            discards=int(come[Samples.DISCARDS]) if counts_discards else None,
            merged=int(come[Samples.READS_MERGED] + come[Samples.WRITES_MERGED]),
            busy_seconds=self._busy_seconds,
            in_flight=dict(sorted(self._levels.items())),
            gap_floor_seconds=self.gap_floor_seconds,
            gaps=LogHistogram.of(self._gap_seconds),
            unsure_gaps=self._unsure_gaps,
            bursts=LogHistogram.of(np.diff(self._bytes_before)),
            read_sizes=dict(sorted(self._read_sizes.items())),
            write_sizes=dict(sorted(self._write_sizes.items())),
            resolution_seconds=self._longest_seconds,
        )

    def bare_flushes(self, flushes: int) -> int:
        """How many of the writes only asked for a flush, as the telling steps have it."""
        if self._first is None or self._last is None or not flushes:
            return 0
        come = self._last[1] - self._first[1]
        told, bare = self._bare
        each = bare / told if told else 1.0
        data = 1 if come[Samples.WRITE_SECTORS] > 0 else 0
        return int(min(round(each * flushes), max(int(come[Samples.WRITES]) - data, 0)))


_COMPLETIONS = (Samples.READS, Samples.WRITES, Samples.DISCARDS, Samples.FLUSHES)


def _flushing(samples: Samples, come: Ints) -> NDArray[np.bool_]:
    """Steps in which a flush was under way; not every kernel has it among those in flight."""
    busy = np.zeros(len(come), dtype=bool)
    ends = samples.at_seconds[1:]
    for step in np.flatnonzero(come[:, Samples.FLUSHES]):
        seconds = come[step, Samples.FLUSH_MS] * 1e-3 / come[step, Samples.FLUSHES]
        busy[np.searchsorted(ends, ends[step] - seconds) : step + 1] = True
    return busy


def _stretches(samples: Samples, idle: NDArray[np.bool_]) -> Floats:
    """Every run of idle steps, shape (n, 5).

    The last reading before it, its first one, its last one, the next one after it (where the block
    has them), and the bytes that had come until then.
    """
    edges = np.diff(np.concatenate([[False], idle, [False]]).astype(int))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    at = samples.at_seconds
    sectors = samples.values[:, [Samples.READ_SECTORS, Samples.WRITE_SECTORS]].sum(axis=1)
    return np.column_stack(
        [
            at[np.maximum(first - 1, 0)], at[first],
            at[last], at[np.minimum(last + 1, len(at) - 1)],
            sectors[first] * SECTOR_BYTES,
        ]
    )  # fmt: skip


def _joined(stretches: Floats) -> Floats:
    """Two stretches that meet at the edge of two blocks are one."""
    if len(stretches) > 1 and stretches[0, 2] == stretches[1, 1]:
        stretches[1, [0, 1, 4]] = stretches[0, [0, 1, 4]]
        return stretches[1:]
    return stretches
