"""Files of a lab, and what it records about itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.measure.errors import LabError
from iojoule.measure.host.host_files import START_FIELD, process_fields, process_start

SCHEMA_VERSION = 1


def default_folder() -> Path:
    """Where the lab is by default: one for each user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    with contextlib.suppress(OSError):
        # sudo -E keeps that of another user
        if runtime and Path(runtime).stat().st_uid == os.geteuid():
            return Path(runtime) / "iojoule-lab"
    return Path(f"/tmp/iojoule-lab-{os.geteuid()}")


def open_own(folder: Path) -> int:
    """Open the folder of a lab; returns a file descriptor. Programs load what it names.

    Raises:
        FileNotFoundError: It does not exist.
        LabError: It is a link, or another user made it or may write it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "is a symbolic link" if folder.is_symlink() else f"is no folder ({error.strerror})"
        raise _not_own(folder, why) from None
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        why = f"belongs to user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = "may be written by others"
    else:
        return descriptor
    os.close(descriptor)
    raise _not_own(folder, why)


def _not_own(folder: Path, why: str) -> LabError:
    return LabError(
        f"{folder}: {why}, so no lab is set up, asked or taken down there. Look at what is in it "
        "and remove it, or name a folder that only you may write (--dir)"
    )


@dataclass
class LabPaths:
    """The files of the lab in `folder`."""

    folder: Path

    def __post_init__(self) -> None:
        folder = self.folder
        self.state = folder / "lab.json"  # what others may read
        self.drive_text = folder / "drive.txt"  # the drive, as the daemon reads it
        self.mount = folder / "mnt"
        self.image = self.mount / "drive"  # the daemon's one file
        self.controller = folder / "nvme0"  # stands in for the controller's character device
        self.namespace = folder / "nvme0n1"  # stands in for the block device, for commands only
        self.power_sensor = folder / "powersensor3"  # link to the emulated PowerSensor3
        self.rapl = folder / "powercap"

    def socket(self, name: str) -> Path:
        """The socket of `disk`, `controller`, `server` or `nbd`."""
        return self.folder / f"{name}.sock"

    def log(self, name: str) -> Path:
        """What a process of the lab said."""
        return self.folder / f"{name}.log"

    def read_state(self) -> dict[str, Any] | None:
        """Content of lab.json; None if there is none.

        Raises LabError if it is damaged or too new.
        """
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise LabError(
                f"{self.state}: cannot be read ({error}); remove {self.folder}"
            ) from None
        if not isinstance(state, dict) or state.get("schema_version") != SCHEMA_VERSION:
            raise LabError(
                f"{self.state}: is of another version of iojoule; take that lab down with it"
            )
        return state

    def write_state(self, state: dict[str, Any]) -> None:
        """Replace lab.json, whole."""
        partial = self.state.with_suffix(".part")
        text = json.dumps({"schema_version": SCHEMA_VERSION, **state}, indent=1)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(self.state)


@dataclass(frozen=True)
class Process:
    """A process of the lab, identified by its number and start (clock ticks since boot)."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process of that number, though it ended. Raises LabError if it is not there."""
        fields = process_fields(pid)
        if fields is None:
            raise LabError(f"process {pid} ended as soon as it began")
        return cls(pid, int(fields[START_FIELD]))

    def runs(self) -> bool:
        """Whether it is still there, and not only waiting to be reaped."""
        return process_start(self.pid) == self.started

    def end(self, *, patience_seconds: float = 5.0) -> None:
        """SIGTERM, and SIGKILL if that does not do."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.runs():
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            until = time.monotonic() + patience_seconds
            while self.runs() and time.monotonic() < until:
                time.sleep(0.01)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def as_json(self) -> dict[str, int]:
        """What `Process(**...)` takes."""
        return {"pid": self.pid, "started": self.started}
