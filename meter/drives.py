"""The drives of a host that a meter counts, each once, and what it leaves out and why.

Joules are those of a physical drive. What lies above drives (dm, md, bcache), what is only memory
or a file (zram, pmem, loop), what another host powers (NVMe over fabrics, iSCSI, Fibre Channel) or
a hypervisor provides (virtio, Xen, Hyper-V, emulated disks) would count twice or has no watts here.
Namespaces of one controller, paths to one subsystem, units of one target and the areas of an eMMC
are one drive; others that state the same serial number are not. Nothing of this sends a command to
a drive: sysfs answers from memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from iojoule.measure.drive.block_device import SECTOR_BYTES, BlockDevice, Link, serial_number
from iojoule.measure.host.host_files import SYSFS

T = TypeVar("T")

STACKED = "stacked"
VIRTUAL = "virtual"
REMOTE = "remote"
GUEST = "guest"
HIDDEN_PATH = "path"

LEFT_OUT = {
    STACKED: "its requests are counted on the drives below it",
    VIRTUAL: "it is memory or a file, no drive",
    REMOTE: "another host powers it",
    GUEST: "a hypervisor provides it: its watts are those of a drive of the host below",
    HIDDEN_PATH: "its requests are counted where the paths meet",
}
"""Why a block device is no drive of its own here, by code."""

_NAMES = (
    (r"(dm-|md|bcache|drbd)\d", STACKED),
    (r"(vd|xvd)[a-z]", GUEST),
    (r"(nbd|rbd)\d", REMOTE),
    (r"(loop|ram|zram|pmem|mtdblock|ubiblock|zd|ublkb|sr|fd)\d", VIRTUAL),
)
"""What a kernel name tells."""

_PLACES = (
    (r"/session\d+/", REMOTE),  # iSCSI: .../session1/target1:0:0/...
    (r"/rport-\d", REMOTE),  # Fibre Channel
    (r"/virtio\d|/vmbus|/xen", GUEST),
)
"""What the place among the devices tells."""

_EMULATED = (
    "qemu",
    "vbox",
    "orcl-vbox",
    "vmware",
    "virtual disk",
    "virtual hdd",
    "amazon elastic block store",
    "persistentdisk",
    "nvme_card-pd",
)
"""How hypervisors' disks begin the names of their models."""

_TOLERANCE = "power/pm_qos_latency_tolerance_us"

IOSTATS_OFF = "iostats_off"
"""The kernel does not count this queue's requests (`queue/iostats` is 0)."""


UNKNOWN_LINK = Link(None, None)


@dataclass(frozen=True)
class MeteredDrive:
    """One physical drive.

    Attributes:
        key: Serial number, else world wide name, else the kernel's name: what it is known by when
            it comes back under another name.
        name: Kernel name of its first block device, as other exporters call it: `nvme0n1`.
        devices: All its block devices, whose counters add up.
        serial: Without blanks at its ends; None where the host does not say, likewise the others.
        wwid: World wide name.
        model: As the drive states it.
        firmware: Revision.
        transport: `nvme`, `sata`, `sas`, `usb` or `mmc`; None where unknown.
        rotates: Whether it is a hard disk.
        capacity_bytes: Of all its block devices; None where unknown.
        link: Generation and lanes of its PCIe link; None each where unknown.
        sleeps_by_itself: Whether the kernel lets an NVMe drive change its power state by itself
            (APST); None where it has no such states or the host does not say.
        reasons: Codes of what makes its counters wrong.
    """

    key: str
    name: str
    devices: tuple[str, ...]
    serial: str | None
    wwid: str | None
    model: str | None
    firmware: str | None
    transport: str | None
    rotates: bool
    capacity_bytes: int | None = None
    link: Link = UNKNOWN_LINK
    sleeps_by_itself: bool | None = None
    reasons: tuple[str, ...] = ()

    def stated(self, values: Mapping[str, T]) -> T | None:
        """What is stated for one of its block devices, by their names; None for none of them."""
        return next((values[name] for name in self.devices if name in values), None)


@dataclass(frozen=True)
class Inventory:
    """What block devices a host has.

    Attributes:
        drives: Those that are metered, by name.
        left_out: Name of each other block device, and its code in `LEFT_OUT`.
    """

    drives: tuple[MeteredDrive, ...]
    left_out: dict[str, str]


def find_drives(sysfs: Path = SYSFS, also: Collection[str] = ()) -> Inventory:
    """Look at every block device of the host.

    Args:
        sysfs: Where it is mounted.
        also: Names of devices that count whatever they are: a file's loop device, a guest's disk.
    """
    left_out: dict[str, str] = {}
    found: dict[str, MeteredDrive] = {}
    try:
        names = sorted((path.name for path in (sysfs / "block").iterdir()), key=_natural)
    except OSError:
        names = []
    for name in names:
        folder = sysfs / "block" / name
        code = None if name in also else why_not(folder)
        if code is not None:
            left_out[name] = code
            continue
        drive = _identity(folder, sysfs)
        alike = [other for other in found.values() if _stated(other) == drive.key]
        known = next((other for other in alike if _same(other, drive, sysfs)), None)
        if known is not None:  # another namespace, or another path to the same drive
            drive = _joined(known, drive)
        elif alike:
            drive = replace(drive, key=f"{drive.key} {_distinct(alike, drive)}")
        found[drive.key] = drive
    return Inventory(tuple(found.values()), left_out)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts nvme2n1 before nvme10n1."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(part)) if part.isdigit() else (0, part) for part in parts]


