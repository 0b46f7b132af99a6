"""Boots the guest on an emulated machine and brings home what it left."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

from tests.qemu.image import DISK_ID

PREFIX = "iojoule-qemu-"
"""Of every drive's serial number; its name follows."""
TARGET_MDTS = 5
"""The largest transfer of the drive that is measured, as a power of two of 4 KiB: 128 KiB."""
Exit = Callable[[str], tuple[int, str]]
"""From the name of a command that the guest ran to its exit code and what it said."""
_SIZES = {"target": 512 << 20, "shared": 64 << 20, "results": 128 << 20}


class GuestError(Exception):
    """The guest hung, died, or left nothing; the message holds the end of its console."""


def boot(root: Path, folder: Path, *, seconds: float) -> Path:
    """Run the guest until it switches itself off.

    Args:
        root: The checkout; build/qemu there holds `vmlinuz` and `system.img`.
        folder: For the drives, the console and the results; emptied first.
        seconds: So long it may take; then QEMU is killed.

    Returns:
        The folder with what the guest left.

    Raises:
        GuestError: See there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, size in _SIZES.items():
        with (folder / f"{name}.img").open("wb") as stream:
            stream.truncate(size)
    with (folder / "qemu.log").open("wb") as log:
        try:
            subprocess.run(
                _command(root, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=seconds,
                check=True,
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            raise GuestError(f"{type(error).__name__}: {_last_words(folder)}") from None
    results = folder / "results"
    try:
        with tarfile.open(folder / "results.img") as archive:
            for member in archive:
                source = archive.extractfile(member)
                if source is not None:
                    place = results / member.name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(source.read())
    except tarfile.TarError:
        raise GuestError(f"it left nothing: {_last_words(folder)}") from None
    return results


def _command(root: Path, folder: Path) -> list[str]:
    build = root / "build" / "qemu"
    kernel_line = (
        f"console=ttyS0 quiet panic=-1 random.trust_cpu=on root=PARTUUID={DISK_ID}-01 ro rootwait "
        f"nvme.poll_queues=1 iojoule.root={root} "
        # what follows the two dashes are the arguments of process 1
        f"init={root}/.venv/bin/python -- {root}/tests/qemu/guest/init.py"
    )
    return [
        "nice", "-n", "5", "qemu-system-x86_64",
        # emulated even where there is KVM: nested in another machine it may hang. With one
        # processor a quarter of the runs hung too. Wheels need more than QEMU's default processor,
        # and Python wants random numbers before there are any but the processor's.
        "-accel", os.environ.get("IOJOULE_QEMU_ACCEL", "tcg"),
        "-machine", "q35", "-smp", "2", "-m", "2048", "-cpu", "Nehalem,+rdrand",
        "-nodefaults", "-no-reboot", "-display", "none",
        "-serial", f"file:{folder}/console.log",
        "-kernel", str(build / "vmlinuz"), "-append", kernel_line,
        *_drive("system", build / "system.img", "snapshot=on"),
        "-device", f"nvme,drive=system,serial={PREFIX}system",
        *_drive("results", folder / "results.img"),
        "-device", f"nvme,drive=results,serial={PREFIX}results",
        # one that may have several controllers (CMIC)
        *_drive("shared", folder / "shared.img"),
        "-device", "nvme-subsys,id=subsystem,nqn=shared",
        "-device", f"nvme,id=controller,subsys=subsystem,serial={PREFIX}shared",
        "-device", "nvme-ns,drive=shared,bus=controller,nsid=1,shared=on",
        # one behind a port of its own, so that it has a PCIe link
        *_drive("target", folder / "target.img", "discard=unmap"),
        "-device", "pcie-root-port,id=root-port,chassis=1",
        "-device", f"nvme,drive=target,serial={PREFIX}target,mdts={TARGET_MDTS},bus=root-port",
    ]  # fmt: skip


def _drive(name: str, image: Path, *options: str) -> tuple[str, str]:
    return "-drive", ",".join((f"file={image}", "format=raw", "if=none", f"id={name}", *options))


def _last_words(folder: Path) -> str:
    said = [
        (folder / name).read_text(errors="replace")[-2000:]
        for name in ("qemu.log", "console.log")
        if (folder / name).exists()
    ]
    return "\n".join(said)
