"""Whose joules: follows groups of processes of a host beside its drives, and keeps their sums.

For every drive and at any time, the joules of its groups, of groups that have ended, `unattributed`
and `idle` add up to what the meter has counted for it since the groups were first looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from iojoule.meter.attribution import (
    Attributor,
    Count,
    DriveIntervals,
    IdlePolicy,
    Part,
    RestPolicy,
    Shares,
    saturation_of,
)
from iojoule.meter.cgroups import GroupReader, Hierarchy
from iojoule.meter.counters import Intervals
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.meter import PARTS, Reading
from iojoule.meter.processes import QUALITY, ProcessSplitter
from iojoule.model.evaluate.bands import Floats

UNATTRIBUTED = "unattributed"
ENDED_GROUPS = "ended"
IDLE = "idle"

_PART_OF = {
    "idle": Part.IDLE,
    "read": Part.READ,
    "write": Part.WRITE,
    "background": Part.BACKGROUND,
}
_DIRECTIONS = (
    (Part.READ, [Count.READS, Count.READ_BYTES]),
    (Part.WRITE, [Count.WRITES, Count.WRITE_BYTES]),
)


@dataclass(frozen=True)
class GroupReading:
    """What one group has drawn from one drive.

    Attributes:
        drive: Kernel name.
        group: Path of the control group, or name and PID of the process; `unattributed`, `ended`
            or `idle` for what none of them pays.
        watts: Mean power in the last interval.
        part_watts: By the parts of a drive's power; they add up to `watts`.
        joules: Since the groups were first looked at.
        part_joules: By the parts of a drive's energy; they add up to `joules`.
        inherited_joules: Of `ended`, what the groups had drawn by their end: no power of now.
        quality: What the shares rest on: `io.stat` or `blkio` of control groups; `estimate` from
            /proc/PID/io, which names no drive and counts writes before they reach one.
    """

    drive: str
    group: str
    watts: float
    part_watts: dict[str, float]
    joules: float
    part_joules: dict[str, float]
    inherited_joules: float
    quality: str


@dataclass
class _Sum:
    parts: Floats = field(default_factory=lambda: np.zeros(len(Part)))
    watts: Floats = field(default_factory=lambda: np.zeros(len(Part)))
    inherited: float = 0.0


class Sums:
    """Joules by drive and group; they only grow, and nothing is lost when a group ends.

    Args:
        quality: What they rest on.
    """

    def __init__(self, quality: str) -> None:
        self.quality = quality
        self._sums: dict[tuple[str, Hashable], _Sum] = {}

    def begin_interval(self) -> None:
        """Nothing is drawn yet in the interval that begins."""
        for account in self._sums.values():
            account.watts[:] = 0.0

    def add(self, drive: str, group: Hashable, joules: Floats, seconds: float) -> None:
        """What a group drew from a drive in the interval; joules of shape (5,), columns `Part`."""
        account = self._sums.setdefault((drive, group), _Sum())
        account.parts += joules
        account.watts += joules / seconds

    def end(self, groups: Collection[Hashable]) -> None:
        """What ended groups have drawn goes on as one sum, so that their number is bounded."""
        for drive, group in [pair for pair in self._sums if pair[1] in groups]:
            left = self._sums.pop((drive, group))
            heir = self._sums.setdefault((drive, ENDED_GROUPS), _Sum())
            heir.parts += left.parts
            heir.inherited += float(left.parts.sum())

    def readings(self, names: Mapping[str, str]) -> Iterator[GroupReading]:
        """All of them; `names` are the kernel's, by drive."""
        for (drive, group), account in self._sums.items():
            yield GroupReading(
                drive=names.get(drive, drive),
                group=str(group),
                watts=float(account.watts.sum()),
                part_watts={name: float(account.watts[part]) for name, part in _PART_OF.items()},
                joules=float(account.parts.sum()),
                part_joules={name: float(account.parts[part]) for name, part in _PART_OF.items()},
                inherited_joules=account.inherited,
                quality=self.quality,
            )


