"""The I/O that reached a drive: differences of the kernel's counters before and after.

Source: Documentation/block/stat.rst of Linux. Discards are counted since Linux 4.18, flushes since
5.5; a sector there has 512 B. The kernel counts the request that asks for a flush as a write, also
where it brings no data (blk_account_io_done in block/blk-mq.c: "accounting the containing request
is enough"), and joins flushes that wait. So the number of commands is known within bounds only.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.schema import Section
from iojoule.measure.drive.block_counters import numbers
from iojoule.measure.drive.block_device import SECTOR_BYTES, SYSFS
from iojoule.measure.errors import DriveError, UnsafeDriveError

PROC = Path("/proc")


@dataclass(frozen=True)
class Disk:
    """A whole drive, as far as counting needs it: nobody has to be allowed to read its node.

    Attributes:
        path: As the user named it.
        folder: Its folder in sysfs.
    """

    path: Path
    folder: Path

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.folder.name


def find_disk(path: Path, *, sysfs: Path = SYSFS) -> Disk:
    """The drive that a node names.

    Raises:
        DriveError: There is no such node, or the kernel does not know it.
        UnsafeDriveError: It is a partition, or no block device.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise DriveError(f"{path}: {error.strerror}; `lsblk -d` lists the drives") from None
    if not stat.S_ISBLK(status.st_mode):
        raise UnsafeDriveError(f"{path}: is no block device; name a drive such as /dev/nvme0n1")
    try:
        folder = _folder(status.st_rdev, sysfs).resolve(strict=True)
    except OSError:
        raise DriveError(f"{path}: the kernel does not know this device") from None
    if (folder / "partition").exists():
        raise UnsafeDriveError(
            f"{path}: is a partition; power is that of the whole drive: name "
            f"/dev/{folder.parent.name}"
        )
    return Disk(path, folder)


def _folder(number: int, sysfs: Path) -> Path:
    return sysfs / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"


class DriveIo(Section):
    """What reached a drive.

    Attributes:
        reads: Commands.
        writes: Commands, and requests to flush that bring no data.
        read_bytes: Read.
        write_bytes: Written.
        reads_merged: Requests that became part of another command.
        writes_merged: Likewise.
        flushes: Commands; None = this kernel does not count them.
        discards: Commands; None likewise.
        discard_bytes: Likewise.
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
        discards = come[11] if len(come) > 14 else None
        flushes = come[15] if len(come) > 16 else None
        others = come[0] + (discards or 0)
        return DriveIo(
            reads=come[0],
            writes=come[4],
            read_bytes=come[2] * SECTOR_BYTES,
            write_bytes=come[6] * SECTOR_BYTES,
            reads_merged=come[1],
            writes_merged=come[5],
            flushes=flushes,
            discards=discards,
            discard_bytes=come[13] * SECTOR_BYTES if len(come) > 14 else None,
            device_commands_low=others + max(come[4], flushes or 0),
            device_commands_high=others + come[4] + flushes if flushes is not None else None,
            busy_seconds=come[9] * 1e-3,
        )


def counters(disk: Disk) -> Counters:
    """The drive's counters now.

    Raises:
        DriveError: The drive is gone.
    """
    try:
        line = (disk.folder / "stat").read_text()
    except OSError:
        line = ""
    return Counters(numbers(line, str(disk.path)))


def unwritten_bytes(proc: Path = PROC) -> int | None:
    """Bytes in the page cache of all file systems that are yet to be written; None = unknown."""
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        found = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)}
        return (int(found["Dirty"]) + int(found["Writeback"])) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def lies_on(folder: Path, disk: Disk, *, sysfs: Path = SYSFS) -> bool:
    """Whether a folder's file system is directly on the drive or on a partition of it."""
    try:
        below = _folder(folder.stat().st_dev, sysfs).resolve(strict=True)
    except OSError:
        return False
    return below.is_relative_to(disk.folder)
