"""Changes to drive and host: each can be read, set, restored and named.

Values are text, so that a journal can hold them and a later process can restore them.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.programs import find_program, run_program
from iojoule.measure.drive.block_device import serial_number
from iojoule.measure.drive.hdparm import SataDrive, timer_code
from iojoule.measure.drive.nvme import (
    AUTONOMOUS_TRANSITIONS,
    POWER_MANAGEMENT,
    POWER_STATE_MASK,
    NvmeController,
)
from iojoule.measure.drive.power_measurement import POWER_LIMIT, same_limit
from iojoule.measure.drive.transition_table import Transition, decode, encode
from iojoule.measure.errors import CampaignError, DriveError, HostStateError
from iojoule.measure.host import host_files
from iojoule.measure.host.host_files import PROC, SYSFS

CHOICES = {
    "access times": ("noatime", "relatime", "strictatime"),
    "discard": ("nodiscard", "discard"),
}
"""The choices among options that say nothing about what a power cut may take (mount(8), ext4(5),
xfs(5)): what is written about reads, and whether freed blocks are told to the drive."""

_UNNAMED = {"access times": "strictatime", "discard": "nodiscard"}
"""What is in force where the kernel names none of a choice."""

_TIMEOUT_SECONDS = 20.0

_ESCAPED = re.compile(r"\\([0-7]{3})")
"""Of blank, tab, line feed and backslash in mountinfo (seq_path)."""


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo (proc(5))."""

    number: str
    point: str
    options: tuple[str, ...]
    kind: str
    source: str
    file_system_options: tuple[str, ...]


def mounts(numbers: Collection[str] | None = None, *, proc: Path = PROC) -> list[Mount]:
    """Everything that is mounted; with `numbers`, from devices of these (`259:0`)."""
    try:
        text = (proc / "self" / "mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return []
    result = []
    for line in text.split("\n"):  # a name may hold any other blank of Unicode
        before, _, after = line.partition(" - ")
        words, rest = before.split(" "), after.split(" ")
        if len(words) > 5 and (numbers is None or words[2] in numbers):
            point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), words[4])
            kind = rest[0]
            source = rest[1] if len(rest) > 1 else words[2]
            options = tuple(words[5].split(","))
            own = tuple(rest[2].split(",")) if len(rest) > 2 else ()
            result.append(Mount(words[2], point, options, kind, source, own))
    return result


@dataclass(frozen=True)
class Change(ABC):
    """One thing that can be set; `get` before `set` gives what restores it."""

    kind: ClassVar[str]

    @abstractmethod
    def is_there(self) -> bool:
        """Whether what it is about still exists: a node that is gone holds no setting."""

    @abstractmethod
    def get(self) -> str:
        """The current value.

        Raises:
            DriveError: The drive does not answer.
            HostStateError: The host does not tell.
        """

    @abstractmethod
    def set(self, value: str) -> None:
        """Give it a value and read it back; raises as `get`, also where it is refused."""

    @abstractmethod
    def command(self, value: str) -> str:
        """The command line that does the same, for people."""

    def serial(self) -> str | None:
        """Serial number of the drive that it is about; None = of no drive, or unknown.

        Raises DriveError if the drive does not answer.
        """
        return None

    def disturbs(self) -> tuple[Change, ...]:
        """What else loses its value when this is set, so that it has to be remembered too."""
        return ()

    @property
    def name(self) -> str:
        """Its kind and what it is about."""
        return " ".join(str(part) for part in (self.kind, *asdict(self).values()))

    def has_value(self, value: str) -> bool:
        """Whether this value is known to be in force; raises as `get`."""
        return self.get() == value

    def restore(self, value: str) -> bool:
        """Set the value that it had before where it has another; whether that was needed.

        Raises as `set`.
        """
        if self.has_value(value):  # also what was refused when it was set
            return False
        self.set(value)
        return True

    def readable_value(self) -> str | None:
        """The current value; None where it has none, as wbt_lat_usec of a queue without throttling.

        Write-only or unsupported attributes of a queue refuse to be read (block/blk-sysfs.c).
        """
        try:
            return self.get()
        except IojouleError:
            return None


