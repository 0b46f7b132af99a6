"""What is mounted, and the options of a mount that may be changed while it is in use."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.errors import HostStateError

if TYPE_CHECKING:
    from iojoule.measure.host.changes import Change

PROC = Path("/proc")

CHOICES = {
    "access times": ("noatime", "relatime", "strictatime"),
    "discard": ("nodiscard", "discard"),
}
"""The choices among options that say nothing about what a power cut may take (mount(8), ext4(5),
xfs(5)): what is written about reads, and whether freed blocks are told to the drive."""

_UNNAMED = {"access times": "strictatime", "discard": "nodiscard"}
"""What is in force where the kernel names none of a choice."""

_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo (proc(5)).

    Attributes:
        number: Major and minor number of the device.
        point: Where it is mounted.
        options: Of this mount.
        kind: File system.
        source: Device node.
        file_system_options: Of the file system, whoever mounted it.
    """

    number: str
    point: str
    options: tuple[str, ...]
    kind: str
    source: str
    file_system_options: tuple[str, ...]


def mounts(numbers: Collection[str], *, proc: Path = PROC) -> list[Mount]:
    """Everything that is mounted from devices of these numbers (`259:0`)."""
    try:
        lines = (proc / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) > 5 and words[2] in numbers:
            point = words[4].encode().decode("unicode_escape")
            kind = rest[0] if rest else ""
            source = rest[1] if len(rest) > 1 else words[2]
            options = tuple(words[5].split(","))
            own = tuple(rest[2].split(",")) if len(rest) > 2 else ()
            found.append(Mount(words[2], point, options, kind, source, own))
    return found


@dataclass(frozen=True)
class MountOption:
    """One of `CHOICES` of a mounted file system.

    Attributes:
        point: Where it is mounted.
        number: Number of its device.
        choice: Name of the choice.
    """

    point: str
    number: str
    choice: str
    kind: ClassVar[str] = "mount-option"

    def is_there(self) -> bool:
        """Whether it is still mounted there."""
        return self._found() is not None

    def get(self) -> str:
        """The option that is in force."""
        mount = self._mount()
        named = {*mount.options, *mount.file_system_options}
        return next((one for one in CHOICES[self.choice] if one in named), _UNNAMED[self.choice])

    def set(self, value: str) -> None:
        """Remount with it; reads it back."""
        name, *words = self._words(value)
        done = subprocess.run(
            [find_program(name, "apt-get install mount", HostStateError), *words],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            start_new_session=True,
            env=program_environment(),
        )
        if done.returncode != 0:
            raise HostStateError(
                f"{self.point}: cannot be remounted with {value} ({done.stderr.strip()}); it needs "
                "root, and a file system that knows the option"
            )
        now = self.get()
        if now != value:
            raise HostStateError(f"{self.point}: was remounted with {value} but has {now}")

    def command(self, value: str) -> str:
        """The command of mount."""
        return " ".join(self._words(value))

    def disturbs(self) -> tuple[Change, ...]:
        """Nothing."""
        return ()

    def _words(self, value: str) -> list[str]:
        """With device and place, so that fstab is not read, and with all options of the mount.

        mount(8), remount: where both are named, the options of the mount are replaced.
        """
        mount = self._mount()
        kept = [one for one in mount.options if one not in CHOICES[self.choice]]
        return ["mount", "-o", ",".join(["remount", *kept, value]), mount.source, self.point]

    def _mount(self) -> Mount:
        found = self._found()
        if found is None:
            raise HostStateError(f"{self.point}: is not mounted (any more)")
        return found

    def _found(self) -> Mount | None:
        # of several on one place the last one is on top
        here = [one for one in mounts({self.number}) if one.point == self.point]
        return here[-1] if here else None
