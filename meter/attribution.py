"""Whose joules they are: divides the energy of drives in an interval among groups of processes.

The rule, by part of a drive's energy:

* Read and write: in proportion to `joules per command x commands + joules per byte x bytes`, by the
  drive's law of power. Commands are scaled to those that the drive executed, because a group's are
  counted before merging and the drive's after.
* Awake: what keeps the drive above its rest is shared by all who do. Requests that come at random
  leave it at rest with probability exp(-load), so this is a game of value 1 - exp(-load), of which
  a group pays its Shapley value (`saturating_fractions`).
* Flush: by flushes, where those of a group are known.
* Background (folding, garbage collection): by the bytes each group wrote, with a memory that
  decays, so that earlier writers pay and a reader that is active now does not.
* Idle: not distributed by default; `IdlePolicy` offers two ways.
* CPU: what the host's packages drew for the drive's commands, beside the drive's own joules, by
  core time.
* What the drive executed beyond the sum of the groups (a journal, swap, passthrough) is
  `unattributed`. It is distributed only on request (`RestPolicy`).

Shares, `unattributed`, `ended` and `idle` sum to the drive's joules by construction, and those of
the CPU to its own; none is negative; a group without I/O pays no read, write or flush energy; equal
I/O pays equally.

With this it is the Shapley value of the law itself, whatever the groups: of what is linear in
commands and bytes the proportional share is one, and Shapley values add up. A proportional share of
the awake energy charges small groups too little: three groups at 90:9:1 and a load of 1.67 would
be off by +1.8, -13.7 and -15.1 %; the largest deviation of any group among 2,000 random sets of 2
to 8 groups is 0.5 % at a load of 0.25, 2 % at 0.5, 7.5 % at 1 and 24 % at 2.
tests/meter/test_shapley.py computes these figures.

Against the joules of a simulated drive: tests/end_to_end/test_fair_shares.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class Count(IntEnum):
    """Columns of counts and of weights; a weight is in joules per unit of its count."""

    READS = 0
    READ_BYTES = 1
    WRITES = 2
    WRITE_BYTES = 3
    FLUSHES = 4


class Part(IntEnum):
    """Columns of joules; all but the last are the drive's."""

    IDLE = 0
    READ = 1
    WRITE = 2
    FLUSH = 3
    BACKGROUND = 4
    AWAKE = 5
    CPU = 6


class IdlePolicy(Enum):
    """Who pays the joules that a drive draws at rest."""

    SEPARATE = "separate"
    """No group: idle is a series of its own."""
    BY_USE = "by_use"
    """In proportion to other energy of the interval; a drive without any keeps its own."""
    PROVISIONED = "provisioned"
    """In given proportions, such as bytes of capacity: groups without I/O pay, too."""


class RestPolicy(Enum):
    """Who pays write and flush energy that no group is seen to have caused."""

    SEPARATE = "separate"
    """No group: it is `unattributed`."""
    BY_WRITES = "by_writes"
    """Groups in proportion to their write commands, as an estimate of who caused a journal."""
    BY_FLUSHES = "by_flushes"
    """Groups in proportion to their flushes, where those are known."""


class _Ended:
    """The key of what groups leave behind; not equal to any group."""

    def __repr__(self) -> str:
        return "ENDED"


ENDED = _Ended()
"""Group of I/O that ended groups caused: pass it for counts that are seen only in their parent."""

MEMORY_SECONDS = 300.0
"""Decay time of bytes written, where a profile states none: drives fold a cache within minutes."""
CARRY_SECONDS = 10.0
"""Decay time of submitted I/O that a drive did not complete in the interval after the next."""

_ROUNDING = 1e-12
"""Relative; a sum of 10,000 shares of float64 is exact to about 1e-13."""
LOAD_MOST = 50.0
"""Beyond it a drive never rests."""
_COMMANDS = (Count.READS, Count.READ_BYTES, Count.WRITES, Count.WRITE_BYTES)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)
_DIRECTIONS = (
    (Part.READ, Count.READS, Count.READ_BYTES, 0),
    (Part.WRITE, Count.WRITES, Count.WRITE_BYTES, 1),
)