Setting = tuple[Change, str]
"""What is set, and the value."""


def _serial_of_number(number: str) -> str | None:
    folder = (SYSFS / "dev" / "block" / number).resolve()
    return serial_number(folder) or serial_number(folder.parent)  # of a partition its drive's


@dataclass(frozen=True)
class FileChange(Change):
    """A change of a file of the host."""

    path: str

    def is_there(self) -> bool:
        """Whether the file exists."""
        return Path(self.path).exists()

    def serial(self) -> str | None:
        """That of the drive below whose folder in sysfs the file lies."""
        return next(filter(None, map(serial_number, Path(self.path).parents)), None)

    @abstractmethod
    def is_settable(self) -> bool:
        """Whether iojoule may set this file: it is declared in `host_files`."""


@dataclass(frozen=True)
class NodeChange(Change):
    """A change of the drive or controller behind a node."""

    node: str

    def is_there(self) -> bool:
        """Whether the node exists."""
        return Path(self.node).exists()

    def serial(self) -> str | None:
        """That of the drive that has this name in the kernel."""
        return serial_number(SYSFS / "class" / "block" / Path(self.node).name)


@dataclass(frozen=True)
class NvmeChange(NodeChange):
    """A change of an NVMe controller."""

    namespace: int

    def controller(self) -> NvmeController:
        """Through which it is made."""
        return NvmeController(Path(self.node), self.namespace)

    def serial(self) -> str | None:
        """As the controller states it."""
        return self.controller().identify().serial or None


@dataclass(frozen=True)
class MountOption(Change):
    """One of `CHOICES` of a mounted file system."""

    point: str
    number: str
    choice: str
    kind: ClassVar[str] = "mount-option"

    def is_there(self) -> bool:
        """Whether it is still mounted there."""
        return self._top_mount() is not None

    def serial(self) -> str | None:
        """That of the drive with this number."""
        return _serial_of_number(self.number)

    def get(self) -> str:
        """The option that is in force."""
        mount = self._mount()
        named = {*mount.options, *mount.file_system_options}
        return next(
            (option for option in CHOICES[self.choice] if option in named), _UNNAMED[self.choice]
        )

    def set(self, value: str) -> None:
        """Remount with it; reads it back."""
        name, *words = self._words(value)
        hangs = HostStateError(
            f"{self.point}: was not remounted with {value} within {_TIMEOUT_SECONDS:g} s; its "
            "drive hangs or has vanished"
        )
        command = [find_program(name, "apt-get install mount", HostStateError), *words]
        done = run_program(command, seconds=_TIMEOUT_SECONDS, hangs=hangs)
        if done.returncode != 0:
            reason = done.stderr.decode(errors="replace").strip()
            raise HostStateError(
                f"{self.point}: cannot be remounted with {value} ({reason}); it needs root, and a "
                "file system that knows the option"
            )
        now = self.get()
        if now != value:
            raise HostStateError(f"{self.point}: was remounted with {value} but has {now}")

    def command(self, value: str) -> str:
        """The command of mount."""
        return " ".join(self._words(value))

    def _words(self, value: str) -> list[str]:
        """With device and mount point, so that fstab is not read, and all options of the mount.

        mount(8), remount: where both are named, the options of the mount are replaced.
        """
        mount = self._mount()
        options = [option for option in mount.options if option not in CHOICES[self.choice]]
        return ["mount", "-o", ",".join(["remount", *options, value]), mount.source, self.point]

    def _mount(self) -> Mount:
        mount = self._top_mount()
        if mount is None:
            raise HostStateError(f"{self.point}: is not mounted (any more)")
        return mount

    def _top_mount(self) -> Mount | None:
        # of several on one place the last one is on top
        here = [mount for mount in mounts({self.number}) if mount.point == self.point]
        return here[-1] if here else None


