"""A block device in sysfs: identity, size, queue, link, and the places of its counters."""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import stat
import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from iojoule.measure.errors import DriveError, HostStateError, UnsafeDriveError
from iojoule.measure.host.host_files import LINK_POLICY, QUEUE, SYSFS, file_text

SECTOR_BYTES = 512
"""Unit of everything under /sys/block, whatever the drive's own block is."""

MILLISECONDS_WRAP = 1 << 32
"""The kernel states times in 32 bits: differences are taken modulo this."""


class Stat(IntEnum):
    """Places of a drive's counters in /sys/block/X/stat and, behind the name, /proc/diskstats.

    Source: Documentation/admin-guide/iostats.rst of Linux. Discards came with 4.18, flushes with
    5.5. Times are in ms. A request that asks for a flush counts as a write even without data.
    """

    READS = 0
    READS_MERGED = 1
    READ_SECTORS = 2
    READ_MS = 3
    WRITES = 4
    WRITES_MERGED = 5
    WRITE_SECTORS = 6
    WRITE_MS = 7
    IN_FLIGHT = 8
    BUSY_MS = 9
    WAITED_MS = 10
    DISCARDS = 11
    DISCARDS_MERGED = 12
    DISCARD_SECTORS = 13
    DISCARD_MS = 14
    FLUSHES = 15
    FLUSH_MS = 16


_BLKGETSIZE64 = 0x80081272  # linux/fs.h: _IOR(0x12, 114, size_t)
_BLKSSZGET = 0x1268  # linux/fs.h: _IO(0x12, 104)
_SPEEDS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # GT/s -> PCIe generation


def serial_number(folder: Path) -> str | None:
    """Serial number of the drive of a folder in sysfs, such as `class/block/sda`; None = unknown.

    NVMe, MMC and virtio tell it as text, SCSI and ATA as a page (SPC-4, 7.8.15: page 80h).
    """
    text = file_text(folder / "device" / "serial") or file_text(folder / "serial")
    if text is not None:
        return text.split("\0")[0].strip() or None
    try:
        page = (folder / "device" / "vpd_pg80").read_bytes()
    except OSError:
        return None
    if len(page) < 4 or page[1] != 0x80:
        return None
    number = page[4 : 4 + int.from_bytes(page[2:4], "big")]
    return number.split(b"\0")[0].decode("ascii", "replace").strip() or None


@dataclass(frozen=True)
class Link:
    """The PCIe link as negotiated; None where the host does not say."""

    generation: int | None
    lanes: int | None


@dataclass(frozen=True)
class BlockDevice:
    """A whole drive: kernel name such as `nvme0n1`, and device number such as `259:0`."""

    path: Path
    name: str
    number: str
    size_bytes: int
    block_bytes: int
    sysfs: Path = SYSFS

    @property
    def folder(self) -> Path:
        """Its folder in sysfs."""
        return self.sysfs / "class" / "block" / self.name

    @property
    def carrier(self) -> str:
        """Kernel name of the device that schedules and counts its requests.

        That is the drive itself, except for an NVMe drive that may have several controllers (CMIC):
        there it is the hidden `nvme0c0n1`. Of several paths none stands for all.
        """
        drive, _, number = self.name.rpartition("n")
        paths = list(self.folder.glob(f"device/nvme*/{drive}c*n{number}")) if drive else []
        return paths[0].name if len(paths) == 1 else self.name

    def queue(self, attribute: str) -> Path:
        """The file of one attribute of the request queue."""
        return QUEUE.path(self.sysfs, self.carrier, attribute)

    def queue_attribute(self, attribute: str) -> str | None:
        """What it says; None where there is none."""
        return file_text(self.queue(attribute))

    def largest_command_bytes(self, limit: str) -> int | None:
        """Largest command by a limit of its queue, also if each page is a segment.

        `max_sectors_kb`: above it the block layer splits requests; `max_hw_sectors_kb`: above it
        the drive refuses them.
        """
        kilobytes, segments = map(self.queue_attribute, (limit, "max_segments"))
        limits = [int(kilobytes) << 10] if kilobytes else []
        limits += [int(segments) * mmap.PAGESIZE] if segments else []
        return min(limits, default=None)

    def poll_queues(self) -> int | None:
        """Number of poll queues, from the driver's parameter; 0 = none, None = unknown."""
        polls = self.queue_attribute("io_poll")
        if polls is None or polls == "0":
            return None if polls is None else 0
        count = file_text(self.sysfs / "module" / "nvme" / "parameters" / "poll_queues") or ""
        return int(count) if count.isdigit() and int(count) > 0 else None

    def sectors_written(self) -> int:
        """Sectors of 512 bytes written since boot, as the block layer counts them."""
        fields = (file_text(self.sysfs / "class" / "block" / self.carrier / "stat") or "").split()
        return int(fields[Stat.WRITE_SECTORS]) if fields else 0

    @property
    def serial(self) -> str | None:
        """Its serial number; None where the host does not tell."""
        return serial_number(self.folder)

    def attribute(self, relative: str) -> str | None:
        """The text of a file below its folder; None where there is none."""
        return file_text(self.folder / relative)

    def parts(self) -> list[str]:
        """Kernel names of its partitions."""
        return sorted(path.parent.name for path in self.folder.glob("*/partition"))

    def numbers(self) -> frozenset[str]:
        """Major and minor numbers of the drive and of its partitions."""
        parts = (self.attribute(f"{part}/dev") for part in self.parts())
        return frozenset({self.number, *(text for text in parts if text)})

    def namespaces(self) -> list[BlockDevice]:
        """Every namespace of its controller or subsystem, itself first; a drive without is one."""
        others = []
        if re.fullmatch(r"nvme\d+n\d+", self.name):
            for entry in sorted((self.folder / "device").resolve().glob("nvme*")):
                number = file_text(self.sysfs / "class" / "block" / entry.name / "dev")
                if re.fullmatch(r"nvme\d+n\d+", entry.name) and entry.name != self.name and number:
                    path = Path("/dev") / entry.name
                    others.append(replace(self, path=path, name=entry.name, number=number))
        return [self, *others]

    def holders(self) -> list[str]:
        """What is built on it or on a partition: `dm-0`, `md0` ..."""
        return sorted(path.name for path in self.folder.glob("holders/*")) + sorted(
            path.name for path in self.folder.glob("*/holders/*")
        )

    def controller_node(self) -> Path | None:
        """The node of its NVMe controller; None where it is not an NVMe drive."""
        match = re.fullmatch(r"(nvme\d+)n\d+", self.name)
        if match is None:
            return None
        # the number in the drive's name is that of its subsystem, which may be another
        known = self._controller_folder()
        return Path("/dev") / (known.resolve().name if known is not None else match[1])

    def character_node(self) -> Path | None:
        """Where the node for commands of its own would be; None where it is not an NVMe drive."""
        match = re.fullmatch(r"nvme(\d+n\d+)", self.name)
        return Path("/dev") / f"ng{match[1]}" if match else None

    def namespace_id(self) -> int:
        """Identifier of the NVMe namespace; 1 where there is none to be known."""
        return int(self.attribute("nsid") or 1)

    def link(self) -> Link:
        """The PCIe link between host and drive."""
        folder = (self._controller_folder() or self.folder / "device") / "device"
        speed = file_text(folder / "current_link_speed") or ""
        width = file_text(folder / "current_link_width") or ""
        match = re.match(r"([\d.]+)", speed)
        return Link(
            _SPEEDS.get(float(match[1])) if match else None,
            int(width) if width.isdigit() and int(width) > 0 else None,
        )

    @property
    def has_vanished(self) -> bool:
        """Whether the drive is no longer there."""
        return self.attribute("size") in (None, "0") or not self.path.exists()

    @property
    def rotates(self) -> bool:
        """Whether it is a hard disk, as the kernel says."""
        return self.queue_attribute("rotational") == "1"

    def link_policy(self) -> Path | None:
        """The file with the power policy of its SATA link; None where its port has none.

        The policy is that of the port (its SCSI host): drives behind a port multiplier share it.
        """
        path = (self.folder / "device").resolve()
        host = next((part for part in path.parts if re.fullmatch(r"host\d+", part)), None)
        if host is None:
            return None
        file = LINK_POLICY.path(self.sysfs, host)
        return file if file.exists() else None

    def numa_node(self) -> int | None:
        """The memory node it is attached to; None where the host has but one or does not say."""
        folder = self._controller_folder() or self.folder / "device"
        text = file_text(folder / "device" / "numa_node") or file_text(folder / "numa_node")
        return int(text) if text and int(text) >= 0 else None

    def _controller_folder(self) -> Path | None:
        """Of an NVMe drive: below it lies the controller, or a subsystem with controllers."""
        device = self.folder / "device"
        if (device / "transport").exists():
            return device
        return next((path.parent for path in sorted(device.glob("nvme*/transport"))), None)