@dataclass(frozen=True)
class DriveIntervals:
    """One interval of D drives.

    Attributes:
        drives: D identifiers (wwid or serial).
        seconds: Shape (D,).
        joules: Shape (D, 7), columns `Part`. NaN where the drive's power is unknown: its shares
            are NaN, too.
        counts: Shape (D, 5), columns `Count`, as the drive executed them; writes without flushes.
        weights: Shape (D, 5), columns `Count`; joules per command, byte and flush.
        merged: Shape (D, 2), reads and writes that the block layer merged into others; None where
            it is unknown.
        memory_seconds: Shape (D,), decay time of bytes written until background work follows.
        load: Shape (D, 5), columns `Count`; how far one of each keeps the drive awake, None where
            no energy is spent on that.
        core_seconds: Shape (D, 5), columns `Count`; core time of the host that one of each takes,
            None where the CPU's joules are unknown.
    """

    drives: tuple[str, ...]
    seconds: Floats
    joules: Floats
    counts: Floats
    weights: Floats
    merged: Floats | None = None
    memory_seconds: Floats | None = None
    load: Floats | None = None
    core_seconds: Floats | None = None

    def __post_init__(self) -> None:
        drives = len(self.drives)
        shapes = {
            "seconds": (drives,),
            "joules": (drives, len(Part)),
            "counts": (drives, len(Count)),
            "weights": (drives, len(Count)),
            "merged": (drives, 2),
            "memory_seconds": (drives,),
            "load": (drives, len(Count)),
            "core_seconds": (drives, len(Count)),
        }
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is not None:
                _require(name, values, shape, unknown=name == "joules")
        if len(set(self.drives)) != drives:
            raise InputError("drives: an identifier occurs twice", field="drives")


@dataclass(frozen=True)
class GroupCounts:
    """I/O that groups submitted in the interval; a group without any may be left out.

    Attributes:
        drive: Shape (R,), index of the drive in `DriveIntervals.drives`.
        groups: R keys; any hashable value, or `ENDED`.
        counts: Shape (R, 5), columns `Count`, before merging. Flushes are 0 where unknown.
    """

    drive: Ints
    groups: Sequence[Hashable]
    counts: Floats

    def __post_init__(self) -> None:
        _require("drive", self.drive, (len(self.groups),))
        _require("counts", self.counts, (len(self.groups), len(Count)))


@dataclass(frozen=True)
class Shares:
    """Joules of the interval by group; what is not zero.

    Attributes:
        rows: Shape (K,); numbers of the pairs of drive and group, each of which keeps its own until
            its group ends.
        drive: Shape (K,), index of the drive.
        groups: K keys.
        joules: Shape (K, 7), columns `Part`.
        unattributed: Shape (D, 7).
        ended: Shape (D, 7); caused by groups that have ended.
        idle: Shape (D,); idle joules that were not distributed.
    """

    rows: Ints
    drive: Ints
    groups: tuple[Hashable, ...]
    joules: Floats
    unattributed: Floats
    ended: Floats
    idle: Floats


def completed_counts(
    intervals: DriveIntervals, drive: Ints, carried: Floats, submitted: Floats
) -> tuple[Floats, Floats]:
    """The part of submitted I/O that the drives completed, and what is carried.

    A group's counters rise at submission, a drive's at completion: what exceeds the drive's bytes
    is in flight and belongs to the next interval. Earlier submissions complete first; what the next
    interval does not complete either decays, so that an error of counting is not carried forever.

    Args:
        intervals: D drives.
        drive: Shape (R,).
        carried: Shape (R, 5), from the interval before.
        submitted: Shape (R, 5).

    Returns:
        Completed counts and counts to carry, each of shape (R, 5).
    """
    drives = len(intervals.drives)
    completed, rest = np.empty_like(submitted), np.empty_like(submitted)
    decay = np.exp(-intervals.seconds / CARRY_SECONDS)[drive]
    for columns, measure in (
        ((Count.READS, Count.READ_BYTES), Count.READ_BYTES),
        ((Count.WRITES, Count.WRITE_BYTES), Count.WRITE_BYTES),
        ((Count.FLUSHES,), Count.FLUSHES),
    ):
        room = intervals.counts[:, measure]
        earlier = _per_drive(drive, carried[:, measure], drives)
        now = _per_drive(drive, submitted[:, measure], drives)
        of_earlier = _fraction(room, earlier)[drive]
        of_now = _fraction(np.maximum(room - earlier, 0.0), now)[drive]
        for column in columns:
            completed[:, column] = carried[:, column] * of_earlier + submitted[:, column] * of_now
            rest[:, column] = carried[:, column] * (1 - of_earlier) * decay
            rest[:, column] += submitted[:, column] * (1 - of_now)
    return completed, rest