@dataclass(frozen=True)
class TextFile(FileChange):
    """A text file; its value is its content, empty where there is none."""

    kind: ClassVar[str] = "text-file"

    def is_settable(self) -> bool:
        """Whether it is a file of iojoule's own, and neither it nor a folder above it is a link."""
        path = Path(self.path)
        return any(files.hold(path) for files in host_files.OWN) and path.resolve() == path

    def is_there(self) -> bool:
        """Whether the folder is there in which it is or could be."""
        return Path(self.path).parent.is_dir()

    def get(self) -> str:
        """What is in it."""
        try:
            return Path(self.path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise HostStateError(f"{self.path}: cannot be read ({error})") from None

    def set(self, value: str) -> None:
        """Write it whole, or remove it where the value is empty."""
        path = Path(self.path)
        try:
            if value:
                write_text_atomically(path, value)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise HostStateError(
                f"{self.path}: cannot be written ({error.strerror}); run as root"
            ) from None

    def command(self, value: str) -> str:
        """Shell lines."""
        if not value:
            return f"rm -f {self.path}"
        return f"cat > {self.path} <<'END'\n{value}END"


@dataclass(frozen=True)
class SysfsValue(FileChange):
    """A file under /sys or /proc with one value, or a choice like `[none] mq-deadline`."""

    kind: ClassVar[str] = "sysfs"

    def get(self) -> str:
        """The value, of a choice the one in brackets."""
        try:
            text = Path(self.path).read_text().strip()
        except OSError as error:
            raise HostStateError(
                f"{self.path}: cannot be read ({error.strerror}); this kernel or drive has no such "
                "setting: leave it out of the plan"
            ) from None
        return host_files.value_in_force(text)

    def set(self, value: str) -> None:
        """Write the value and read it back."""
        try:
            Path(self.path).write_text(value)
        except PermissionError:
            raise HostStateError(
                f"{self.path}: may not be written; run as root, or give this user write permission "
                "by a udev rule, or leave the setting out of the plan"
            ) from None
        except OSError as error:
            raise HostStateError(
                f"{self.path}: refuses {value!r} ({error.strerror}); "
                f"it offers: {host_files.file_text(Path(self.path)) or 'nothing'}"
            ) from None
        now = self.get()
        if now != value:
            raise HostStateError(f"{self.path}: was set to {value!r} but says {now!r}")

    def is_settable(self) -> bool:
        """Whether a step may set such a file."""
        return any(files.hold(Path(self.path)) for files in host_files.SETTABLE)

    def command(self, value: str) -> str:
        """A shell line."""
        return f"echo {value} > {self.path}"

    def disturbs(self) -> tuple[Change, ...]:
        """Of a scheduler: depth and throttling of the queue, and the scheduler's own settings.

        Of a governor: the energy performance preference, which amd-pstate sets to `performance`
        with the governor of that name and leaves there.

        Linux gives the queue another depth with every scheduler (blk_mq_init_sched in block/blk-mq-
        sched.c), switches write-back throttling off and on with bfq (bfq_init_queue), and recreates
        the folder `iosched`. The depth stands last, to be restored first: schedulers derive
        settings from it (dd_depth_updated).
        """
        own = Path(self.path)
        if own.parts[-2:] == ("cpufreq", "scaling_governor"):
            preference = own.with_name("energy_performance_preference")
            return (SysfsValue(str(preference)),) if preference.exists() else ()
        if own.parts[-2:] != ("queue", "scheduler"):
            return ()
        files = sorted(own.with_name("iosched").glob("*"))
        files += [own.with_name(name) for name in ("wbt_lat_usec", "nr_requests")]
        return tuple(SysfsValue(str(file)) for file in files if file.exists())


_NO_LIMIT = {"io.max": "rbps=max wbps=max riops=max wiops=max"}
"""What is in force where a file of a control group has no line of a drive; else 0."""


@dataclass(frozen=True)
class GroupLimit(FileChange):
    """The line of one drive, `259:0 ...`, in a file of a control group with limits of I/O.

    Sources: cgroup-v2.rst (io.max) and cgroup-v1/blkio-controller.rst (blkio.throttle.*) of Linux.
    """

    number: str
    kind: ClassVar[str] = "group-limit"

    def is_settable(self) -> bool:
        """Whether it is such a file."""
        declared = (*host_files.OF_GROUPS, *host_files.SETTABLE)
        return any(files.hold(Path(self.path)) for files in declared)

    def serial(self) -> str | None:
        """That of the drive with this number."""
        return _serial_of_number(self.number)

    def get(self) -> str:
        """What its line says behind the number."""
        try:
            lines = Path(self.path).read_text().splitlines()
        except OSError as error:
            raise HostStateError(f"{self.path}: cannot be read ({error.strerror})") from None
        pairs = (line.split(maxsplit=1) for line in lines)
        by_drive = {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
        return by_drive.get(self.number, _NO_LIMIT.get(Path(self.path).name, "0"))

    def set(self, value: str) -> None:
        """Write the line and read it back."""
        try:
            Path(self.path).write_text(f"{self.number} {value}")
        except OSError as error:
            raise HostStateError(
                f"{self.path}: refuses {self.number} {value} ({error.strerror}); it needs root and "
                "a drive of the kernel's own"
            ) from None
        now = self.get()
        if now != value:
            raise HostStateError(f"{self.path}: was set to {value!r} but says {now!r}")

    def command(self, value: str) -> str:
        """A shell line."""
        return f"echo {self.number} {value} > {self.path}"


@dataclass(frozen=True)
class NvmeFeature(NvmeChange):
    """A feature whose value is one number: power state, write cache, power limit."""

    identifier: int
    kind: ClassVar[str] = "nvme-feature"

    def get(self) -> str:
        """The current value, decimal."""
        return str(self.controller().feature(self.identifier))

    def set(self, value: str) -> None:
        """Set the value and read it back: a controller may ignore what it accepts."""
        controller = self.controller()
        controller.set_feature(self.identifier, int(value))
        now = controller.feature(self.identifier)
        if not self._same(now, int(value)):
            raise DriveError(
                f"{self.node}: accepted feature {self.identifier:#x} = {value} but is at {now}; "
                "the drive ignores or leaves this setting"
            )

    def _same(self, now: int, wanted: int) -> bool:
        if self.identifier == POWER_LIMIT:
            return same_limit(now, wanted)
        mask = POWER_STATE_MASK if self.identifier == POWER_MANAGEMENT else -1
        return not (now ^ wanted) & mask

    def command(self, value: str) -> str:
        """The command of nvme-cli."""
        return self.controller().set_feature_command(self.identifier, int(value))


@dataclass(frozen=True)
class NvmeTransitions(NvmeChange):
    """Autonomous power state transitions: the switch and the table, as JSON text."""

    kind: ClassVar[str] = "nvme-transitions"

    def get(self) -> str:
        """`{"enabled": ..., "table": hexadecimal}`."""
        controller = self.controller()
        enabled = bool(controller.feature(AUTONOMOUS_TRANSITIONS) & 1)
        return json.dumps({"enabled": enabled, "table": controller.transitions().hex()})

    def set(self, value: str) -> None:
        """Set switch and table, and read both back; the table counts where it is switched on."""
        wanted = json.loads(value)
        controller = self.controller()
        table = bytes.fromhex(wanted["table"])
        controller.set_transitions(wanted["enabled"], table)
        if bool(controller.feature(AUTONOMOUS_TRANSITIONS) & 1) != wanted["enabled"]:
            raise DriveError(f"{self.node}: accepted autonomous transitions but ignores them")
        if wanted["enabled"] and decode(controller.transitions()) != decode(table):
            raise DriveError(
                f"{self.node}: accepted a table of autonomous transitions but has another one"
            )

    def switched(self, enabled: bool) -> str:
        """The present table with the switch as wanted."""
        return json.dumps({**json.loads(self.get()), "enabled": enabled})

    @staticmethod
    def value_of(transitions: Iterable[Transition]) -> str:
        """The value that sets these transitions; without any the switch is off."""
        moves = tuple(transitions)
        return json.dumps({"enabled": bool(moves), "table": encode(moves).hex()})

    def command(self, value: str) -> str:
        """The command of nvme-cli."""
        on = int(json.loads(value)["enabled"])
        return (
            f"nvme set-feature {self.node} --feature-id={AUTONOMOUS_TRANSITIONS:#x} --value={on} "
            "--data-len=256 --data=TABLE"
        )


@dataclass(frozen=True)
class StandbyTimer(NodeChange):
    """The timer after which a disk stops its platters, in seconds; 0 is off.

    No ATA command returns it, so it is taken for off before it is set, the state after power-on;
    restoring it switches it off.
    """

    kind: ClassVar[str] = "standby-timer"

    def get(self) -> str:
        """Off; asks for the drive's state, which does not wake it, to know that it answers."""
        SataDrive(Path(self.node)).state()
        return "0"

    def has_value(self, value: str) -> bool:
        """Never known."""
        return False

    def set(self, value: str) -> None:
        """Set it; the drive must take the command and still answer."""
        drive = SataDrive(Path(self.node))
        drive.set_timer(float(value))
        drive.state()

    def command(self, value: str) -> str:
        """The command of hdparm."""
        return SataDrive(Path(self.node)).command("-S", str(timer_code(float(value))))


@dataclass(frozen=True)
class PowerLevel(NodeChange):
    """The level of Advanced Power Management of a SATA drive, 255 where it is off."""

    kind: ClassVar[str] = "apm-level"

    def get(self) -> str:
        """The level, decimal."""
        level = SataDrive(Path(self.node)).power_level()
        if level is None:
            raise DriveError(
                f"{self.node}: has no Advanced Power Management; leave apm_level out of the plan"
            )
        return str(level)

    def set(self, value: str) -> None:
        """Set it and read it back."""
        SataDrive(Path(self.node)).set_power_level(int(value))

    def command(self, value: str) -> str:
        """The command of hdparm."""
        return SataDrive(Path(self.node)).command("-B", value)


KINDS: dict[str, type[Change]] = {
    change.kind: change
    for change in (
        SysfsValue,
        GroupLimit,
        NvmeFeature,
        NvmeTransitions,
        StandbyTimer,
        PowerLevel,
        MountOption,
        TextFile,
    )
}
"""Every kind of change by its name in the journal."""


def _undeclared(change: Change) -> TypeGuard[FileChange]:
    return isinstance(change, FileChange) and not change.is_settable()


@cache
def _reader(kind: str) -> TypeAdapter[Change]:
    return TypeAdapter(KINDS[kind])


class Record(BaseModel):
    """A change as a journal or an undo file has it: what it is, and its value before and after."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str
    target: dict[str, Annotated[str, Field(pattern="^[^\\x00]*$")] | int]  # no name has a NUL
    before: str
    after: str | None = None
    serial: str | None = None

    def change(self) -> Change:
        """The change to restore.

        Raises CampaignError if the file is of another version or undeclared.
        """
        try:
            # as JSON: strict validation takes a dataclass from nothing else
            change = _reader(self.kind).validate_json(json.dumps(self.target), strict=True)
        except (KeyError, ValidationError):
            raise CampaignError(
                f"the journal holds {self.model_dump()!r}, which this iojoule does not know; "
                "restore it by hand"
            ) from None
        if _undeclared(change):
            raise CampaignError(
                f"the journal names {change.path}, which no step of iojoule sets; nothing is put "
                "back there. Look at who wrote it, and remove it"
            )
        return change


def to_record(
    change: Change, before: str, after: str | None = None, serial: str | None = None
) -> Record:
    """A change for the journal; `serial` is that of the drive it was made on.

    Raises CampaignError if its file is undeclared, thus not restorable.
    """
    if _undeclared(change):
        raise CampaignError(f"{change.path}: is no file that iojoule may set; nothing is set there")
    return Record(
        kind=change.kind, target=asdict(change), before=before, after=after, serial=serial
    )
