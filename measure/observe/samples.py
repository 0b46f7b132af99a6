"""Counters of the block layer, read every millisecond or so.

Source: Documentation/block/stat.rst of Linux. One file holds all counters of a drive at one moment,
sectors of 512 B, times in ms. Reading it costs some 20 us of a core.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.command.block_io import Disk
from iojoule.measure.drive.block_counters import numbers
from iojoule.measure.errors import DriveError

COUNTERS = 17
"""Values of a kernel from 5.5 on; earlier ones have 11 (before discards) or 15 (before flushes)."""

INTERVAL_SECONDS = 0.001
_BLOCK = 4096
_LONGEST_LINE = 1024


@dataclass(frozen=True)
class Samples:
    """Consecutive readings; every array has shape (n,), or (n, 17) for `values`.

    Attributes:
        at_seconds: CLOCK_MONOTONIC of each.
        values: The counters in the kernel's order; those that the kernel does not have are 0.
        counts_flushes: Whether the kernel counts flushes (Linux 5.5).
        counts_discards: Whether it counts discards (Linux 4.18).
    """

    at_seconds: NDArray[np.float64]
    values: NDArray[np.int64]
    counts_flushes: bool = True
    counts_discards: bool = True

    READS: ClassVar[int] = 0
    READS_MERGED: ClassVar[int] = 1
    READ_SECTORS: ClassVar[int] = 2
    WRITES: ClassVar[int] = 4
    WRITES_MERGED: ClassVar[int] = 5
    WRITE_SECTORS: ClassVar[int] = 6
    IN_FLIGHT: ClassVar[int] = 8
    DISCARDS: ClassVar[int] = 11
    FLUSHES: ClassVar[int] = 15
    FLUSH_MS: ClassVar[int] = 16

    def __len__(self) -> int:
        return len(self.at_seconds)


def sample(
    disk: Disk, seconds: float, interval_seconds: float = INTERVAL_SECONDS
) -> Iterator[Samples]:
    """Read the counters for some time.

    Yields:
        Blocks of readings; each block begins with the last reading of the one before.

    Raises:
        DriveError: The drive has no statistics, or is gone.
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
    values = np.zeros((len(readings), COUNTERS), dtype=np.int64)
    values[:, : min(width, COUNTERS)] = [one[:COUNTERS] for _, one in readings]
    at = np.array([moment for moment, _ in readings])
    return Samples(at, values, counts_flushes=width > 16, counts_discards=width > 14)
