"""Observes the I/O of a live drive: counters of the block layer every millisecond, or blktrace.

One file holds all counters of a drive at one time; reading it costs some 20 us of a core. A step
between two readings is idle when nothing was in flight at either end and nothing completed; a gap
extends half an interval beyond the idle readings. A request that only flushes counts as a write of
no bytes (block/blk-flush.c, blk_account_io_done in block/blk-mq.c) and is taken off the writes.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import GAP_SECONDS, IoSource, IoSummary, IoWindow, LogHistogram
from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.drive.block_device import SECTOR_BYTES, Stat
from iojoule.measure.drive.block_io import Disk, find_disk, numbers
from iojoule.measure.errors import DriveError, HostStateError
from iojoule.measure.host.host_files import file_text, value_in_force

INTERVAL_SECONDS = 0.001
_BLOCK = 4096
_LONGEST_LINE = 1024


@dataclass(frozen=True)
class Samples:
    """Consecutive readings; every array has shape (n,), or (n, 17) for `values`.

    Attributes:
        at_seconds: CLOCK_MONOTONIC.
        values: Counters by `Stat`; 0 where the kernel has none.
        counts_flushes: Linux 5.5 and later.
        counts_discards: Linux 4.18 and later.
    """

    at_seconds: NDArray[np.float64]
    values: NDArray[np.int64]
    counts_flushes: bool = True
    counts_discards: bool = True

    def __len__(self) -> int:
        return len(self.at_seconds)


def sample(
    disk: Disk, seconds: float, interval_seconds: float = INTERVAL_SECONDS
) -> Iterator[Samples]:
    """Read the counters for some time; each block begins with the last reading of the one before.

    Raises DriveError if the drive has no statistics, or has vanished.
    """
    try:
        descriptor = os.open(disk.folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DriveError(f"{disk.path}: has no statistics ({error.strerror})") from None
    try:
        with _promptly():
            yield from _blocks(disk, descriptor, seconds, interval_seconds)
    finally:
        os.close(descriptor)


@contextmanager
def _promptly() -> Iterator[None]:
    """Ahead of ordinary work where that is permitted (sched(7)): late readings blur gaps."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(
            0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        )
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def _blocks(
    disk: Disk, descriptor: int, seconds: float, interval_seconds: float
) -> Iterator[Samples]:
    began = due = time.monotonic()
    end = began + seconds
    readings = [_read(disk, descriptor)]
    done = False
    while not done:
        due += interval_seconds
        wait = due - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        else:
            due -= wait  # late: what was missed cannot be read any more
        readings.append(_read(disk, descriptor))
        done = readings[-1][0] >= end
        if done or len(readings) == _BLOCK:
            yield _packed(readings)
            readings = readings[-1:]


def _read(disk: Disk, descriptor: int) -> tuple[float, tuple[int, ...]]:
    try:
        line = os.pread(descriptor, _LONGEST_LINE, 0)
    except OSError:
        line = b""
    return time.monotonic(), numbers(line, str(disk.path))


def _packed(readings: list[tuple[float, tuple[int, ...]]]) -> Samples:
    width = len(readings[0][1])
    values = np.zeros((len(readings), len(Stat)), dtype=np.int64)
    values[:, : min(width, len(Stat))] = [reading[: len(Stat)] for _, reading in readings]
    at = np.array([seconds for seconds, _ in readings])
    return Samples(
        at, values, counts_flushes=width > Stat.FLUSHES, counts_discards=width > Stat.DISCARDS
    )


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LATE = 5
"""A reading that takes so many times longer than the median one is late."""

UNSURE_SHARE = 0.1
"""A gap whose length is known to no better than this is left out of the histogram."""


