"""A profile of TuneD: the scheduler and timer of the drive, the governor, files of sysfs.

Format: tuned-profiles(7) and the plug-ins disk, cpu and sysfs of TuneD 2.20. Units are applied by
rising `priority`; a new scheduler changes the depth of the queue, so that sysfs comes after disk.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from iojoule.api.acting.exports.material import (
    as_left,
    comment,
    heading,
    not_expressed,
    plain,
    text_of,
)
from iojoule.measure.drive.hdparm import timer_code
from iojoule.measure.host.changes import StandbyTimer, SysfsValue

if TYPE_CHECKING:
    from iojoule.api.acting.exports.material import Material
    from iojoule.api.acting.proposal import Step

_AFTER_DISK = 10


def profile(material: Material) -> str:
    """The file `tuned.conf` of a profile."""
    device = material.proposal.drive.device
    disk: list[str] = []
    files: list[str] = []
    rest: list[Step] = []
    governors = {step.then for step in material.settings if step.what == "cpu_governor"}
    for step in material.settings:
        change = step.change
        if isinstance(change, StandbyTimer):
            disk.append(f"spindown={timer_code(float(step.then))}")
        elif not isinstance(change, SysfsValue):
            rest.append(step)
        elif change.path == str(device.queue("scheduler")):
            disk.append(f"elevator={plain(step.then)}")
        elif step.what != "cpu_governor" or len(governors) > 1:
            files.append(f"{plain(change.path)}={plain(step.then)}")
    left = [*as_left(rest, "TuneD has no plug-in for it"), *material.left]
    where = (
        "Belongs to /etc/tuned/iojoule/tuned.conf; then: tuned-adm profile iojoule && "
        "tuned-adm verify"
    )
    sections = ["", "[main]", "summary=Settings that iojoule recommends for one drive"]
    if disk:
        sections += ["", "[disk]", *_which_drive(material), "dynamic=0", *disk]
    if len(governors) == 1:
        sections += ["", "[cpu]", f"governor={plain(governors.pop())}"]
    if files:
        sections += ["", "[sysfs]", f"priority={_AFTER_DISK}", *files]
    return text_of(heading(material, where), not_expressed(left), sections)


def _which_drive(material: Material) -> list[str]:
    """By the serial number as udev tells it; by name where there is none.

    udev keeps blanks of a serial number or replaces them, and other characters than these by `_`
    (60-persistent-storage.rules; udev_replace_chars of systemd).
    """
    device = material.proposal.drive.device
    serial = device.attribute("device/serial")
    if not serial:
        return [
            comment("The kernel knows no serial number: the name may change at a restart."),
            f"devices={device.name}",
        ]
    parts = re.findall(r"\s+|.", plain(serial))
    name = "".join("[ _]+" if part.isspace() else _as_udev(part) for part in parts)
    return [f"devices_udev_regex=^ID_SERIAL_SHORT=[ _]*{name}$"]


def _as_udev(character: str) -> str:
    escaped = re.escape(character)
    return escaped if re.match(r"[\w#+.:=@/$%?,-]", character) else f"[{escaped}_]"