def executed_counts(intervals: DriveIntervals, drive: Ints, completed: Floats) -> Floats:
    """Counts of groups in the drive's terms: after merging, and never above the drive's own.

    Where the number of merges is known, commands of all groups shrink by the drive's ratio of
    executed to submitted commands. Who merged is not known: among groups of which one merges and
    others do not, the one that merges is charged too many commands. Where it is unknown, commands
    shrink only if they exceed the drive's, then to the groups' share of its bytes.

    Returns:
        Shape (R, 5).
    """
    drives = len(intervals.drives)
    executed = completed.copy()
    for _, commands, volume, direction in _DIRECTIONS:
        own, own_bytes = intervals.counts[:, commands], intervals.counts[:, volume]
        total = _per_drive(drive, completed[:, commands], drives)
        if intervals.merged is not None:
            merged = intervals.merged[:, direction]
            ratio = np.where(own + merged > 0, own / np.maximum(own + merged, 1.0), 1.0)
            ratio = np.minimum(ratio, _fraction(own, total))
        else:
            group_bytes = _per_drive(drive, completed[:, volume], drives)
            target = np.where(own_bytes > 0, own * _fraction(group_bytes, own_bytes), own)
            ratio = np.where(total > own, _fraction(target, total), 1.0)
        executed[:, commands] *= ratio[drive]
    return executed


def dynamic_shares(
    intervals: DriveIntervals, drive: Ints, executed: Floats
) -> tuple[Floats, Floats]:
    """Read, write, flush, awake and CPU joules of R rows and of no row.

    Args:
        intervals: D drives.
        drive: Shape (R,).
        executed: Shape (R, 5), from `executed_counts`.

    Returns:
        Shares of shape (R, 7) and the rest of shape (D, 7); columns that it does not divide are 0.
    """
    drives = len(intervals.drives)
    shares, rest = np.zeros((len(drive), len(Part))), np.zeros((drives, len(Part)))
    cores = intervals.core_seconds
    for part, of_each, columns in (
        (Part.READ, intervals.weights, [Count.READS, Count.READ_BYTES]),
        (Part.WRITE, intervals.weights, [Count.WRITES, Count.WRITE_BYTES]),
        # one kind of command: the joules of each are equal
        (Part.FLUSH, np.ones_like(intervals.weights), [Count.FLUSHES]),
        (Part.CPU, np.zeros_like(intervals.weights) if cores is None else cores, [*_COMMANDS]),
    ):
        weights = of_each[:, columns]
        whole = (weights * intervals.counts[:, columns]).sum(axis=1)
        size = (weights[drive] * executed[:, columns]).sum(axis=1)
        shares[:, part], rest[:, part] = _divide(intervals.joules[:, part], drive, size, whole)
    joules = intervals.joules[:, Part.AWAKE]
    size, whole = _awake(intervals, drive, executed)
    shares[:, Part.AWAKE], rest[:, Part.AWAKE] = _divide(joules, drive, size, whole)
    return shares, rest


def _awake(intervals: DriveIntervals, drive: Ints, executed: Floats) -> tuple[Floats, Floats]:
    """Fractions (R,) of the energy that keeps each drive awake, of a whole (D,)."""
    drives = len(intervals.drives)
    if intervals.load is None:
        return np.zeros(len(drive)), np.zeros(drives)
    whole = (intervals.load * intervals.counts).sum(axis=1)
    scale = _fraction(np.minimum(whole, LOAD_MOST), whole)
    loads = (intervals.load[drive] * executed).sum(axis=1) * scale[drive]
    others = np.maximum(whole * scale - _per_drive(drive, loads, drives), 0.0)
    others[others <= _ROUNDING * whole] = 0.0
    fractions, _ = saturating_fractions(drive, loads, others)
    return fractions, np.where(whole > 0, 1.0, 0.0)