def _same(drive: MeteredDrive, other: MeteredDrive, sysfs: Path) -> bool:
    """Whether two block devices that state one serial number are one drive.

    Linux tells NVMe subsystems apart by model and serial number. Of others, only SAS drives have
    several paths, which state one world wide name; what shares a target is one drive.
    """
    alike = (drive.model, drive.transport) == (other.model, other.transport)
    if "nvme" in (drive.transport, other.transport):
        return alike
    targets = {_device(sysfs / "block" / one.name).resolve().parent for one in (drive, other)}
    several_paths = drive.transport in ("sas", None)
    return len(targets) == 1 or (alike and several_paths and drive.wwid == other.wwid)


def _stated(drive: MeteredDrive) -> str:
    """What a drive states itself to be: its key, but for drives of one serial number."""
    return drive.serial or drive.wwid or drive.key


def _distinct(alike: Collection[MeteredDrive], drive: MeteredDrive) -> str:
    """What parts a drive from those with the same serial number: a name only where it must."""
    known = {other.wwid for other in alike}
    return drive.wwid if drive.wwid and drive.wwid not in known else drive.name


def _joined(drive: MeteredDrive, other: MeteredDrive) -> MeteredDrive:
    known = drive.capacity_bytes is not None and other.capacity_bytes is not None
    return replace(
        drive,
        devices=(*drive.devices, *other.devices),
        capacity_bytes=(drive.capacity_bytes or 0) + (other.capacity_bytes or 0) if known else None,
        reasons=tuple(sorted({*drive.reasons, *other.reasons})),
    )


def why_not(folder: Path) -> str | None:
    """The code of what makes a block device no drive of its own; None for a drive."""
    if _text(folder / "hidden") == "1":
        return HIDDEN_PATH
    if any(folder.glob("slaves/*")):
        return STACKED
    for pattern, code in _NAMES:
        if re.match(pattern, folder.name):
            return code
    device = _device(folder)
    if not device.exists():
        return VIRTUAL
    place = str(device.resolve())
    for pattern, code in _PLACES:
        if re.search(pattern, place, re.IGNORECASE):
            return code
    transports = list(_transports(folder))
    if transports and "pcie" not in transports:
        return REMOTE
    return GUEST if (_text(device / "model") or "").lower().startswith(_EMULATED) else None


def _device(folder: Path) -> Path:
    """What a block device belongs to; of an area of an eMMC, what its main area does."""
    device = folder / "device"
    return device / "device" if (device / "queue").is_dir() else device


def _transports(folder: Path) -> Iterator[str]:
    """How the controllers of an NVMe drive are reached: `pcie`, `tcp`, `rdma`, `fc`, `loop`."""
    device = folder / "device"
    for place in (device / "transport", *device.glob("nvme*/transport")):
        text = _text(place)
        if text is not None:
            yield text


def _identity(folder: Path, sysfs: Path) -> MeteredDrive:
    device = _device(folder)
    whole = device.parent if device != folder / "device" else folder
    serial = serial_number(whole)
    wwid = _text(folder / "wwid") or _text(device / "wwid")
    reasons = (IOSTATS_OFF,) if _text(folder / "queue" / "iostats") == "0" else ()
    sectors = _text(folder / "size") or ""
    transport = _transport(folder, device)
    node = BlockDevice(Path("/dev") / folder.name, folder.name, "", 0, SECTOR_BYTES, sysfs)
    return MeteredDrive(
        key=serial or wwid or (folder if whole is folder else whole.resolve()).name,
        name=folder.name,
        devices=(folder.name,),
        serial=serial,
        wwid=wwid,
        model=_text(device / "model"),
        firmware=_text(device / "firmware_rev") or _text(device / "rev"),
        transport=transport,
        rotates=_text(folder / "queue" / "rotational") == "1",
        capacity_bytes=int(sectors) * SECTOR_BYTES if sectors.isdigit() else None,
        link=node.link() if transport == "nvme" else UNKNOWN_LINK,
        sleeps_by_itself=_sleeps(device) if transport == "nvme" else None,
        reasons=reasons,
    )


def _sleeps(device: Path) -> bool | None:
    """From the latency that the kernel tolerates: the file is there only with APST, 0 is off."""
    files = (device / _TOLERANCE, *device.glob(f"nvme*/{_TOLERANCE}"))
    text = next(filter(None, map(_text, files)), None)
    return None if text is None else text != "0"


def _transport(folder: Path, device: Path) -> str | None:
    if folder.name.startswith("nvme"):
        return "nvme"
    if folder.name.startswith("mmcblk"):
        return "mmc"
    place = str(device.resolve())
    for part, name in (("/ata", "sata"), ("/usb", "usb"), ("/end_device-", "sas")):
        if part in place:
            return name
    return None


def _text(path: Path) -> str | None:
    """Text of a small file without blanks at its ends; None where it is absent or empty."""
    try:
        return " ".join(path.read_text("utf-8", "replace").split("\0")[0].split()) or None
    except OSError:
        return None