class GroupMeter:
    """Divides the joules of drives among control groups, interval after interval.

    Args:
        hierarchy: From `find_hierarchy`.
        sysfs: Where it is mounted.
        idle: Who pays idle energy.
        rest: Who pays what no group is seen to have caused.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        sysfs: Path,
        idle: IdlePolicy = IdlePolicy.SEPARATE,
        rest: RestPolicy = RestPolicy.SEPARATE,
    ) -> None:
        self.hierarchy = hierarchy
        self.remarks: tuple[str, ...] = hierarchy.remarks
        self._sysfs = sysfs
        self._reader = GroupReader(hierarchy, {})
        self._attributor = Attributor(idle, rest)
        self._drives: tuple[MeteredDrive, ...] = ()
        self._names: dict[str, str] = {}
        self._sums = Sums("io.stat" if hierarchy.recursive else "blkio")

    def close(self) -> None:
        """Close the files of all groups."""
        self._reader.close()

    def begin(self, drives: Sequence[MeteredDrive]) -> None:
        """Look at the groups for the first time."""
        self._follow(drives)
        self._reader.read()

    def step(self, intervals: Intervals, readings: Sequence[Reading]) -> None:
        """Account for one interval of the meter; read at once after the drives' counters."""
        self._follow([reading.drive for reading in readings])
        submitted = self._reader.read()
        self.remarks = submitted.remarks
        self._sums.begin_interval()
        metered = drive_intervals(intervals, readings)
        if metered.drives:
            by_drive = tuple(self._names[key] for key in metered.drives)
            self._add(metered, self._attributor.step(metered, submitted.submitted(by_drive)))
        self._attributor.end(submitted.ended)
        self._sums.end(set(submitted.ended))

    def readings(self) -> Iterator[GroupReading]:
        """All sums, by drive and group."""
        return self._sums.readings(self._names)

    def _follow(self, drives: Sequence[MeteredDrive]) -> None:
        """Drives may have come or gone; all block devices of one count for it."""
        present = tuple(drives)
        if present == self._drives:
            return
        self._drives = present
        self._names.update({drive.key: drive.name for drive in present})
        numbers = {}
        for drive in present:
            for device in drive.devices:
                try:
                    number = (self._sysfs / "block" / device / "dev").read_text("ascii").strip()
                except OSError:
                    continue  # it has gone since
                numbers[number] = drive.name
        self._reader.set_drives(numbers)

    def _add(self, intervals: DriveIntervals, shares: Shares) -> None:
        for drive, group, joules in zip(
            shares.drive.tolist(), shares.groups, shares.joules, strict=True
        ):
            self._sums.add(intervals.drives[drive], group, joules, intervals.seconds[drive])
        for drive, key in enumerate(intervals.drives):
            idle = np.zeros(len(Part))
            idle[Part.IDLE] = shares.idle[drive]
            for name, joules in (
                (UNATTRIBUTED, shares.unattributed[drive]),
                (ENDED_GROUPS, shares.ended[drive]),
                (IDLE, idle),
            ):
                self._sums.add(key, name, joules, intervals.seconds[drive])


