"""System parts of the lab: compiled programs, programs of the system, loop device and mount."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from iojoule.datasets.programs import find_program, program_environment, run_program
from iojoule.measure.errors import LabError
from iojoule.measure.host.changes import mounts
from iojoule.measure.host.host_files import file_text
from iojoule.measure.lab.paths import LabPaths

BUILT = Path(__file__).parent / "built"
DISK, NBD_PLUGIN, PRELOAD = "iojoule-lab-disk", "iojoule-lab-nbd.so", "iojoule-lab-nvme.so"

_PACKAGES = {
    DISK: "libfuse3-dev and pkg-config",
    NBD_PLUGIN: "nbdkit-plugin-dev and pkg-config",
    PRELOAD: "a C compiler (gcc)",
    "losetup": "mount",
    "umount": "mount",
    "fusermount3": "fuse3",
    "nbdkit": "nbdkit",
    "nvme": "nvme-cli",
    "fio": "fio",
}


def built(name: str) -> Path:
    """A compiled part of the lab. Raises LabError, which names the missing Debian package."""
    path = BUILT / name
    if path.exists():
        return path
    raise LabError(
        f"{name} was not built, because {_PACKAGES[name]} was missing; "
        f"as root: apt-get install {_PACKAGES[name].split(' (')[0].replace(' and', '')}; "
        "then, in the checkout: make core"
    )


def program(name: str) -> str:
    """Path of a system program. Raises LabError, which names the missing Debian package."""
    return find_program(name, f"as root: apt-get install {_PACKAGES[name]}", LabError)


def run(words: Sequence[str], *, seconds: float = 10.0) -> str:
    """Standard output of a program. Raises LabError if it fails, is missing, or takes too long."""
    hangs = LabError(f"`{' '.join(words)}` took longer than {seconds:.0f} s")
    done = run_program([program(words[0]), *words[1:]], seconds=seconds, hangs=hangs)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(words)}` failed: {done.stderr.decode().strip()}")
    return done.stdout.decode()


_SYS_BLOCK = Path("/sys/block")


def attach(image: Path, max_transfer_bytes: int) -> str:
    """Make a loop device of the file; the kernel splits requests beyond the drive's largest.

    Raises LabError if no loop device is available.
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


def detach(paths: LabPaths) -> None:
    """Take away every loop device over the lab's file, of any creator."""
    for backing in _SYS_BLOCK.glob("loop*/loop/backing_file"):
        if (file_text(backing) or "").removesuffix(" (deleted)") != str(paths.image):
            continue
        drive = f"/dev/{backing.parent.parent.name}"
        with contextlib.suppress(OSError):  # 0: as the driver has it
            _limit(drive).write_text("0\n")
        # A disk that does not answer keeps it waiting, where no signal reaches it; without its
        # daemon it goes on.
        detaching = subprocess.Popen(
            [program("losetup"), "--detach", drive],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=program_environment(),
        )
        try:
            detaching.wait(3.0)
        except subprocess.TimeoutExpired:
            detaching.returncode = 0  # it is not waited for


def unmount(paths: LabPaths) -> None:
    """Unmount the daemon's file system, also of a dead daemon. Raises LabError if that fails."""
    for _ in range(8):  # an earlier lab may lie below
        if not mounted(paths.mount):
            return
        if os.getuid() == 0:
            run(["umount", "--lazy", str(paths.mount)], seconds=3.0)
        else:
            run(["fusermount3", "-u", "-z", str(paths.mount)], seconds=3.0)


def mounted(folder: Path) -> bool:
    """Whether something is mounted there; asks no server that might not answer."""
    return any(mount.point == str(folder) for mount in mounts())


def _limit(drive: str) -> Path:
    return _SYS_BLOCK / Path(drive).name / "queue/max_sectors_kb"