def saturating_fractions(
    drive: NDArray[np.intp], loads: Floats, others: Floats
) -> tuple[Floats, Floats]:
    """Shapley values as fractions of each drive's joules, where these are 1 - exp(-load).

    The multilinear extension (Owen 1972) is a product for this value: a coalition that holds each
    other group with probability t is worth 1 - prod(1 - t + t exp(-x_j)), so a value is one
    integral over t, here by Gauss-Legendre quadrature.

    Args:
        drive: Shape (R,), index of the drive.
        loads: Shape (R,), in scales of the drive.
        others: Shape (D,), load of one more group on each drive.

    Returns:
        Fractions of shape (R,) and, for the others, (D,); 0 on a drive without load.
    """
    drives = len(others)
    index = np.concatenate([drive, np.arange(drives)])
    falls = -np.expm1(-np.concatenate([loads, others]))
    values = np.zeros(len(index))
    for node, weight in zip((_NODES + 1) / 2, _NODE_WEIGHTS / 2, strict=True):
        logarithms = np.log1p(-node * falls)
        of_drive = np.bincount(index, logarithms, drives)
        values += weight * np.exp(of_drive[index] - logarithms)
    values *= falls
    whole = np.bincount(index, values, drives)[index]
    fractions = np.divide(values, whole, where=whole > 0, out=np.zeros_like(values))
    return fractions[: len(drive)], fractions[len(drive) :]


