"""What each drive was asked to do between two looks at the kernel's block counters.

They count what the drive completed, after merging and splitting: what a profile's law of power
takes. An empty flush counts as a write of 0 bytes and as a flush. Commands that pass the block
layer by (NVMe passthrough, SPDK) are in none of them.

Nothing is counted twice and nothing is made up: where a counter fell or a drive came or went in
between, that interval is left out, and its seconds are told as unmetered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.drive.block_device import MILLISECONDS_WRAP, SECTOR_BYTES, Stat
from iojoule.measure.errors import HostStateError
from iojoule.measure.host.host_files import PROC, SYSFS
from iojoule.meter.drives import Inventory, MeteredDrive, find_drives
from iojoule.model.evaluate.bands import Floats

_COUNTS = [
    Stat.READS, Stat.READS_MERGED, Stat.READ_SECTORS, Stat.WRITES, Stat.WRITES_MERGED,
    Stat.WRITE_SECTORS, Stat.DISCARDS, Stat.DISCARD_SECTORS, Stat.FLUSHES,
]  # fmt: skip
"""Counters that never fall while a drive is there."""

SUSPENDED_SECONDS = 0.5
"""A suspension shorter than that cannot be told from the two clocks being read one by one."""

RESET = "reset"
APPEARED = "appeared"
VANISHED = "vanished"


@dataclass(frozen=True)
class Snapshot:
    """Counters of all metered drives at one moment.

    Attributes:
        inventory: The drives, in the order of the rows.
        values: Shape (drives, counters), by `Stat`; 0 where the kernel has none.
        monotonic_seconds: When; does not run while the machine is suspended.
        boot_seconds: When; does.
    """

    inventory: Inventory
    values: NDArray[np.int64]
    monotonic_seconds: float
    boot_seconds: float

    @property
    def drives(self) -> tuple[MeteredDrive, ...]:
        """Those of the rows."""
        return self.inventory.drives


@dataclass(frozen=True)
class Amounts:
    """What n drives read and wrote in one interval; arrays have shape (n,).

    Attributes:
        seconds: Length, without suspension.
        read_commands: Completed by the drive; likewise the others.
        read_bytes: Of them.
        write_commands: With data, flushes not among them.
        write_bytes: Of them.
        in_flight_seconds: Time in flight of all commands together, which over the length is the
            mean queue depth (Little's law).
        write_in_flight_seconds: That of writes alone.
        in_use_seconds: Time with a command in flight, as the kernel samples it at its ticks: too
            much where commands are short and few.
    """

    seconds: float
    read_commands: Floats
    read_bytes: Floats
    write_commands: Floats
    write_bytes: Floats
    in_flight_seconds: Floats
    write_in_flight_seconds: Floats
    in_use_seconds: Floats

    def take(self, rows: Any) -> Amounts:
        """Those of some drives, in this order."""
        names = [part.name for part in fields(Amounts)[1:]]
        return Amounts(self.seconds, *(getattr(self, name)[rows] for name in names))

    @property
    def commands(self) -> Floats:
        """Reads and writes together."""
        return np.asarray(self.read_commands + self.write_commands)

    @property
    def counts(self) -> Floats:
        """Read commands, read bytes, write commands, written bytes, shape (n, 4)."""
        columns = (self.read_commands, self.read_bytes, self.write_commands, self.write_bytes)
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Intervals(Amounts):
    """What n drives did in one interval, and what else is known of it.

    Attributes:
        drives: Whose they are.
        suspended_seconds: How long the machine was suspended in it, drawing nobody knows what.
        reads_merged: Requests that the block layer merged into the read commands; for writes,
            `writes_merged`.
        discards: Commands; their bytes move no data.
        flushes: Commands.
        problems: Drives without an interval: name, and `reset`, `appeared` or `vanished`.
    """

    drives: tuple[MeteredDrive, ...]
    suspended_seconds: float
    reads_merged: Floats
    writes_merged: Floats
    discards: Floats
    flushes: Floats
    problems: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.drives)


class BlockCounters:
    """Reads the counters of all drives, by one file that stays open.

    Args:
        proc: Where procfs is mounted.
        sysfs: Where sysfs is mounted.
        also: Names of devices that count whatever they are (`find_drives`).
        only: Names of the devices that count; empty for all drives.

    Raises:
        HostStateError: /proc/diskstats cannot be read.
    """

    def __init__(
        self,
        proc: Path = PROC,
        sysfs: Path = SYSFS,
        *,
        also: Collection[str] = (),
        only: Collection[str] = (),
    ) -> None:
        self._sysfs, self._also, self._only = sysfs, frozenset(also), frozenset(only)
        self._path = proc / "diskstats"
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise HostStateError(
                f"{self._path} cannot be read: {error.strerror}; a meter needs the block counters "
                "of Linux"
            ) from error
        self._inventory = Inventory((), {})
        self._seen: tuple[bytes, ...] = ()
        self._counted: NDArray[np.int64] | None = None  # at the last look at this inventory
        self._rows = np.empty(0, dtype=np.intp)  # of each line that counts, the drive and its place
        self._places: list[int] = []

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def read(self) -> Snapshot:
        """Look once. Drives that came or went since the last time are looked at again."""
        lines = [line.split(None, 3) for line in self._text().splitlines()]
        lines = [line for line in lines if len(line) == 4 and line[3].count(b" ") >= 10]
        seen = tuple(part for line in lines for part in line[:3])
        if seen != self._seen:
            self._look(lines)
            self._seen = seen
        counted = self._count(lines)
        if self._counted is not None and (counted < self._counted)[:, _COUNTS].any():
            self._look(lines)  # maybe another drive under the same name
            counted = self._count(lines)
        self._counted = counted
        return Snapshot(
            self._inventory,
            counted,
            time.clock_gettime(time.CLOCK_MONOTONIC),
            time.clock_gettime(time.CLOCK_BOOTTIME),
        )

    def _count(self, lines: Sequence[Sequence[bytes]]) -> NDArray[np.int64]:
        counted = np.zeros((len(self._inventory.drives), len(Stat)), dtype=np.int64)
        if self._places:
            # older kernels have fewer fields; what a row cannot hold, as a negative number that is
            # stated as an unsigned one, is the most that it can
            joined = b" ".join([lines[place][3] for place in self._places])
            numbers = np.fromstring(joined, dtype=np.int64, sep=" ").reshape(len(self._places), -1)
            numbers = numbers[:, : len(Stat)]
            np.add.at(counted[:, : numbers.shape[1]], self._rows, numbers)
        return counted

    def _look(self, lines: Sequence[Sequence[bytes]]) -> None:
        # sysfs has ! for / in a name: cciss/c0d0
        names = (line[2].decode("ascii", "replace").replace("/", "!") for line in lines)
        places = {name: place for place, name in enumerate(names)}
        everything = find_drives(self._sysfs, self._also)
        kept = tuple(
            drive
            for drive in everything.drives
            if all(name in places for name in drive.devices)
            and (not self._only or self._only.intersection(drive.devices))
        )
        self._inventory, self._counted = Inventory(kept, everything.left_out), None
        self._rows = np.repeat(np.arange(len(kept)), [len(drive.devices) for drive in kept])
        self._places = [places[name] for drive in kept for name in drive.devices]

    def _text(self) -> bytes:
        parts: list[bytes] = []
        offset = 0
        while part := os.pread(self._file, 1 << 18, offset):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)


def difference(before: Snapshot, now: Snapshot) -> Intervals:
    """What happened between two looks, for drives that were there at both."""
    earlier = {drive.key: place for place, drive in enumerate(before.drives)}
    problems = _gone(before, {drive.key for drive in now.drives})
    pairs: list[tuple[int, int]] = []
    for place, drive in enumerate(now.drives):
        known = earlier.get(drive.key)
        if known is None or before.drives[known].devices != drive.devices:
            problems[drive.name] = APPEARED
        else:
            pairs.append((known, place))
    then = before.values[[pair[0] for pair in pairs]]
    after = now.values[[pair[1] for pair in pairs]]
    delta = after - then
    for times in (Stat.READ_MS, Stat.WRITE_MS, Stat.BUSY_MS):
        delta[:, times] %= MILLISECONDS_WRAP
    fell = (delta[:, _COUNTS] < 0).any(axis=1)
    for row in np.flatnonzero(fell):
        problems[now.drives[pairs[row][1]].name] = RESET
    drives = tuple(now.drives[pairs[row][1]] for row in np.flatnonzero(~fell))
    good = delta[~fell].astype(float)
    monotonic = now.monotonic_seconds - before.monotonic_seconds
    suspended = (now.boot_seconds - before.boot_seconds) - monotonic
    flushes = good[:, Stat.FLUSHES]
    return Intervals(
        drives=drives,
        seconds=monotonic,
        suspended_seconds=suspended if suspended >= SUSPENDED_SECONDS else 0.0,
        read_commands=good[:, Stat.READS],
        read_bytes=good[:, Stat.READ_SECTORS] * SECTOR_BYTES,
        write_commands=np.maximum(good[:, Stat.WRITES] - flushes, 0.0),
        write_bytes=good[:, Stat.WRITE_SECTORS] * SECTOR_BYTES,
        reads_merged=good[:, Stat.READS_MERGED],
        writes_merged=good[:, Stat.WRITES_MERGED],
        discards=good[:, Stat.DISCARDS],
        flushes=flushes,
        in_flight_seconds=(good[:, Stat.READ_MS] + good[:, Stat.WRITE_MS]) / 1e3,
        write_in_flight_seconds=good[:, Stat.WRITE_MS] / 1e3,
        in_use_seconds=good[:, Stat.BUSY_MS] / 1e3,
        problems=problems,
    )


def _gone(before: Snapshot, there: Collection[str]) -> dict[str, str]:
    return {drive.name: VANISHED for drive in before.drives if drive.key not in there}
