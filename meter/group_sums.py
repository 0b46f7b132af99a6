"""Joules of groups on drives since they were first looked at, and what is told of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.meter.attribution import Ints, Part
from iojoule.model.evaluate.bands import Floats

UNATTRIBUTED = "unattributed"
ENDED_GROUPS = "ended"
IDLE = "idle"
OTHERS = "other"
"""Groups beyond the most that have a counter of their own."""

NAMED_MAX = 500
"""So many have one unless asked otherwise."""

_NO_GROUPS = frozenset({IDLE, UNATTRIBUTED, ENDED_GROUPS, OTHERS})

PART_OF = {
    "idle": Part.IDLE,
    "awake": Part.AWAKE,
    "read": Part.READ,
    "write": Part.WRITE,
    "background": Part.BACKGROUND,
}
"""Columns of the parts of a drive's power."""


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
        joules: Shape (K, 7), columns `Part`, without those inherited; likewise `watts` and
            `inherited`.
        named: Shape (K,); whether the pair has a counter of its own. That of `OTHERS`, in which all
            those of a drive that have none count once more, has one.
    """

    quality: str
    pairs: tuple[tuple[str, Hashable], ...]
    names: Mapping[str, str]
    joules: Floats
    watts: Floats
    inherited: Floats
    named: NDArray[np.bool_]

    def __iter__(self) -> Iterator[GroupReading]:
        whole = self.joules + self.inherited
        columns = (whole.tolist(), self.watts.tolist(), self.inherited.tolist())
        for (drive, group), joules, watts, inherited in zip(self.pairs, *columns, strict=True):
            if group == OTHERS:
                continue
            yield GroupReading(
                drive=self.names[drive],
                group=str(group),
                watts=sum(watts[: Part.CPU]),
                part_watts={name: watts[part] for name, part in PART_OF.items()},
                joules=sum(joules[: Part.CPU]),
                part_joules={name: joules[part] for name, part in PART_OF.items()},
                inherited_joules=sum(inherited[: Part.CPU]),
                cpu_joules=joules[Part.CPU],
                inherited_cpu_joules=inherited[Part.CPU],
                quality=self.quality,
            )

    def counters(self) -> Iterator[GroupJoules]:
        """Those with a counter of their own, and the others of each drive as one."""
        of_drive = self.joules[:, : Part.CPU].sum(axis=1).tolist()
        of_cpu = self.joules[:, Part.CPU].tolist()
        for row in np.flatnonzero(self.named).tolist():
            drive, group = self.pairs[row]
            yield GroupJoules(
                self.names[drive], str(group), of_drive[row], of_cpu[row], self.quality
            )


class Sums:
    """Joules by drive and group; they only grow, and nothing is lost when a group ends.

    Args:
        quality: What they rest on.
        named_max: So many pairs of drive and group have a counter of their own, those that come
            first; it is kept until the group ends.
    """

    def __init__(self, quality: str, named_max: int) -> None:
        self.quality = quality
        self._named_left = named_max
        self._names: Mapping[str, str] = {}
        self._rows: dict[tuple[str, Hashable], int] = {}
        self._told: dict[tuple[str, Hashable], int] | None = None  # None: they have changed
        self._free: list[int] = []
        self._joules, self._watts, self._inherited = np.zeros((3, 0, len(Part)))
        self._named = np.zeros(0, dtype=bool)
        self._others = np.zeros(0, dtype=np.intp)  # of a row without a counter, that of its drive's

    def follow(self, names: Mapping[str, str]) -> None:
        """Of the drives that are there, the kernel's names by key; nothing is told of others.

        A drive that comes back goes on with its sums, one that took its name has its own.
        """
        if names != self._names:
            self._names, self._told = names, None

    def row(self, key: tuple[str, Hashable]) -> int:
        """Number of a drive and a group, which it keeps until the group ends."""
        row = self._rows.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[key], self._told = row, None
            if row >= len(self._joules):
                more = np.zeros((max(len(self._joules), 16), len(Part)))
                self._joules = np.concatenate([self._joules, more])
                self._watts = np.concatenate([self._watts, more])
                self._inherited = np.concatenate([self._inherited, more])
                self._named = np.concatenate([self._named, np.zeros(len(more), dtype=bool)])
                self._others = np.concatenate([self._others, np.zeros(len(more), dtype=np.intp)])
            counts = key[1] not in _NO_GROUPS
            self._named[row] = named = not counts or self._named_left > 0
            self._named_left -= int(counts and named)
            if not named:
                others = self.row((key[0], OTHERS))
                self._others[row] = others
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
        rows = np.asarray(rows, dtype=np.intp)
        self._joules[rows] += joules
        unnamed = ~self._named[rows]
        np.add.at(self._joules, self._others[rows[unnamed]], joules[unnamed])
        self._watts[rows] += joules / np.broadcast_to(seconds, len(rows))[:, None]

    def end(self, groups: Collection[Hashable]) -> None:
        """What ended groups have drawn goes on as one sum, so that their number is bounded."""
        if not groups:
            return
        for key in [key for key in self._rows if key[1] in groups]:
            heir = self.row((key[0], ENDED_GROUPS))
            row = self._rows.pop(key)
            self._named_left += int(self._named[row])
            self._inherited[heir] += self._joules[row]
            self._joules[row] = self._watts[row] = 0.0
            self._free.append(row)
            self._told = None

    def readings(self) -> GroupReadings:
        """All of them as they are now."""
        if self._told is None:
            self._told = {key: row for key, row in self._rows.items() if key[0] in self._names}
        rows = np.fromiter(self._told.values(), dtype=np.intp, count=len(self._told))
        columns = (self._joules[rows], self._watts[rows], self._inherited[rows])
        return GroupReadings(
            self.quality, tuple(self._told), self._names, *columns, self._named[rows]
        )