class Attributor:
    """Divides interval after interval; holds what is in flight and who wrote how much before.

    Args:
        idle: Who pays idle energy.
        rest: Who pays write and flush energy beyond the sum of the groups.
    """

    def __init__(
        self, idle: IdlePolicy = IdlePolicy.SEPARATE, rest: RestPolicy = RestPolicy.SEPARATE
    ) -> None:
        self.idle = idle
        self.rest = rest
        self._drives: dict[str, int] = {}
        self._rows: dict[tuple[int, Hashable], int] = {}
        self._groups: list[Hashable] = []
        self._free: list[int] = []
        self._new: dict[int, int] = {}
        self._drive_of = np.empty(0, dtype=np.intp)  # -1 where a row is free
        self._of_ended = np.empty(0, dtype=bool)
        self._carried = np.empty((0, len(Count)))
        self._written = np.empty(0)
        self._written_by_rest = np.empty(0)

    def step(
        self,
        intervals: DriveIntervals,
        submitted: GroupCounts,
        provisioned: GroupCounts | None = None,
    ) -> Shares:
        """Divide the joules of one interval.

        Args:
            intervals: The drives; those of earlier intervals that are missing keep their state.
            submitted: What groups submitted to them.
            provisioned: For `IdlePolicy.PROVISIONED`: column READ_BYTES holds the proportions.

        Raises:
            InputError: The policy lacks its proportions.
        """
        if self.idle is IdlePolicy.PROVISIONED and provisioned is None:
            raise InputError("idle policy 'provisioned' needs the groups' proportions")
        for identifier in intervals.drives:
            self._drives.setdefault(identifier, len(self._drives))
        counts = self._by_row(intervals.drives, submitted)
        claims = np.zeros(len(self._groups))
        if self.idle is IdlePolicy.PROVISIONED and provisioned is not None:
            claims = self._by_row(intervals.drives, provisioned)[:, Count.READ_BYTES]
            counts = _padded(counts, len(claims))
        numbers = [self._drives[identifier] for identifier in intervals.drives]
        local = np.full(len(self._drives) + 1, -1, dtype=np.intp)  # the last is that of free rows
        local[numbers] = np.arange(len(numbers))
        rows = np.flatnonzero(local[self._drive_of] >= 0)
        drive = local[self._drive_of[rows]]

        at_work = np.flatnonzero(((counts[rows] > 0) | (self._carried[rows] > 0)).any(axis=1))
        own, own_drive = rows[at_work], drive[at_work]
        completed, self._carried[own] = completed_counts(
            intervals, own_drive, self._carried[own], counts[own]
        )
        executed, shares = np.zeros((len(rows), len(Count))), np.zeros((len(rows), len(Part)))
        executed[at_work] = executed_counts(intervals, own_drive, completed)
        shares[at_work], rest = dynamic_shares(intervals, own_drive, executed[at_work])
        self._charge_rest(drive, executed, shares, rest)
        self._charge_background(
            intervals, np.array(numbers, dtype=np.intp), rows, drive, executed, shares, rest
        )
        idle = self._charge_idle(intervals, drive, claims[rows], shares, rest)
        return self._shares(rows, drive, shares, rest, idle)

    def end(self, groups: Iterable[Hashable]) -> list[int]:
        """Groups have ended: what they have in flight and later background work go to `ENDED`.

        Pass the counts of a group's last interval to `step` first. A key that is passed to `step`
        again starts anew.

        Returns:
            Numbers of the pairs that are free again (`Shares.rows`).
        """
        gone = set(groups)
        if not gone:
            return []
        leaving = [(pair, row) for pair, row in self._rows.items() if pair[1] in gone]
        heirs = [self._row(drive, ENDED) for (drive, _), _ in leaving]
        self._grow()
        rows = [row for _, row in leaving]
        np.add.at(self._carried, heirs, self._carried[rows])
        np.add.at(self._written, heirs, self._written[rows])
        self._carried[rows] = 0.0
        self._written[rows] = 0.0
        self._drive_of[rows] = -1
        for pair, row in leaving:
            del self._rows[pair]
            self._groups[row] = None
        self._free += rows
        return rows

    def _by_row(self, drives: tuple[str, ...], counts: GroupCounts) -> Floats:
        """Counts by row of the table, shape (rows, 5); new pairs of drive and group get a row."""
        numbers = [self._drives[identifier] for identifier in drives]
        rows = [
            self._row(numbers[index], group)
            for index, group in zip(counts.drive.tolist(), counts.groups, strict=True)
        ]
        self._grow()
        table = np.zeros((len(self._groups), len(Count)))
        np.add.at(table, rows, counts.counts)
        return table

    def _row(self, drive: int, group: Hashable) -> int:
        row = self._rows.get((drive, group))
        if row is None:
            row = self._free.pop() if self._free else len(self._groups)
            self._rows[drive, group] = row
            if row == len(self._groups):
                self._groups.append(group)
            else:
                self._groups[row] = group
            self._new[row] = drive
        return row

    def _grow(self) -> None:
        """Extend the columns to the pairs that are new."""
        rows, known = len(self._groups), len(self._drive_of)
        self._drive_of = np.append(self._drive_of, np.full(rows - known, -1, dtype=np.intp))
        self._of_ended = np.append(self._of_ended, np.zeros(rows - known, dtype=bool))
        new = list(self._new)
        self._drive_of[new] = list(self._new.values())
        self._of_ended[new] = [self._groups[row] is ENDED for row in new]
        self._new = {}
        self._carried = _padded(self._carried, rows)
        self._written = _padded(self._written, rows)
        self._written_by_rest = _padded(self._written_by_rest, len(self._drives))

    def _charge_rest(self, drive: Ints, executed: Floats, shares: Floats, rest: Floats) -> None:
        """Move unattributed write and flush joules to groups, where the policy says so."""
        if self.rest is RestPolicy.SEPARATE:
            return
        by = Count.WRITES if self.rest is RestPolicy.BY_WRITES else Count.FLUSHES
        size = executed[:, by]
        whole = _per_drive(drive, size, len(rest))
        for part in (Part.WRITE, Part.FLUSH):
            added, rest[:, part] = _divide(rest[:, part], drive, size, whole)
            shares[:, part] += added

    def _charge_background(
        self,
        intervals: DriveIntervals,
        numbers: Ints,
        rows: Ints,
        drive: Ints,
        executed: Floats,
        shares: Floats,
        rest: Floats,
    ) -> None:
        """Divide background joules by bytes written, a memory that decays; includes this interval.

        Bytes that no group wrote count for `unattributed`.
        """
        memory = intervals.memory_seconds
        if memory is None:
            memory = np.full(len(numbers), MEMORY_SECONDS)
        keep = np.exp(-intervals.seconds / np.maximum(memory, np.finfo(float).tiny))
        written = executed[:, Count.WRITE_BYTES]
        others = intervals.counts[:, Count.WRITE_BYTES]
        others = np.maximum(others - _per_drive(drive, written, len(numbers)), 0.0)
        # rounding of a sum of shares is no writer
        others[others <= 1e-12 * intervals.counts[:, Count.WRITE_BYTES]] = 0.0
        self._written[rows] = self._written[rows] * keep[drive] + written
        self._written_by_rest[numbers] = self._written_by_rest[numbers] * keep + others
        size = self._written[rows]
        whole = _per_drive(drive, size, len(numbers)) + self._written_by_rest[numbers]
        joules = intervals.joules[:, Part.BACKGROUND]
        shares[:, Part.BACKGROUND], rest[:, Part.BACKGROUND] = _divide(joules, drive, size, whole)

    def _charge_idle(
        self,
        intervals: DriveIntervals,
        drive: Ints,
        claims: Floats,
        shares: Floats,
        rest: Floats,
    ) -> Floats:
        """Divide idle joules by the policy; returns what is not distributed, shape (D,)."""
        joules = intervals.joules[:, Part.IDLE]
        if self.idle is IdlePolicy.SEPARATE:
            return joules.copy()
        if self.idle is IdlePolicy.PROVISIONED:
            whole = _per_drive(drive, claims, len(joules))
            shares[:, Part.IDLE], idle = _divide(joules, drive, claims, whole)
            return idle
        size, others = shares[:, : Part.CPU].sum(axis=1), rest[:, : Part.CPU].sum(axis=1)
        whole = _per_drive(drive, size, len(joules)) + others
        shares[:, Part.IDLE], idle = _divide(joules, drive, size, whole)
        used = whole > 0
        rest[:, Part.IDLE] = np.where(used, idle, 0.0)
        return np.where(used, 0.0, idle)

    def _shares(
        self, rows: Ints, drive: Ints, shares: Floats, rest: Floats, idle: Floats
    ) -> Shares:
        charged = np.flatnonzero((shares != 0).any(axis=1))
        of_ended = self._of_ended[rows[charged]]
        ended = np.zeros_like(rest)
        ended[drive[charged[of_ended]]] = shares[charged[of_ended]]
        live = charged[~of_ended]
        groups = tuple(map(self._groups.__getitem__, rows[live].tolist()))
        return Shares(rows[live], drive[live], groups, shares[live], rest, ended, idle)


