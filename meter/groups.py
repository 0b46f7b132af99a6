"""Whose joules: follows groups of processes of a host beside its drives, and keeps their sums.

For every drive and at any time, the joules of its groups, of groups that have ended, `unattributed`
and `idle` add up to what the meter has counted for it since the groups were first looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.meter.attribution import (
    Attributor,
    Count,
    DriveIntervals,
    IdlePolicy,
    Ints,
    Part,
    RestPolicy,
    Shares,
)
from iojoule.meter.cgroups import GroupReader, Hierarchy
from iojoule.meter.counters import Intervals
from iojoule.meter.drives import MeteredDrive
from iojoule.meter.processes import QUALITY, ProcessSplitter
from iojoule.meter.readings import PARTS, Readings
from iojoule.model.evaluate.bands import Floats

UNATTRIBUTED = "unattributed"
ENDED_GROUPS = "ended"
IDLE = "idle"
OTHERS = "other"
"""Groups beyond the most that have a counter of their own."""

NAMED_MAX = 500
"""So many have one unless asked otherwise."""

_NO_GROUPS = frozenset({IDLE, UNATTRIBUTED, ENDED_GROUPS})

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


@dataclass(frozen=True)
class GroupJoules:
    """A counter of one group on one drive.

    Attributes:
        drive: Kernel name.
        group: As in `GroupReading`; `other` for all that have no counter of their own.
        joules: Since the groups were first looked at, without those inherited; never falls.
        cpu_joules: What the host's packages drew for it, likewise.
        quality: As in `GroupReading`.
    """

    drive: str
    group: str
    joules: float
    cpu_joules: float
    quality: str


@dataclass(frozen=True, eq=False)
class GroupReadings(Iterable[GroupReading]):
    """What all groups have drawn up to one moment, in columns; iterated, by drive and group.

    Attributes:
        quality: What the shares rest on.
        pairs: K keys of drives and groups.
        names: Kernel names of the drives, by their key.
        joules: Shape (K, 7), columns `Part`; likewise `watts` and `inherited`.
        named: Shape (K,); whether the pair has a counter of its own.
        left: Joules, and those of the CPU, of ended groups that had none, by the key of the drive.
    """

    quality: str
    pairs: tuple[tuple[str, Hashable], ...]
    names: Mapping[str, str]
    joules: Floats
    watts: Floats
    inherited: Floats
    named: NDArray[np.bool_]
    left: Mapping[str, Floats]

    def __iter__(self) -> Iterator[GroupReading]:
        columns = (self.joules.tolist(), self.watts.tolist(), self.inherited.tolist())
        for (drive, group), joules, watts, inherited in zip(self.pairs, *columns, strict=True):
            yield GroupReading(
                drive=self.names.get(drive, drive),
                group=str(group),
                watts=sum(watts[: Part.CPU]),
                part_watts={name: watts[part] for name, part in _PART_OF.items()},
                joules=sum(joules[: Part.CPU]),
                part_joules={name: joules[part] for name, part in _PART_OF.items()},
                inherited_joules=sum(inherited[: Part.CPU]),
                cpu_joules=joules[Part.CPU],
                inherited_cpu_joules=inherited[Part.CPU],
                quality=self.quality,
            )

    def counters(self) -> Iterator[GroupJoules]:
        """Those with a counter of their own, and the others of each drive as one."""
        own = _of_drive_and_cpu(self.joules - self.inherited)
        others = {drive: joules.copy() for drive, joules in self.left.items()}
        for row in np.flatnonzero(~self.named).tolist():
            drive = self.pairs[row][0]
            others[drive] = others.get(drive, 0.0) + own[row]
        for row in np.flatnonzero(self.named).tolist():
            drive, group = self.pairs[row]
            yield self._counter(drive, str(group), own[row])
        for drive, joules in others.items():
            yield self._counter(drive, OTHERS, joules)

    def _counter(self, drive: str, group: str, joules: Floats) -> GroupJoules:
        name = self.names.get(drive, drive)
        return GroupJoules(name, group, float(joules[0]), float(joules[1]), self.quality)


def _of_drive_and_cpu(joules: Floats) -> Floats:
    """From columns `Part`, shape (..., 7), the drive's joules and the CPU's, shape (..., 2)."""
    return np.stack([joules[..., : Part.CPU].sum(axis=-1), joules[..., Part.CPU]], axis=-1)


class Sums:
    """Joules by drive and group; they only grow, and nothing is lost when a group ends.

    Args:
        quality: What they rest on.
        named_max: So many groups on a drive have a counter of their own, those that come first; it
            is kept until they end.
    """

    def __init__(self, quality: str, named_max: int) -> None:
        self.quality = quality
        self._named_left = named_max
        self._rows: dict[tuple[str, Hashable], int] = {}
        self._pairs: tuple[tuple[str, Hashable], ...] | None = None  # None: they have changed
        self._free: list[int] = []
        self._joules, self._watts, self._inherited = np.zeros((3, 0, len(Part)))
        self._named = np.zeros(0, dtype=bool)
        self._left: dict[str, Floats] = {}

    def row(self, key: tuple[str, Hashable]) -> int:
        """Number of a drive and a group, which it keeps until the group ends."""
        row = self._rows.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[key], self._pairs = row, None
            if row >= len(self._joules):
                more = np.zeros((max(len(self._joules), 16), len(Part)))
                self._joules = np.concatenate([self._joules, more])
                self._watts = np.concatenate([self._watts, more])
                self._inherited = np.concatenate([self._inherited, more])
                self._named = np.concatenate([self._named, np.zeros(len(more), dtype=bool)])
            counts = key[1] not in _NO_GROUPS
            self._named[row] = not counts or self._named_left > 0
            self._named_left -= int(counts and self._named[row])
        return row

    def begin_interval(self) -> None:
        """Nothing is drawn yet in the interval that begins."""
        self._watts[:] = 0.0

    def add(self, rows: Ints | list[int], joules: Floats, seconds: Floats | float) -> None:
        """What groups drew from drives in the interval.

        Args:
            rows: Of K drives and groups (`row`), each once.
            joules: Shape (K, 7), columns `Part`.
            seconds: Length of the interval, shape (K,).
        """
        self._joules[rows] += joules
        self._watts[rows] += joules / np.broadcast_to(seconds, len(rows))[:, None]

    def end(self, groups: Collection[Hashable]) -> None:
        """What ended groups have drawn goes on as one sum, so that their number is bounded."""
        if not groups:
            return
        for key in [key for key in self._rows if key[1] in groups]:
            heir = self.row((key[0], ENDED_GROUPS))
            row = self._rows.pop(key)
            if self._named[row]:
                self._named_left += 1
            else:
                left = self._left.get(key[0], np.zeros(2))
                self._left[key[0]] = left + _of_drive_and_cpu(self._joules[row])
            self._joules[heir] += self._joules[row]
            self._inherited[heir] += self._joules[row]
            self._joules[row] = self._watts[row] = 0.0
            self._free.append(row)
            self._pairs = None

    def readings(self, names: Mapping[str, str]) -> GroupReadings:
        """All of them as they are now; `names` are the kernel's, by drive."""
        if self._pairs is None:
            self._pairs = tuple(self._rows)
        rows = np.fromiter(self._rows.values(), dtype=np.intp, count=len(self._rows))
        columns = (self._joules[rows], self._watts[rows], self._inherited[rows])
        return GroupReadings(
            self.quality, self._pairs, names, *columns, self._named[rows], dict(self._left)
        )


