"""Whose joules: follows groups of processes of a host beside its drives, and keeps their sums.

For every drive and at any time, the joules of its groups, of groups that have ended, `unattributed`
and `idle` add up to what the meter has counted for it since the groups were first looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    "awake": Part.AWAKE,
    "read": Part.READ,
    "write": Part.WRITE,
    "background": Part.BACKGROUND,
}


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
        cpu_joules: What the host's packages drew for it beside the drive's; 0 where that is not
            known.
        inherited_cpu_joules: Of that, likewise.
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
    cpu_joules: float
    inherited_cpu_joules: float
    quality: str


class Sums:
    """Joules by drive and group; they only grow, and nothing is lost when a group ends.

    Args:
        quality: What they rest on.
    """

    def __init__(self, quality: str) -> None:
        self.quality = quality
        self._rows: dict[tuple[str, Hashable], int] = {}
        self._free: list[int] = []
        self._joules = np.zeros((0, len(Part)))
        self._watts = np.zeros((0, len(Part)))
        self._inherited = np.zeros((0, len(Part)))

    def begin_interval(self) -> None:
        """Nothing is drawn yet in the interval that begins."""
        self._watts[:] = 0.0

    def add(
        self, keys: Iterable[tuple[str, Hashable]], joules: Floats, seconds: Floats | float
    ) -> None:
        """What groups drew from drives in the interval.

        Args:
            keys: Drive and group of K rows, each pair once.
            joules: Shape (K, 7), columns `Part`.
            seconds: Length of the interval, shape (K,).
        """
        rows = [self._row(key) for key in keys]
        self._joules[rows] += joules
        self._watts[rows] += joules / np.broadcast_to(seconds, len(rows))[:, None]

    def end(self, groups: Collection[Hashable]) -> None:
        """What ended groups have drawn goes on as one sum, so that their number is bounded."""
        if not groups:
            return
        for key in [key for key in self._rows if key[1] in groups]:
            heir = self._row((key[0], ENDED_GROUPS))
            row = self._rows.pop(key)
            self._joules[heir] += self._joules[row]
            self._inherited[heir] += self._joules[row]
            self._joules[row] = self._watts[row] = 0.0
            self._free.append(row)

    def readings(self, names: Mapping[str, str]) -> Iterator[GroupReading]:
        """All of them; `names` are the kernel's, by drive."""
        joules, watts = self._joules.tolist(), self._watts.tolist()
        inherited = self._inherited.tolist()
        for (drive, group), row in self._rows.items():
            yield GroupReading(
                drive=names.get(drive, drive),
                group=str(group),
                watts=sum(watts[row][: Part.CPU]),
                part_watts={name: watts[row][part] for name, part in _PART_OF.items()},
                joules=sum(joules[row][: Part.CPU]),
                part_joules={name: joules[row][part] for name, part in _PART_OF.items()},
                inherited_joules=sum(inherited[row][: Part.CPU]),
                cpu_joules=joules[row][Part.CPU],
                inherited_cpu_joules=inherited[row][Part.CPU],
                quality=self.quality,
            )

    def _row(self, key: tuple[str, Hashable]) -> int:
        row = self._rows.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[key] = row
            if row >= len(self._joules):
                more = np.zeros(
                    (max(row + 1 - len(self._joules), len(self._joules), 16), len(Part))
                )
                self._joules = np.concatenate([self._joules, more])
                self._watts = np.concatenate([self._watts, more])
                self._inherited = np.concatenate([self._inherited, more])
        return row


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

    def step(
        self, intervals: Intervals, readings: Sequence[Reading], cpu: Mapping[str, float]
    ) -> None:
        """Account for one interval of the meter; read at once after the drives' counters.

        Args:
            intervals: What the drives did.
            readings: Of the meter.
            cpu: Joules that the CPU drew for each drive in the interval, by its key, where known.
        """
        self._follow([reading.drive for reading in readings])
        submitted = self._reader.read()
        self.remarks = submitted.remarks
        self._sums.begin_interval()
        metered = drive_intervals(intervals, readings, cpu)
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
        drives = intervals.drives
        of = map(drives.__getitem__, shares.drive.tolist())
        keys = zip(of, shares.groups, strict=True)
        self._sums.add(keys, shares.joules, intervals.seconds[shares.drive])
        idle = np.zeros_like(shares.unattributed)
        idle[:, Part.IDLE] = shares.idle
        for name, joules in (
            (UNATTRIBUTED, shares.unattributed),
            (ENDED_GROUPS, shares.ended),
            (IDLE, idle),
        ):
            self._sums.add([(drive, name) for drive in drives], joules, intervals.seconds)


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

    def step(
        self, intervals: Intervals, readings: Sequence[Reading], cpu: Mapping[str, float]
    ) -> None:
        """As `GroupMeter.step`."""
        self._names.update({reading.drive.key: reading.drive.name for reading in readings})
        self._sums.begin_interval()
        metered = drive_intervals(intervals, readings, cpu)
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
            own = fractions * metered.joules[drive]
            rest = np.maximum(metered.joules[drive] - own.sum(axis=0), 0.0)
            idle = np.zeros(len(Part))
            idle[Part.IDLE], rest[Part.IDLE] = rest[Part.IDLE], 0.0
            keys: list[tuple[str, Hashable]] = [(key, name) for name in names]
            self._sums.add(
                [*keys, (key, IDLE), (key, UNATTRIBUTED)],
                np.vstack([own, idle, rest]),
                intervals.seconds,
            )
        self._sums.end(self._running.difference(names))
        self._running = set(names)

    def readings(self) -> Iterator[GroupReading]:
        """All sums, by drive and process."""
        return self._sums.readings(self._names)

    def _pids(self) -> list[int]:
        return [int(path.name) for path in self._proc.iterdir() if path.name.isdigit()]


