"""Safety checks before a drive is used: it is not in use, and its overwriting was agreed to.

Read-only by default. A destructive campaign needs the typed serial number and a drive without
signatures that are not named explicitly. The device is held exclusively (O_EXCL: the kernel then
refuses mounts, swap, LVM and RAID on it) while the campaign runs.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.programs import find_program, run_program
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.errors import HostStateError, UnsafeDriveError
from iojoule.measure.host.changes import mounts
from iojoule.measure.host.host_files import PROC

_TIMEOUT_SECONDS = 60.0
_LOOKS = 5
_BETWEEN_LOOKS_SECONDS = 0.4


@dataclass(frozen=True)
class Signature:
    """Something that wipefs finds on the drive: a file system, a partition table, a member."""

    kind: str
    where: str


def uses(device: BlockDevice, *, proc: Path = PROC) -> list[str]:
    """Everything that uses the drive or a partition of it, each in words; empty = nothing."""
    names = {device.name, *device.parts()}
    numbers = device.numbers()
    users = [f"{mount.source} is mounted on {mount.point}" for mount in mounts(numbers, proc=proc)]
    users += [f"{name} is swap" for name in _swaps(proc) if name in names]
    users += [f"{holder} (LVM, RAID or encryption) is built on it" for holder in device.holders()]
    users += [f"process {who} has it open" for who in _openers(proc, device)]
    return users


def signatures(device: BlockDevice) -> list[Signature]:
    """What wipefs finds on the drive and its partitions. Raises HostStateError if wipefs cannot."""
    program = find_program("wipefs", "apt-get install util-linux", HostStateError)
    nodes = [device.path, *(Path("/dev") / part for part in device.parts())]
    present = []
    for node in nodes:
        hangs = HostStateError(
            f"{node}: wipefs cannot tell what is on it within {_TIMEOUT_SECONDS:g} s; the drive "
            "hangs or has vanished"
        )
        command = [program, "--no-act", "--json", str(node)]
        done = run_program(command, seconds=_TIMEOUT_SECONDS, hangs=hangs)
        if done.returncode != 0:
            raise HostStateError(
                f"{node}: wipefs cannot tell what is on it "
                f"({done.stderr.decode(errors='replace').strip()}); read permission is needed"
            )
        listed = json.loads(done.stdout) if done.stdout.strip() else {}
        present += [
            Signature(str(entry["type"]), str(node)) for entry in listed.get("signatures", [])
        ]
    return present


def require_unused(
    device: BlockDevice, *, every_namespace: bool = False, proc: Path = PROC
) -> None:
    """Refuse a drive in use. Raises UnsafeDriveError, which names the user and the remedy.

    `every_namespace`: what follows changes the whole drive (power state, format).
    """
    for namespace in device.namespaces()[1:] if every_namespace else []:
        if users := uses(namespace, proc=proc):
            raise UnsafeDriveError(
                f"{device.path}: its drive's namespace {namespace.path} is in use: "
                f"{'; '.join(users)}. Nothing was done to it. Power states and formats are of the "
                "whole drive: unmount or stop what uses it, or name another drive"
            )
    users = uses(device, proc=proc)
    for _ in range(_LOOKS):
        # udev and its kind open a drive for a moment whenever it appears or was written to
        if not users or any(not user.startswith("process ") for user in users):
            break
        time.sleep(_BETWEEN_LOOKS_SECONDS)
        users = uses(device, proc=proc)
    if users:
        raise UnsafeDriveError(
            f"{device.path}: is in use: {'; '.join(users)}. Nothing was done to it. Unmount or "
            "stop what uses it, or name another drive"
        )


def require_consent(
    device: BlockDevice,
    serial: str,
    typed: str | None,
    allowed_signatures: Collection[str],
    erased: Sequence[BlockDevice] = (),
) -> None:
    """Refuse to overwrite a drive without its typed serial number, or with unnamed signatures.

    Args:
        serial: Its serial number, or its path where it has none.
        typed: What the user typed; None = nothing.
        allowed_signatures: Kinds of signature that the user named as worthless.
        erased: Other namespaces that a format erases with it.

    Raises:
        UnsafeDriveError: It may not be overwritten.
    """
    if typed is None:
        raise UnsafeDriveError(
            f"{device.path}: this plan overwrites the drive; to agree, type out its serial number "
            f"(--serial {serial})"
        )
    if typed.strip() != serial:
        raise UnsafeDriveError(
            f"{device.path}: its serial number is {serial}, not {typed.strip()}; nothing was done "
            "to it"
        )
    present = [signature for target in (device, *erased) for signature in signatures(target)]
    unnamed = [signature for signature in present if signature.kind not in allowed_signatures]
    if unnamed:
        listed = ", ".join(f"{signature.kind} on {signature.where}" for signature in unnamed)
        kinds = " ".join(
            f"--overwrite {kind}" for kind in sorted({signature.kind for signature in unnamed})
        )
        raise UnsafeDriveError(
            f"{device.path}: holds {listed}; nothing was done to it. If that is worthless, say "
            f"{kinds}"
        )


@contextmanager
def held(device: BlockDevice) -> Iterator[None]:
    """Hold the drive exclusively. Raises UnsafeDriveError if another process holds it."""
    try:
        handle = os.open(device.path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        raise UnsafeDriveError(
            f"{device.path}: cannot be held exclusively ({error.strerror}): it is mounted, swap, "
            "part of LVM or RAID, or another campaign runs on it"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def _swaps(proc: Path) -> list[str]:
    return [Path(line.split()[0]).resolve().name for line in _lines(proc / "swaps")[1:]]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _openers(proc: Path, device: BlockDevice) -> list[str]:
    """Other processes that have the drive or a partition open, as far as we may look."""
    numbers = device.numbers()
    processes = []
    for folder in proc.glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        with suppress(OSError):
            if any(_is_one_of(handle, numbers) for handle in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text(errors="replace").strip()
                processes.append(f"{folder.name} ({name})")
    return sorted(processes)


def _is_one_of(handle: Path, numbers: Collection[str]) -> bool:
    try:
        status = handle.stat()
    except OSError:
        return False
    if not stat.S_ISBLK(status.st_mode):
        return False
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" in numbers