def open_block_device(path: Path, *, sysfs: Path = SYSFS) -> BlockDevice:
    """Inspect the device of a path.

    Raises:
        UnsafeDriveError: It is a partition, or no block device.
        DriveError: It does not exist.
        HostStateError: It may not be read; names the remedy.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DriveError(f"{path}: there is no such drive; `lsblk` lists those there are") from None
    except OSError as error:
        raise DriveError(f"{path}: cannot be looked at ({error.strerror})") from None
    if not stat.S_ISBLK(status.st_mode):
        kind = "a character device" if stat.S_ISCHR(status.st_mode) else "no device"
        raise UnsafeDriveError(
            f"{path}: is {kind}; name the block device of a whole drive such as /dev/nvme0n1"
        )
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    try:
        name = (sysfs / "dev" / "block" / number).resolve(strict=True).name
    except OSError:
        raise DriveError(f"{path}: the kernel no longer knows device {number}") from None
    _refuse_what_is_no_drive(path, name, sysfs)
    size, block = _sizes(path)
    return BlockDevice(path, name, number, size, block, sysfs)


def _refuse_what_is_no_drive(path: Path, name: str, sysfs: Path) -> None:
    folder = sysfs / "class" / "block" / name
    if (folder / "partition").exists():
        whole = folder.resolve().parent.name
        raise UnsafeDriveError(
            f"{path}: is a partition of /dev/{whole}; its power and its speed are those of the "
            f"whole drive: name /dev/{whole}"
        )
    below = sorted(path.name for path in folder.glob("slaves/*"))
    if below:
        raise UnsafeDriveError(
            f"{path}: is built on {', '.join(below)} (LVM, RAID or encryption), not a drive; name "
            "the drive below it"
        )


def _sizes(path: Path) -> tuple[int, int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise HostStateError(
            f"{path}: may not be read; add yourself to the group that owns it (`ls -l {path}`, "
            "often `disk`), give read and write permission by a udev rule, or run as root"
        ) from None
    except OSError as error:
        raise DriveError(f"{path}: cannot be opened ({error.strerror})") from None
    try:
        size = struct.unpack("Q", fcntl.ioctl(handle, _BLKGETSIZE64, bytes(8)))[0]
        block = struct.unpack("i", fcntl.ioctl(handle, _BLKSSZGET, bytes(4)))[0]
    except OSError as error:
        raise DriveError(f"{path}: does not say its size ({error.strerror})") from None
    finally:
        os.close(handle)
    if not size:
        raise DriveError(f"{path}: has no capacity; is a medium or a backing file attached?")
    return size, block