def drive_intervals(
    intervals: Intervals, readings: Sequence[Reading], cpu: Mapping[str, float]
) -> DriveIntervals:
    """What the attribution needs of the drives that have an interval."""
    rows = {drive.key: row for row, drive in enumerate(intervals.drives)}
    known = [reading for reading in readings if reading.seconds > 0 and reading.drive.key in rows]
    place = [rows[reading.drive.key] for reading in known]
    counts = np.zeros((len(known), len(Count)))
    weights, load, cores = np.zeros((3, *counts.shape))
    joules = np.zeros((len(known), len(Part)))
    counts[:, : Count.FLUSHES] = intervals.counts[place]
    counts[:, Count.FLUSHES] = intervals.flushes[place]
    seconds = np.array([reading.seconds for reading in known])
    if known:
        for table, name in (
            (weights, "command_joules"), (load, "command_load"), (cores, "command_core_seconds")
        ):  # fmt: skip
            table[:, : Count.FLUSHES] = [getattr(reading, name) for reading in known]
        own = [_PART_OF[name] for name in PARTS]
        joules[:, own] = [[*map(reading.part_watts.__getitem__, PARTS)] for reading in known]
        joules *= seconds[:, None]
        joules[:, Part.CPU] = [cpu.get(reading.drive.key, 0.0) for reading in known]
    for columns in (slice(Count.READS, Count.WRITES), slice(Count.WRITES, Count.FLUSHES)):
        # a law in which commands and bytes cost nothing: by their number
        free = (weights * counts)[:, columns].sum(axis=1) <= 0
        weights[free, columns.start] = 1.0
    return DriveIntervals(
        drives=tuple(reading.drive.key for reading in known),
        seconds=seconds,
        joules=joules,
        counts=counts,
        weights=weights,
        merged=np.stack([intervals.reads_merged[place], intervals.writes_merged[place]], axis=1),
        load=load,
        core_seconds=cores,
    )