def _divide(joules: Floats, drive: Ints, size: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Shares of joules (D,) in proportion to sizes (R,) of a whole (D,), and what remains (D,).

    The remainder is computed from the joules, so that both sum to them; what rounding leaves of a
    whole that is divided completely is 0 and not negative.
    """
    total = _per_drive(drive, size, len(joules))
    whole = np.maximum(whole, total)  # sizes may exceed it by rounding
    shares = joules[drive] * _fraction(size, whole[drive], 0.0)
    rest = joules - _per_drive(drive, shares, len(joules))
    rest = np.where(rest <= _ROUNDING * joules, 0.0, rest)
    return shares, rest


def _per_drive(drive: Ints, values: Floats, drives: int) -> Floats:
    """Sums of rows by drive, shape (D,); without rows numpy would return integers."""
    return np.bincount(drive, values, drives).astype(np.float64, copy=False)


def _fraction(part: Floats, whole: Floats, of_nothing: float = 1.0) -> Floats:
    """min(1, part / whole), and `of_nothing` where there is no whole."""
    limits = np.where(whole > 0, 1.0, of_nothing)
    return np.asarray(np.divide(part, whole, where=part < whole, out=limits), dtype=np.float64)


def _padded(values: Floats, rows: int) -> Floats:
    """The array with zeros appended along its first axis."""
    missing = np.zeros((rows - len(values), *values.shape[1:]))
    return np.concatenate([values, missing]) if len(missing) else values


def _require(
    name: str, values: Floats | Ints, shape: tuple[int, ...], unknown: bool = False
) -> None:
    if values.shape != shape:
        raise InputError(f"{name}: shape {values.shape} instead of {shape}", field=name)
    valid = np.isfinite(values) & (values >= 0)
    if unknown:
        valid |= np.isnan(values)
    if not valid.all():
        raise InputError(f"{name}: negative, infinite or not a number", field=name)
