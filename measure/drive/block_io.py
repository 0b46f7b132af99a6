"""I/O that reached a drive, from the block layer's counters (/sys/block/X/stat).

The kernel counts a request that asks for a flush as a write even without data (blk_account_io_done
in block/blk-mq.c: "accounting the containing request is enough"), and joins waiting flushes: the
number of commands is known within bounds only.
Latency runs from queueing to completion of a request.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from iojoule.datasets.schema import Section
from iojoule.measure.drive.block_device import (
    MILLISECONDS_WRAP,
    SECTOR_BYTES,
    BlockDevice,
    Stat,
)
from iojoule.measure.errors import DriveError, UnsafeDriveError
from iojoule.measure.host.host_files import PROC, SYSFS

LEAST = 11
"""Numbers that every kernel shows."""


def numbers(line: str | bytes, path: str) -> tuple[int, ...]:
    """The counters of a line of text, by `Stat`.

    Raises DriveError if these are none.
    """
    try:
        values = tuple(int(field) for field in line.split())
    except ValueError:
        values = ()
    if len(values) < LEAST:
        raise DriveError(f"{path}: the kernel has no statistics of it; is it still there?")
    return values


@dataclass(frozen=True)
class Disk:
    """A whole drive, as far as counting needs it; its node need not be readable."""

    path: Path
    folder: Path

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.folder.name


def find_disk(path: Path) -> Disk:
    """The drive of a node.

    Raises:
        DriveError: The node does not exist, or the kernel does not know it.
        UnsafeDriveError: It is a partition, or no block device.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise DriveError(f"{path}: {error.strerror}; `lsblk -d` lists the drives") from None
    if not stat.S_ISBLK(status.st_mode):
        raise UnsafeDriveError(f"{path}: is no block device; name a drive such as /dev/nvme0n1")
    try:
        folder = _folder(status.st_rdev).resolve(strict=True)
    except OSError:
        raise DriveError(f"{path}: the kernel does not know this device") from None
    if (folder / "partition").exists():
        raise UnsafeDriveError(
            f"{path}: is a partition; power is that of the whole drive: name "
            f"/dev/{folder.parent.name}"
        )
    return Disk(path, folder)


def _folder(number: int) -> Path:
    return SYSFS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"


class DriveIo(Section):
    """I/O that reached a drive.

    Attributes:
        writes: Includes requests to flush that bring no data.
        flushes: None = not counted by this kernel; discards likewise.
        device_commands_low: All commands, if every flush came with a request of its own.
        device_commands_high: If every flush was ordered by a write; None where flushes are unknown.
        busy_seconds: Time with at least one request in flight.
    """

    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    reads_merged: int
    writes_merged: int
    flushes: int | None
    discards: int | None
    discard_bytes: int | None
    device_commands_low: int
    device_commands_high: int | None
    busy_seconds: float


@dataclass(frozen=True)
class Counters:
    """The numbers of /sys/block/X/stat."""

    values: tuple[int, ...]

    def since(self, earlier: Counters) -> DriveIo:
        """What happened between two readings."""
        come = [now - before for now, before in zip(self.values, earlier.values, strict=True)]
        discards = come[Stat.DISCARDS] if len(come) > Stat.DISCARDS else None
        flushes = come[Stat.FLUSHES] if len(come) > Stat.FLUSHES else None
        writes, others = come[Stat.WRITES], come[Stat.READS] + (discards or 0)
        return DriveIo(
            reads=come[Stat.READS],
            writes=writes,
            read_bytes=come[Stat.READ_SECTORS] * SECTOR_BYTES,
            write_bytes=come[Stat.WRITE_SECTORS] * SECTOR_BYTES,
            reads_merged=come[Stat.READS_MERGED],
            writes_merged=come[Stat.WRITES_MERGED],
            flushes=flushes,
            discards=discards,
            discard_bytes=None if discards is None else come[Stat.DISCARD_SECTORS] * SECTOR_BYTES,
            device_commands_low=others + max(writes, flushes or 0),
            device_commands_high=None if flushes is None else others + writes + flushes,
            busy_seconds=come[Stat.BUSY_MS] % MILLISECONDS_WRAP * 1e-3,
        )


