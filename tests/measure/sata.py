"""A SATA drive without hardware: its sysfs, and a program `hdparm` with its state in files."""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.drive.block_device import BlockDevice

POLICY = "class/scsi_host/host3/link_power_management_policy"

_PROGRAM = r"""#!/bin/sh
# Answers as hdparm 9.65 does; what was asked is kept in `asked`.
here=$(dirname "$0")
echo "$*" >>"$here/asked"
for node; do :; done
echo
echo "$node:"
case "$1" in
-C) echo " drive state is:  $(cat "$here/state")" ;;
-y) echo " issuing standby command"; echo standby >"$here/state" ;;
-S) echo " setting standby to $2"; echo "$2" >"$here/timer" ;;
-B)
    case "$2" in
    /*) ;;
    *) echo " setting Advanced Power Management level to $2"; echo "$2" >"$here/apm" ;;
    esac
    level=$(cat "$here/apm")
    [ "$level" = 255 ] && level=off
    echo " APM_level	= $level" ;;
*) echo "hdparm: invalid option" >&2; exit 22 ;;
esac
"""


def fake_hdparm(folder: Path, *, state: str = "active/idle", apm: str = "254") -> Path:
    """Put the program and a drive's node into a folder; programs are to be looked for in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("hdparm", _PROGRAM), ("state", state), ("apm", apm), ("asked", "")):
        (folder / name).write_text(text + ("" if text.endswith("\n") else "\n"))
    (folder / "hdparm").chmod(0o755)
    (folder / "sda").touch()
    return folder


def asked(folder: Path) -> list[str]:
    """The first option of every call so far."""
    return [line.split()[0] for line in (folder / "asked").read_text().split("\n") if line.strip()]


def sata(
    sysfs: Path, node: Path, *, rotates: bool = True, policy: str | None = "max_performance"
) -> DriveFacts:
    """The drive as sysfs shows it behind an AHCI port."""
    drive = sysfs / "devices/pci0000:00/ata4/host3/target3:0:0/3:0:0:0"
    block = drive / "block" / "sda"
    (block / "queue").mkdir(parents=True)
    (block / "queue" / "scheduler").write_text("none [mq-deadline] bfq\n")
    (block / "queue" / "nr_requests").write_text("64\n")
    (block / "queue" / "rotational").write_text(f"{int(rotates)}\n")
    (block / "device").symlink_to(drive)
    (sysfs / "class/block").mkdir(parents=True)
    (sysfs / "class/block/sda").symlink_to(block)
    if policy is not None:
        file = sysfs / POLICY
        file.parent.mkdir(parents=True)
        file.write_text(policy + "\n")
    return DriveFacts(BlockDevice(node, "sda", "8:0", 10**12, 512, sysfs), None, None)