class ProcessMeter:
    """Divides the joules of all drives among processes, where control groups count nothing.

    An estimate: each process pays for the same share of every drive.

    Args:
        proc: Where procfs is mounted.
    """

    def __init__(self, proc: Path) -> None:
        self.remarks: tuple[str, ...] = ()
        self._proc = proc
        self._splitter = ProcessSplitter(proc)
        self._sums = Sums(QUALITY)
        self._names: dict[str, str] = {}
        self._running: set[str] = set()

    def close(self) -> None:
        """Nothing is kept open."""

    def begin(self, drives: Sequence[MeteredDrive]) -> None:
        """Look at the processes for the first time."""
        self._names = {drive.key: drive.name for drive in drives}
        nothing = np.zeros(len(Part))
        self._splitter.step(
            self._pids(), seconds=1.0, joules=nothing, read_bytes=0.0, write_bytes=0.0
        )

    def step(self, intervals: Intervals, readings: Sequence[Reading]) -> None:
        """Account for one interval of the meter; read at once after the drives' counters."""
        self._names.update({reading.drive.key: reading.drive.name for reading in readings})
        self._sums.begin_interval()
        metered = drive_intervals(intervals, readings)
        whole = metered.joules.sum(axis=0)
        shares = self._splitter.step(
            self._pids(),
            seconds=intervals.seconds,
            joules=whole,
            read_bytes=float(metered.counts[:, Count.READ_BYTES].sum()),
            write_bytes=float(metered.counts[:, Count.WRITE_BYTES].sum()),
        )
        self.remarks = (
            (f"{shares.unreadable} processes may not be looked at: theirs is unattributed",)
            if shares.unreadable
            else ()
        )
        names = [
            f"{name}[{key.pid}]" for key, name in zip(shares.processes, shares.names, strict=True)
        ]
        fractions = np.divide(
            shares.joules, whole, where=whole > 0, out=np.zeros_like(shares.joules)
        )
        for drive, key in enumerate(metered.drives):
            rest = metered.joules[drive].copy()
            for name, fraction in zip(names, fractions, strict=True):
                if fraction.any():
                    own = np.minimum(fraction * metered.joules[drive], rest)
                    rest -= own
                    self._sums.add(key, name, own, intervals.seconds)
            idle = np.zeros(len(Part))
            idle[Part.IDLE], rest[Part.IDLE] = rest[Part.IDLE], 0.0
            self._sums.add(key, IDLE, idle, intervals.seconds)
            self._sums.add(key, UNATTRIBUTED, rest, intervals.seconds)
        self._sums.end(self._running.difference(names))
        self._running = set(names)

    def readings(self) -> Iterator[GroupReading]:
        """All sums, by drive and process."""
        return self._sums.readings(self._names)

    def _pids(self) -> list[int]:
        return [int(path.name) for path in self._proc.iterdir() if path.name.isdigit()]


def drive_intervals(intervals: Intervals, readings: Sequence[Reading]) -> DriveIntervals:
    """What the attribution needs of the drives that have an interval."""
    rows = {drive.key: row for row, drive in enumerate(intervals.drives)}
    known = [reading for reading in readings if reading.seconds > 0 and reading.drive.key in rows]
    place = [rows[reading.drive.key] for reading in known]
    counts = np.zeros((len(known), len(Count)))
    weights, joules = np.zeros_like(counts), np.zeros((len(known), len(Part)))
    for column, values in (
        (Count.READS, intervals.read_commands),
        (Count.READ_BYTES, intervals.read_bytes),
        (Count.WRITES, intervals.write_commands),
        (Count.WRITE_BYTES, intervals.write_bytes),
        (Count.FLUSHES, intervals.flushes),
    ):
        counts[:, column] = values[place]
    for row, reading in enumerate(known):
        weights[row, : len(reading.command_joules)] = reading.command_joules
        for name in PARTS:
            joules[row, _PART_OF[name]] = reading.part_watts[name] * reading.seconds
    saturation = np.zeros((len(known), 2))
    for direction, (part, columns) in enumerate(_DIRECTIONS):
        marginal = (weights[:, columns] * counts[:, columns]).sum(axis=1)
        saturation[:, direction] = saturation_of(joules[:, part], marginal)
        # a law in which commands and bytes cost nothing: all that kept the drive awake are alike
        free = (marginal <= 0) & (counts[:, columns[0]] > 0)
        weights[free, columns[0]] = 1.0
        saturation[free, direction] = 0.0
    return DriveIntervals(
        drives=tuple(reading.drive.key for reading in known),
        seconds=np.array([reading.seconds for reading in known]),
        joules=joules,
        counts=counts,
        weights=weights,
        merged=np.stack([intervals.reads_merged[place], intervals.writes_merged[place]], axis=1),
        saturation=saturation,
    )
