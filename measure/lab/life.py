"""Start and end of a lab. Nothing of it stays, however it ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iojoule.datasets.programs import python_command
from iojoule.measure.errors import LabError
from iojoule.measure.lab import drives, system
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.disk_control import DiskControl
from iojoule.measure.lab.paths import LabPaths, Process, open_own
from iojoule.measure.lab.rehearsal import find_profile, rehearsal

START_SECONDS = 40.0
BACKENDS = ("fuse", "nbdkit")
_OWN_FILES = ("drive.txt", "lab.json", "lab.part", "nvme0", "nvme0n1", "powersensor3")
_OWN_FOLDERS = ("powercap", "powercap.hidden")


def up(
    folder: Path,
    drive_name: str = drives.DEFAULT,
    backend: str | None = None,
    *,
    profile: str | None = None,
    slow_down: float | None = None,
) -> LabClient:
    """Start a lab in `folder` and wait until it is ready; a killed lab is cleaned up first.

    Args:
        drive_name: One of `drives.names()`, a preset of the simulator, or a drive's file.
        backend: One of `BACKENDS`; None: fuse where available, else nbdkit.
        profile: Instead of `drive_name`: the file or the shipped id of a profile to rehearse.
        slow_down: How many times slower than the profile; see `rehearsal`.

    Raises:
        LabError: There is a lab already, the folder holds other files, or a part does not start;
            then nothing stays.
        InputError: There is no such drive or profile.
    """
    if profile is not None:
        slow_down = rehearsal(find_profile(profile), profile, slow_down).facts["rehearsal"][
            "slow_down"
        ]
        words = ["profile", _place(profile), str(slow_down)]
    else:
        drives.find(drive_name)
        words = ["preset", _place(drive_name)]
    chosen = backend or default_backend()
    if chosen not in BACKENDS:
        raise LabError(f"{chosen} is no backend; there are {', '.join(BACKENDS)}")
    system.built(system.PRELOAD)
    system.built(system.DISK if chosen == "fuse" else system.NBD_PLUGIN)
    folder = folder.absolute()
    with contextlib.suppress(FileExistsError):  # what it is then is looked at once it is open
        folder.mkdir(mode=0o700, parents=True)
    with _locked(folder):
        state = LabPaths(folder).read_state()
        if state is not None and _runs(state, "server"):
            raise LabError(f"there is a lab in {folder} already; end it: iojoule lab down")
        _clear(folder)
        _refuse_others(folder)
        try:
            return _start(folder.resolve(), [chosen, *words])
        except BaseException:
            _clear(folder)
            raise


def down(folder: Path) -> bool:
    """End the lab in `folder`, also a killed one; returns whether there was any.

    Raises LabError if a part cannot be ended.
    """
    folder = folder.absolute()
    if not os.path.lexists(folder):
        return False
    with _locked(folder):
        return _clear(folder.resolve())


def default_backend() -> str:
    """What serves the disk here: FUSE with root, nbdkit without."""
    return "fuse" if os.getuid() == 0 else "nbdkit"


def _place(name: str) -> str:
    """A file where it is, seen from everywhere; another name as it is."""
    path = Path(name)
    return str(path.absolute()) if path.exists() else name


def _start(folder: Path, words: list[str]) -> LabClient:
    paths = LabPaths(folder)
    with paths.log("server").open("wb") as log:
        server = subprocess.Popen(
            python_command("-m", "iojoule.measure.lab.server", str(folder), *words),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    until = time.monotonic() + START_SECONDS
    while True:
        state = paths.read_state() or {}
        if state.get("status") == "ready":
            # it stays when we go: not ours to wait for
            server.returncode = 0
            return LabClient(folder)
        if state.get("status") == "failed":
            server.wait(10)
            raise LabError(str(state["reason"]))
        if server.poll() is not None or time.monotonic() > until:
            server.kill()
            server.wait()
            text = paths.log("server").read_text(errors="replace").strip()
            raise LabError(f"the lab does not start: {text[-2000:] or 'its log is empty'}")
        time.sleep(0.01)


def _answers(paths: LabPaths) -> bool:
    """Whether the disk answers, also all that was kept waiting by a fault."""
    control = DiskControl(paths.socket("disk"), timeout_seconds=2.0)
    try:
        control.ask("fault", "none")
    except LabError:
        return False
    finally:
        control.close()
    return True


def _runs(state: dict[str, Any], name: str) -> bool:
    process = state.get("processes", {}).get(name)
    return process is not None and Process(**process).runs()


def _clear(folder: Path) -> bool:
    """Take away all that a lab has in the folder, and the folder if nothing else is in it."""
    paths = LabPaths(folder)
    state = paths.read_state()
    processes = {} if state is None else state.get("processes", {})
    running = state is not None or system.mounted(paths.mount)
    if "disk" in processes and not _answers(paths):
        # as long as it lives, a process that touches its block device waits uninterruptibly
        Process(**processes["disk"]).end(patience_seconds=1.0)
    system.detach(paths)
    for name in ("disk", "server"):  # the server is there to reap the disk
        if name in processes:
            Process(**processes[name]).end()
    system.detach(paths)  # what the disk kept waiting
    system.unmount(paths)
    for name in (*_OWN_FILES, ".powersensor3.part"):
        (folder / name).unlink(missing_ok=True)
    for path in [*folder.glob("*.sock"), *folder.glob("*.log")]:
        path.unlink(missing_ok=True)
    for name in _OWN_FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for empty in (paths.mount, folder):
        with contextlib.suppress(OSError):
            empty.rmdir()
    return running


def _refuse_others(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    os.close(open_own(folder))  # clearing may have removed the one that was looked at
    others = sorted(path.name for path in folder.iterdir())
    if others:
        raise LabError(
            f"{folder} holds other files ({', '.join(others[:3])}); give the lab its own folder"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = open_own(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
