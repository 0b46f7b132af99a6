"""The lab's block device: a loop device over the daemon's file, and its mount."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from pathlib import Path

from iojoule.datasets.programs import program_environment
from iojoule.measure.errors import LabError
from iojoule.measure.lab.places import Places
from iojoule.measure.lab.programs import program, run

_SYS_BLOCK = Path("/sys/block")


def attach(image: Path, max_transfer_bytes: int) -> str:
    """Make a loop device of the file; requests beyond the drive's largest are split by the kernel.

    Raises:
        LabError: There is no loop device to be had.
    """
    try:
        drive = run(["losetup", "--show", "--find", "--direct-io=on", str(image)]).strip()
    except LabError as error:
        raise LabError(
            f"{error.message}; a loop device needs root and /dev/loop-control (without: "
            "--backend nbdkit)"
        ) from None
    if not stat.S_ISBLK(Path(drive).stat().st_mode):
        run(["losetup", "--detach", drive])
        raise LabError(f"{drive} is not a block device; the system has no /dev for loop devices")
    if max_transfer_bytes:
        with contextlib.suppress(OSError):  # then the model splits them
            _limit(drive).write_text(f"{max_transfer_bytes // 1024}\n")
    return drive


def detach(places: Places) -> None:
    """Take away every loop device over the lab's file, whoever made it."""
    for backing in _SYS_BLOCK.glob("loop*/loop/backing_file"):
        try:
            path = backing.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if path.removesuffix(" (deleted)") != str(places.image):
            continue
        drive = f"/dev/{backing.parent.parent.name}"
        with contextlib.suppress(OSError):  # 0: as the driver has it
            _limit(drive).write_text("0\n")
        # A disk that does not answer keeps it waiting, where no signal reaches it; without its
        # daemon it goes on.
        detaching = subprocess.Popen(
            [program("losetup"), "--detach", drive],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=program_environment(),
        )  # fmt: skip
        try:
            detaching.wait(3.0)
        except subprocess.TimeoutExpired:
            detaching.returncode = 0  # nobody waits for it


def unmount(places: Places) -> None:
    """Take the daemon's file system away, also when its daemon is dead.

    Raises:
        LabError: It does not go.
    """
    for _ in range(8):  # an earlier lab may lie below
        if not mounted(places.mount):
            return
        if os.getuid() == 0:
            run(["umount", "--lazy", str(places.mount)], seconds=3.0)
        else:
            run(["fusermount3", "-u", "-z", str(places.mount)], seconds=3.0)


def mounted(folder: Path) -> bool:
    """Whether something is mounted there; asks nobody who might not answer."""
    wanted = str(folder).replace(" ", "\\040")
    with Path("/proc/self/mounts").open(encoding="utf-8") as mounts:
        return any(line.split()[1] == wanted for line in mounts)


def _limit(drive: str) -> Path:
    return _SYS_BLOCK / Path(drive).name / "queue/max_sectors_kb"