class GroupMeter:
    """Divides the joules of drives among control groups, interval after interval.

    Args:
        hierarchy: From `find_hierarchy`.
        sysfs: Where it is mounted.
        idle: Who pays idle energy.
        rest: Who pays what no group is seen to have caused.
        named_max: See `Sums`.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        sysfs: Path,
        idle: IdlePolicy = IdlePolicy.SEPARATE,
        rest: RestPolicy = RestPolicy.SEPARATE,
        named_max: int = NAMED_MAX,
    ) -> None:
        self.hierarchy = hierarchy
        self.remarks: tuple[str, ...] = hierarchy.remarks
        self._sysfs = sysfs
        self._reader = GroupReader(hierarchy, {})
        self._attributor = Attributor(idle, rest)
        self._drives: tuple[MeteredDrive, ...] = ()
        self._names: dict[str, str] = {}
        self._sums = Sums("io.stat" if hierarchy.recursive else "blkio", named_max)
        self._rows = np.empty(0, dtype=np.intp)  # of the sums, by pair of the attribution; or -1
        self._fixed: dict[str, tuple[tuple[str, ...], list[int]]] = {}

    def close(self) -> None:
        """Close the files of all groups."""
        self._reader.close()

    def begin(self, drives: Sequence[MeteredDrive]) -> None:
        """Look at the groups for the first time."""
        self._follow(drives)
        self._reader.read()

    def step(self, intervals: Intervals, readings: Readings, cpu: Mapping[str, float]) -> None:
        """Account for one interval of the meter; read at once after the drives' counters.

        Args:
            intervals: What the drives did.
            readings: Of the meter.
            cpu: Joules that the CPU drew for each drive in the interval, by its key, where known.
        """
        self._follow(readings.drive)
        submitted = self._reader.read()
        self.remarks = submitted.remarks
        self._sums.begin_interval()
        metered = drive_intervals(intervals, readings, cpu)
        if metered.drives:
            by_drive = tuple(self._names[key] for key in metered.drives)
            self._add(metered, self._attributor.step(metered, submitted.submitted(by_drive)))
        self._rows[self._attributor.end(submitted.ended)] = -1
        self._sums.end(set(submitted.ended))

    def readings(self) -> GroupReadings:
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
        missing = max(shares.rows, default=-1) + 1 - len(self._rows)
        self._rows = np.append(self._rows, np.full(max(missing, 0), -1, dtype=np.intp))
        rows = self._rows[shares.rows]
        for new in np.flatnonzero(rows < 0):
            rows[new] = self._sums.row((drives[shares.drive[new]], shares.groups[new]))
        self._rows[shares.rows] = rows
        self._sums.add(rows, shares.joules, intervals.seconds[shares.drive])
        idle = np.zeros_like(shares.unattributed)
        idle[:, Part.IDLE] = shares.idle
        for name, joules in (
            (UNATTRIBUTED, shares.unattributed),
            (ENDED_GROUPS, shares.ended),
            (IDLE, idle),
        ):
            known = self._fixed.get(name)
            if known is None or known[0] != drives:
                known = drives, [self._sums.row((drive, name)) for drive in drives]
                self._fixed[name] = known
            self._sums.add(known[1], joules, intervals.seconds)


class ProcessMeter:
    """Divides the joules of all drives among processes, where control groups count nothing.

    An estimate: each process pays for the same share of every drive.

    Args:
        proc: Where procfs is mounted.
        named_max: See `Sums`.
    """

    def __init__(self, proc: Path, named_max: int = NAMED_MAX) -> None:
        self.remarks: tuple[str, ...] = ()
        self._proc = proc
        self._splitter = ProcessSplitter(proc)
        self._sums = Sums(QUALITY, named_max)
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

    def step(self, intervals: Intervals, readings: Readings, cpu: Mapping[str, float]) -> None:
        """As `GroupMeter.step`."""
        self._names.update({drive.key: drive.name for drive in readings.drive})
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
                [self._sums.row(pair) for pair in (*keys, (key, IDLE), (key, UNATTRIBUTED))],
                np.vstack([own, idle, rest]),
                intervals.seconds,
            )
        self._sums.end(self._running.difference(names))
        self._running = set(names)

    def readings(self) -> GroupReadings:
        """All sums, by drive and process."""
        return self._sums.readings(self._names)

    def _pids(self) -> list[int]:
        return [int(path.name) for path in self._proc.iterdir() if path.name.isdigit()]


def drive_intervals(
    intervals: Intervals, readings: Readings, cpu: Mapping[str, float]
) -> DriveIntervals:
    """What the attribution needs of the drives that have an interval."""
    place = {drive.key: row for row, drive in enumerate(intervals.drives)}
    known = [
        row
        for row, (drive, seconds) in enumerate(
            zip(readings.drive, readings.seconds.tolist(), strict=True)
        )
        if seconds > 0 and drive.key in place
    ]
    drives = tuple(readings.drive[row].key for row in known)
    at = [place[key] for key in drives]
    counts, weights, load, cores = np.zeros((4, len(known), len(Count)))
    joules = np.zeros((len(known), len(Part)))
    counts[:, : Count.FLUSHES] = intervals.counts[at]
    counts[:, Count.FLUSHES] = intervals.flushes[at]
    weights[:, : Count.FLUSHES] = readings.command_joules[known]
    load[:, : Count.FLUSHES] = readings.command_load[known]
    cores[:, : Count.FLUSHES] = readings.command_core_seconds[known]
    seconds = readings.seconds[known]
    joules[:, [_PART_OF[name] for name in PARTS]] = readings.part_watts[known]
    joules *= seconds[:, None]
    joules[:, Part.CPU] = [cpu.get(key, 0.0) for key in drives]
    for columns in (slice(Count.READS, Count.WRITES), slice(Count.WRITES, Count.FLUSHES)):
        # a law in which commands and bytes cost nothing: by their number
        free = (weights * counts)[:, columns].sum(axis=1) <= 0
        weights[free, columns.start] = 1.0
    return DriveIntervals(
        drives=drives,
        seconds=seconds,
        joules=joules,
        counts=counts,
        weights=weights,
        merged=np.stack([intervals.reads_merged[at], intervals.writes_merged[at]], axis=1),
        load=load,
        core_seconds=cores,
    )