@dataclass
class Watch:
    """Adds up blocks of readings of one drive; `gap_floor_seconds` parts two bursts."""

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
            (Stat.READS, Stat.READ_SECTORS, self._read_sizes),
            (Stat.WRITES, Stat.WRITE_SECTORS, self._write_sizes),
        ):
            alone = (come[:, number] == 1) & (come[:, sectors] > 0)
            counts = zip(*np.unique(come[alone, sectors], return_counts=True), strict=True)
            sizes.update({int(size) * SECTOR_BYTES: int(count) for size, count in counts})

    def _add_bare_flushes(self, come: Ints) -> None:
        """Steps that flushed and wrote no data tell how many writes a flush is counted as."""
        flushed = (come[:, Stat.FLUSHES] > 0) & (come[:, Stat.WRITE_SECTORS] == 0)
        flushes, bare = self._bare
        self._bare = (
            flushes + int(come[flushed, Stat.FLUSHES].sum()),
            bare + int(come[flushed, Stat.WRITES].sum()),
        )

    def _add_times(self, samples: Samples, steps: Floats, come: Ints) -> None:
        level = samples.values[:, Stat.IN_FLIGHT]
        changed = (come[:, list(_COMPLETIONS)] != 0).any(axis=1)
        idle = (level[:-1] <= 0) & (level[1:] <= 0) & ~changed
        idle &= ~_flushing(samples, come)
        self._busy_seconds += float(steps[~idle].sum())
        held = np.where(idle, 0, np.maximum(level[1:], 1))
        for each in np.unique(held):
            self._levels[int(each)] += float(steps[held == each].sum())
        self._add_gaps(_joined(np.concatenate([self._open, _stretches(samples, idle)])), samples)

    def _add_gaps(self, stretches: Floats, samples: Samples) -> None:
        """Store gaps; a stretch that reaches the end of the block may go on.

        Where a reading came so late that a gap is known to no better than 10 %, its length is left
        out; lateness is independent of it, so the others represent it.
        """
        assert self._first is not None
        goes_on = stretches[:, 2] == samples.at_seconds[-1]
        self._open = stretches[goes_on]
        before, after = np.diff(stretches[:, :2]).ravel(), np.diff(stretches[:, 2:4]).ravel()
        gap = stretches[:, 2] - stretches[:, 1] + (before + after) / 2
        whole = ~goes_on & (stretches[:, 1] > self._first[0])
        counted = whole & (gap >= self.gap_floor_seconds)
        usual = LATE * float(np.median(np.diff(samples.at_seconds)))
        late = (np.maximum(before, after) > usual) & (before + after > 2 * UNSURE_SHARE * gap)
        self._gap_seconds.extend(gap[counted & ~late])
        self._unsure_gaps += int((counted & late).sum())
        self._bytes_before.extend(stretches[counted, 4])

    def window(self) -> IoWindow:
        """What was seen so far."""
        if self._first is None or self._last is None:
            return IoWindow(began_unix_seconds=self.began_unix_seconds)
        come = self._last[1] - self._first[1]
        counts_flushes, counts_discards = self._counts
        flushes = int(come[Stat.FLUSHES]) if counts_flushes else None
        return IoWindow(
            began_unix_seconds=self.began_unix_seconds,
            seconds=self._last[0] - self._first[0],
            reads=int(come[Stat.READS]),
            writes=int(come[Stat.WRITES]) - self.bare_flushes(flushes or 0),
            read_bytes=int(come[Stat.READ_SECTORS]) * SECTOR_BYTES,
            write_bytes=int(come[Stat.WRITE_SECTORS]) * SECTOR_BYTES,
            flushes=flushes,
            discards=int(come[Stat.DISCARDS]) if counts_discards else None,
            merged=int(come[Stat.READS_MERGED] + come[Stat.WRITES_MERGED]),
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
        flushed, bare = self._bare
        each = bare / flushed if flushed else 1.0
        data = 1 if come[Stat.WRITE_SECTORS] > 0 else 0
        return int(min(round(each * flushes), max(int(come[Stat.WRITES]) - data, 0)))


_COMPLETIONS = (Stat.READS, Stat.WRITES, Stat.DISCARDS, Stat.FLUSHES)


def _flushing(samples: Samples, come: Ints) -> NDArray[np.bool_]:
    """Steps in which a flush was under way; not every kernel has it among those in flight."""
    busy = np.zeros(len(come), dtype=bool)
    ends = samples.at_seconds[1:]
    for step in np.flatnonzero(come[:, Stat.FLUSHES]):
        seconds = come[step, Stat.FLUSH_MS] * 1e-3 / come[step, Stat.FLUSHES]
        busy[np.searchsorted(ends, ends[step] - seconds) : step + 1] = True
    return busy


def _stretches(samples: Samples, idle: NDArray[np.bool_]) -> Floats:
    """Every run of idle steps, shape (n, 5).

    The last reading before it, its first, its last, the next one after it (where the block has
    them), and the bytes moved until then.
    """
    edges = np.diff(np.concatenate([[False], idle, [False]]).astype(int))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    at = samples.at_seconds
    sectors = samples.values[:, [Stat.READ_SECTORS, Stat.WRITE_SECTORS]].sum(axis=1)
    return np.column_stack(
        [
            at[np.maximum(first - 1, 0)],
            at[first],
            at[last],
            at[np.minimum(last + 1, len(at) - 1)],
            sectors[first] * SECTOR_BYTES,
        ]
    )


def _joined(stretches: Floats) -> Floats:
    """Two stretches that meet at the edge of two blocks are one."""
    if len(stretches) > 1 and stretches[0, 2] == stretches[1, 1]:
        stretches[1, [0, 1, 4]] = stretches[0, [0, 1, 4]]
        return stretches[1:]
    return stretches


NOT_TOLD = (
    "addresses are not among the block layer's counters: taken as random; --pattern says otherwise",
    "nor are writes with forced unit access",
)


@dataclass(frozen=True)
class ObserveRequest:
    """What to observe; `gap_seconds` parts two bursts and is several intervals at least."""

    drive: Path
    seconds: float
    interval_seconds: float = INTERVAL_SECONDS
    gap_seconds: float = GAP_SECONDS
    repeat: int = 1
    every_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.gap_seconds < 4 * self.interval_seconds:
            raise InputError(
                f"--gap-seconds {self.gap_seconds:g} cannot be told with a reading every "
                f"{self.interval_seconds:g} s: say at least {4 * self.interval_seconds:g}, or "
                "a shorter --interval"
            )
        if self.every_seconds is not None and self.every_seconds < self.seconds:
            raise InputError(
                f"--every {self.every_seconds:g} is shorter than --seconds {self.seconds:g}"
            )


def observe(request: ObserveRequest, *, keep: Callable[[IoSummary], None]) -> None:
    """Observe a drive; it is neither opened nor touched.

    `keep` receives the summary so far after every window, also when the user interrupts.

    Raises:
        DriveError: The drive does not exist, or vanished.
        UnsafeDriveError: It is a partition, or no block device.
        KeyboardInterrupt: The user ended it; observations were kept.
    """
    disk = find_disk(request.drive)
    scheduler = _scheduler(disk)
    windows: list[IoWindow] = []
    for number in range(request.repeat):
        began = time.monotonic()
        watch = Watch(time.time(), request.gap_seconds)
        try:
            for samples in sample(disk, request.seconds, request.interval_seconds):
                watch.add(samples)
        finally:
            window = watch.window()
            if window.seconds is not None:
                windows.append(window)
                keep(
                    IoSummary(
                        source=IoSource.DISKSTATS,
                        name=disk.name,
                        scheduler=scheduler,
                        windows=tuple(windows),
                        notes=NOT_TOLD,
                    )
                )
        if number + 1 < request.repeat and request.every_seconds is not None:
            time.sleep(max(0.0, began + request.every_seconds - time.monotonic()))


def _scheduler(disk: Disk) -> str | None:
    """What stands in brackets in queue/scheduler; None where the drive has none to choose."""
    text = file_text(disk.folder / "queue" / "scheduler") or ""
    return value_in_force(text) if "[" in text else None


_REMEDY = (
    "blktrace needs root, a kernel with CONFIG_BLK_DEV_IO_TRACE and `mount -t debugfs none "
    "/sys/kernel/debug`; without --blktrace the block layer's counters do"
)


PATIENCE_SECONDS = 20.0
"""Enough to print a few million events."""


@dataclass(frozen=True)
class Trace:
    """What blkparse printed, and when the trace began."""

    began_unix_seconds: float
    text: str


def capture(disk: Disk, seconds: float, *, patience_seconds: float = PATIENCE_SECONDS) -> Trace:
    """Trace a drive for some whole seconds.

    Raises HostStateError if blktrace is missing or refused.
    """
    blktrace, blkparse = (
        find_program(name, f"apt-get install blktrace, or {_REMEDY}", HostStateError)
        for name in ("blktrace", "blkparse")
    )
    environment = program_environment()
    began = time.time()
    words = [blktrace, "-d", str(disk.path), "-w", str(math.ceil(seconds)), "-o", "-"]
    with tempfile.TemporaryFile() as complaints:
        tracer = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=complaints, env=environment)
        try:
            parsed = subprocess.run(
                [blkparse, "-q", "-i", "-"],
                stdin=tracer.stdout,
                capture_output=True,
                check=False,
                env=environment,
                timeout=math.ceil(seconds) + patience_seconds,
            )
            failed = parsed.returncode != 0 or tracer.wait(patience_seconds) != 0
        except subprocess.TimeoutExpired:
            # where the kernel refuses, blktrace complains and then waits for ever
            failed = True
        finally:
            tracer.kill()
            tracer.communicate()
        complaints.seek(0)
        messages = complaints.read().decode(errors="replace").strip().splitlines()
    if failed:
        why = messages[0] if messages else "no reason given"
        raise HostStateError(f"{disk.path}: cannot be traced: {why}; {_REMEDY}")
    return Trace(began, parsed.stdout.decode(errors="replace"))
