"""The compiled parts of the lab and the programs of the system that it needs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.errors import LabError

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
    """A compiled part of the lab.

    Raises:
        LabError: It was not built; the message names the Debian package that was missing.
    """
    path = BUILT / name
    if path.exists():
        return path
    raise LabError(
        f"{name} was not built, because {_PACKAGES[name]} was missing; "
        f"as root: apt-get install {_PACKAGES[name].split(' (')[0].replace(' and', '')}; "
        "then, in the checkout: make core"
    )


def program(name: str) -> str:
    """Where a program of the system is.

    Raises:
        LabError: It is not installed; the message names the Debian package.
    """
    return find_program(name, f"as root: apt-get install {_PACKAGES[name]}", LabError)


def run(words: Sequence[str], *, seconds: float = 10.0) -> str:
    """What a program says on standard output.

    Raises:
        LabError: It fails, is missing, or takes too long.
    """
    command = [program(words[0]), *words[1:]]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=True,
            env=program_environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LabError(f"`{' '.join(words)}` took longer than {seconds:.0f} s") from None
    except subprocess.CalledProcessError as error:
        raise LabError(f"`{' '.join(words)}` failed: {error.stderr.strip()}") from None
    return said.stdout