def counters(disk: Disk) -> Counters:
    """The drive's counters. Raises DriveError if the drive has vanished."""
    try:
        line = (disk.folder / "stat").read_text()
    except OSError:
        line = ""
    return Counters(numbers(line, str(disk.path)))


def unwritten_bytes(proc: Path = PROC) -> int | None:
    """Bytes in the page cache of all file systems that are yet to be written; None = unknown."""
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        fields = {
            name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)
        }
        return (int(fields["Dirty"]) + int(fields["Writeback"])) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def is_on_disk(folder: Path, disk: Disk) -> bool:
    """Whether a folder's file system is directly on the drive or on a partition of it."""
    try:
        below = _folder(folder.stat().st_dev).resolve(strict=True)
    except OSError:
        return False
    return below.is_relative_to(disk.folder)


@dataclass(frozen=True)
class BlockWindow:
    """I/O served in a window.

    Attributes:
        latency_mean_ns: The length of the window, a lower bound, where requests waited and none
            completed; None where there was nothing to serve.
        busy_share: Share of the time with at least one request in flight.
    """

    seconds: float
    requests: int
    bytes: int
    latency_mean_ns: float | None
    busy_share: float

    @property
    def throughput_bytes_per_second(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds

    @property
    def iops(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


@dataclass(frozen=True)
class Served:
    """Requests that were completed so far, their bytes, and the milliseconds that they took."""

    requests: int
    bytes: int
    waited_ms: int


Direction = Literal["read", "write"]


@dataclass(frozen=True)
class Reading:
    """The counters at a moment (CLOCK_MONOTONIC, ns)."""

    at_ns: int
    read: Served
    write: Served
    busy_ms: int
    in_flight: int

    def served(self, direction: Direction | None) -> Served:
        """Of one direction, or of both together."""
        if direction is not None:
            return self.read if direction == "read" else self.write
        pairs = zip(astuple(self.read), astuple(self.write), strict=True)
        return Served(*(own + other for own, other in pairs))


def read_counters(device: BlockDevice) -> Reading:
    """The counters of a drive. Raises DriveError if it has vanished."""
    path = Path(device.sysfs) / "class" / "block" / device.carrier / "stat"
    try:
        line = path.read_text()
    except OSError:
        line = ""
    at_ns = time.monotonic_ns()
    fields = numbers(line, str(device.path))
    return Reading(
        at_ns=at_ns,
        read=_served(fields, Stat.READS, Stat.READ_SECTORS, Stat.READ_MS),
        write=_served(fields, Stat.WRITES, Stat.WRITE_SECTORS, Stat.WRITE_MS),
        in_flight=fields[Stat.IN_FLIGHT],
        busy_ms=fields[Stat.BUSY_MS],
    )


def _served(fields: tuple[int, ...], requests: Stat, sectors: Stat, waited: Stat) -> Served:
    return Served(fields[requests], fields[sectors] * SECTOR_BYTES, fields[waited])


def between(first: Reading, last: Reading, direction: Direction | None = None) -> BlockWindow:
    """What was served between two readings, in one direction or in both together."""
    seconds = (last.at_ns - first.at_ns) * 1e-9
    before, after = first.served(direction), last.served(direction)
    requests = after.requests - before.requests
    latency: float | None = None
    if requests:
        latency = (after.waited_ms - before.waited_ms) % MILLISECONDS_WRAP * 1e6 / requests
    elif last.in_flight and first.served(None).requests == last.served(None).requests:
        latency = seconds * 1e9
    busy_ms = (last.busy_ms - first.busy_ms) % MILLISECONDS_WRAP
    return BlockWindow(
        seconds=seconds,
        requests=requests,
        bytes=after.bytes - before.bytes,
        latency_mean_ns=latency,
        busy_share=min(1.0, busy_ms * 1e-3 / seconds),
    )
