"""Whose joules: follows groups of processes of a host beside its drives, and keeps their sums.

For every drive and at any time, the joules of its groups, of groups that have ended, `unattributed`
and `idle` add up to what the meter has counted for it since the groups were first looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
from iojoule.meter.group_sums import (
    ENDED_GROUPS,
    IDLE,
    NAMED_MAX,
    PART_OF,
    UNATTRIBUTED,
    GroupReadings,
    Sums,
)
from iojoule.meter.processes import QUALITY, ProcessSplitter
from iojoule.meter.readings import PARTS, Readings


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
        self._names: dict[str, str] = {}  # of present drives, by key
        self._sums = Sums("io.stat" if hierarchy.recursive else "blkio", named_max)
        self._rows = np.empty(0, dtype=np.intp)  # of the sums, by pair of the attribution; or -1

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
        freed = [row for row in self._attributor.end(submitted.ended) if row < len(self._rows)]
        self._rows[freed] = -1
        self._sums.end(set(submitted.ended))

    def readings(self) -> GroupReadings:
        """All sums, by drive and group."""
        return self._sums.readings()

    def _follow(self, drives: Sequence[MeteredDrive]) -> None:
        """Drives may have come or gone; all block devices of one count for it."""
        present = tuple(drives)
        if present == self._drives:
            return
        self._drives = present
        self._names = {drive.key: drive.name for drive in present}
        self._sums.follow(self._names)
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
        missing = int(shares.rows.max(initial=-1)) + 1 - len(self._rows)
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
            own = [self._sums.row((drive, name)) for drive in drives]
            self._sums.add(own, joules, intervals.seconds)


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
        self._running: set[str] = set()

    def close(self) -> None:
        """Nothing is kept open."""

    def begin(self, drives: Sequence[MeteredDrive]) -> None:
        """Look at the processes for the first time."""
        self._sums.follow({drive.key: drive.name for drive in drives})
        nothing = np.zeros(len(Part))
        self._splitter.step(
            self._pids(), seconds=1.0, joules=nothing, read_bytes=0.0, write_bytes=0.0
        )

    def step(self, intervals: Intervals, readings: Readings, cpu: Mapping[str, float]) -> None:
        """As `GroupMeter.step`."""
        self._sums.follow({drive.key: drive.name for drive in readings.drive})
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
        return self._sums.readings()

    def _pids(self) -> list[int]:
        return [int(path.name) for path in self._proc.iterdir() if path.name.isdigit()]


def drive_intervals(
    intervals: Intervals, readings: Readings, cpu: Mapping[str, float]
) -> DriveIntervals:
    """What the attribution needs of the drives that have an interval."""
    drives = intervals.drives if intervals.seconds > 0 else ()
    known, at = readings.rows(drives), np.arange(len(drives))
    keys = tuple(drive.key for drive in drives)
    counts, weights, load, cores = np.zeros((4, len(known), len(Count)))
    joules = np.zeros((len(known), len(Part)))
    counts[:, : Count.FLUSHES] = intervals.counts[at]
    counts[:, Count.FLUSHES] = intervals.flushes[at]
    weights[:, : Count.FLUSHES] = readings.command_joules[known]
    load[:, : Count.FLUSHES] = readings.command_load[known]
    cores[:, : Count.FLUSHES] = readings.command_core_seconds[known]
    seconds = readings.seconds[known]
    joules[:, [PART_OF[name] for name in PARTS]] = readings.part_watts[known]
    joules *= seconds[:, None]
    joules[:, Part.CPU] = [cpu.get(key, 0.0) for key in keys]
    for columns in (slice(Count.READS, Count.WRITES), slice(Count.WRITES, Count.FLUSHES)):
        # a law in which commands and bytes cost nothing: by their number
        free = (weights * counts)[:, columns].sum(axis=1) <= 0
        weights[free, columns.start] = 1.0
    return DriveIntervals(
        drives=keys,
        seconds=seconds,
        joules=joules,
        counts=counts,
        weights=weights,
        merged=np.stack([intervals.reads_merged[at], intervals.writes_merged[at]], axis=1),
        load=load,
        core_seconds=cores,
    )
