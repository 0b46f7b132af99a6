"""I/O of control groups by drive: io.stat of cgroup v2, blkio of v1, and hosts with both.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst of Linux.

* A v2 group contains its descendants and what removed ones did. What a group did itself is its
  count minus its children's. A group with metered children has no processes of its own (rule "no
  internal processes"), so its remainder was caused by children that have ended: `ENDED`.
* A v1 group counts its own I/O. What removed groups did since the last reading is not seen.
* The root group is not read: what no group below it did is the drive's total minus the groups'.
* A group is its path and inode number: the same name again is another group.
* Counts are taken at submission, before merging; v2 counts a flush as a write of 0 bytes.

Cost: one pread per file and reading on a descriptor that stays open; only texts that have changed
are parsed, all together. 5,000 groups with two drives each take 11 ms a reading when idle, 15 ms
when a tenth did I/O and 24 ms when all did: 1.1, 1.5 and 2.4 % of a core at 1 Hz
(tests/bench/test_cgroups_budget.py, files in memory). A read of the kernel's own v1 files takes
3 us, and v1 has two a group.
"""

from __future__ import annotations

import errno
import os
import resource
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.errors import HostStateError
from iojoule.meter.attribution import ENDED, Count, GroupCounts
from iojoule.meter.cgroup_text import COLUMNS, Parser

Integers = NDArray[np.int64]

ROTATION = 10
"""A group without known children is looked at for new ones once in so many readings."""
_FIRST_READ_BYTES = 4096
_DEVICES_MAX = 1 << 16


class Layout(Enum):
    """Where a host's counters of groups are."""

    V2 = "v2"
    V1 = "v1"
    HYBRID_V1 = "hybrid, blkio in v1"
    HYBRID_V2 = "hybrid, io in v2"
    NONE = "none"


@dataclass(frozen=True)
class Hierarchy:
    """The hierarchy with the counters.

    Attributes:
        layout: See there.
        folder: Its root; None without one.
        remarks: What limits what is seen there.
    """

    layout: Layout
    folder: Path | None
    remarks: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files of a group, by version."""
        if self.layout in (Layout.V2, Layout.HYBRID_V2):
            return ("io.stat",)
        return ("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced")

    @property
    def recursive(self) -> bool:
        """A group's counts contain its descendants'."""
        return self.layout in (Layout.V2, Layout.HYBRID_V2)


class GroupKey(NamedTuple):
    """A control group; `path` is relative to the hierarchy's root and starts with a slash."""

    path: str
    inode: int

    def __str__(self) -> str:
        """As UTF-8 can tell it: whoever owns a group may name it with any bytes."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class GroupInterval:
    """What groups submitted between two readings.

    Attributes:
        groups: R keys, `ENDED` for what ended groups did.
        drives: R names.
        counts: Shape (R, 6): bytes read and written, reads, writes, bytes discarded, discards.
        ended: Groups that have ended since the last reading.
        remarks: What limits the counts.
    """

    groups: tuple[Hashable, ...]
    drives: tuple[str, ...]
    counts: Integers
    ended: tuple[GroupKey, ...]
    remarks: tuple[str, ...] = ()

    def submitted(self, drives: Sequence[str]) -> GroupCounts:
        """As the attribution takes it; I/O of other drives is left out, flushes are unknown."""
        index = {name: number for number, name in enumerate(drives)}
        rows = [row for row, name in enumerate(self.drives) if name in index]
        counts = np.zeros((len(rows), len(Count)))
        for column, source in (
            (Count.READS, "rios"),
            (Count.READ_BYTES, "rbytes"),
            (Count.WRITES, "wios"),
            (Count.WRITE_BYTES, "wbytes"),
        ):
            counts[:, column] = self.counts[rows, COLUMNS.index(source)]
        drive = np.array([index[self.drives[row]] for row in rows], dtype=np.intp)
        return GroupCounts(drive, [self.groups[row] for row in rows], counts)


def find_hierarchy(root: Path) -> Hierarchy:
    """The hierarchy below `root` (/sys/fs/cgroup) that counts I/O."""
    if (root / "cgroup.controllers").exists():
        if "io" not in _words(root / "cgroup.controllers"):
            return Hierarchy(Layout.NONE, None, ("cgroup v2 has no io controller here",))
        return Hierarchy(Layout.V2, root, _limits(root))
    unified = root / "unified"
    if "io" in _words(unified / "cgroup.controllers"):
        return Hierarchy(Layout.HYBRID_V2, unified, _limits(unified))
    blkio = root / "blkio"
    if (blkio / "blkio.throttle.io_service_bytes").exists():
        layout = Layout.HYBRID_V1 if unified.is_dir() else Layout.V1
        remark = "cgroup v1 does not attribute buffered writes: they are unattributed"
        return Hierarchy(layout, blkio, (remark,))
    return Hierarchy(Layout.NONE, None, (f"{root}: no io.stat and no blkio controller",))


def _limits(folder: Path) -> tuple[str, ...]:
    remarks = []
    if (folder / "cgroup.type").exists():
        remarks.append("not the host's root group: groups outside it are unattributed")
    if "io" not in _words(folder / "cgroup.subtree_control"):
        remarks.append("io is not enabled for groups below the root (cgroup.subtree_control)")
    return tuple(remarks)


def _words(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="ascii").split()
    return []


def raise_descriptor_limit(groups: int) -> int:
    """Allow this process descriptors for so many groups, as far as its hard limit goes.

    Returns:
        The limit in force.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * groups + 1024  # two files a group in v1, and half of the limit is for others
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


@dataclass
class _Node:
    """A directory of the hierarchy.

    Attributes:
        number: None where it has no counters.
        seen: Links and time of change when its children were last listed.
        hands_down: The io controller is enabled for its children (cgroup.subtree_control).
    """

    path: str
    inode: int
    parent: _Node | None
    number: int | None = None
    descriptors: list[int | None] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)
    seen: tuple[int, int] | None = None
    hands_down: bool = False

    def __post_init__(self) -> None:
        self.key = GroupKey(self.path or "/", self.inode)

    @property
    def waits(self) -> bool:
        """Whether a child has no counters yet."""
        return any(child.number is None for child in self.children.values())


class GroupReader:
    """Reads the counters of all groups again and again; a context manager.

    Args:
        hierarchy: From `find_hierarchy`.
        drives: Names of drives by "major:minor"; others are ignored.
        descriptors: How many files stay open; others are opened for each reading, which takes ten
            times as long. Half of RLIMIT_NOFILE by default.
    """

    def __init__(
        self, hierarchy: Hierarchy, drives: Mapping[str, str], descriptors: int | None = None
    ) -> None:
        self.hierarchy = hierarchy
        if descriptors is None:
            descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._descriptors_left = descriptors
        self._nodes: dict[str, _Node] = {}
        self._numbered: list[_Node | None] = []
        self._free: list[int] = []
        self._ended: list[_Node] = []
        self._sizes = [_FIRST_READ_BYTES] * len(hierarchy.files)
        self._turn = 0
        self._began = False
        self._devices: dict[tuple[int, str], int] = {}
        self._names: list[str] = []
        self._new_devices: set[int] = set()
        self._by_number: dict[int, int] = {}
        self._lost_children: set[int] = set()
        self._parsers = [Parser(operations=name.endswith("serviced")) for name in hierarchy.files]
        self._codes = np.empty(0, dtype=np.int64)
        self._last = np.empty((0, len(COLUMNS)), dtype=np.int64)
        self._owed = np.empty((0, len(COLUMNS)), dtype=np.int64)
        self._parents = np.empty(0, dtype=np.intp)
        self._new_rows: NDArray[np.intp] | None = None
        self._found = self._codes
        self.set_drives(drives)
        if hierarchy.folder is not None:
            status = hierarchy.folder.stat()
            self._nodes[""] = _Node("", status.st_ino, None)

    def __enter__(self) -> GroupReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all descriptors; the reader cannot be used any more."""
        for node in self._nodes.values():
            self._close(node)
        self._nodes = {}

    def set_drives(self, drives: Mapping[str, str]) -> None:
        """Drives have come, gone or changed their number; counts of new ones start now."""
        self._by_number = {}
        for number, name in drives.items():
            major, minor = map(int, number.split(":"))
            identity = major << 20 | minor, name
            index = self._devices.setdefault(identity, len(self._names))
            if index == len(self._names):
                self._names.append(name)
                self._new_devices.add(index)
            self._by_number[identity[0]] = index
        for node in self._nodes.values():
            node.texts = [b""] * len(node.texts)

    def read(self) -> GroupInterval:
        """What every group submitted since the last reading; the first one returns nothing."""
        self._discover()
        changed = self._changed_texts()
        self._forget_ended()
        counts = self._advance(changed)
        ended = tuple(node.key for node in self._ended)
        self._ended = []
        remarks = self.hierarchy.remarks
        if not self.hierarchy.recursive and self._nodes and not len(self._codes):
            remarks += ("no group has counts: this kernel counts only drives with a throttle rule",)
        rows = np.flatnonzero(counts.any(axis=1))
        groups: list[Hashable] = []
        names, recursive = [], self.hierarchy.recursive
        for row, code in zip(rows.tolist(), self._codes[rows].tolist(), strict=True):
            node = self._node_of(row)
            groups.append(ENDED if recursive and self._is_inner(node) else node.key)
            names.append(self._names[code % _DEVICES_MAX])
        self._began = True
        self._new_devices.clear()
        self._lost_children.clear()
        return GroupInterval(tuple(groups), tuple(names), counts[rows], ended, remarks)

    def _is_inner(self, node: _Node) -> bool:
        """Its own counts can only be those of children that have ended."""
        if node.hands_down or node.number in self._lost_children:
            return True
        return bool(node.children) and any(
            child.number is not None for child in node.children.values()
        )

    def _discover(self) -> None:
        """Look for new and ended groups where a directory's links or time have changed.

        The kernel counts the subdirectories of a control group in its links.
        """
        self._turn = (self._turn + 1) % ROTATION
        for position, node in enumerate(list(self._nodes.values())):
            quiet = not node.children and node.parent is not None and node.seen is not None
            if not quiet or position % ROTATION == self._turn:
                self._look(node)

    def _look(self, node: _Node) -> None:
        if node.path not in self._nodes or (node.number is None and node.parent is not None):
            return  # ended, or without counters: then no group below it has them
        try:
            status = os.stat(self._place(node.path))  # noqa: PTH116 - a third of the time
        except OSError:
            self._end(node)
            return
        seen = status.st_nlink, status.st_mtime_ns
        # some file systems do not count subdirectories; a controller may be enabled later
        if seen == node.seen and status.st_nlink > 1 and (self._turn or not node.waits):
            return
        node.seen = seen
        if self.hierarchy.recursive:
            node.hands_down = "io" in _words(Path(self._place(node.path), "cgroup.subtree_control"))
        try:
            with os.scandir(self._place(node.path)) as entries:
                inodes = {
                    entry.name: entry.inode()
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                }
        except OSError:
            self._end(node)
            return
        for name, child in list(node.children.items()):
            if inodes.get(name) != child.inode:
                self._end(child)
            elif child.number is None and self._open(child):
                self._look(child)
        for name in inodes.keys() - node.children.keys():
            self._add(node, name, inodes[name])

    def _add(self, parent: _Node, name: str, inode: int) -> None:
        node = _Node(f"{parent.path}/{name}", inode, parent)
        parent.children[name] = node
        self._nodes[node.path] = node
        if self._open(node):
            self._look(node)

    def _open(self, node: _Node) -> bool:
        """Open the files of a group; False where it has none."""
        descriptors: list[int | None] = []
        for name in self.hierarchy.files:
            try:
                descriptor = os.open(f"{self._place(node.path)}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                node.descriptors = descriptors
                self._close(node)
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise HostStateError(
                        f"{self._place(node.path)}/{name}: {error.strerror}; raise RLIMIT_NOFILE "
                        "(LimitNOFILE= of the service), or keep fewer descriptors open"
                    ) from None
                return False
            if self._descriptors_left > 0:
                self._descriptors_left -= 1
                descriptors.append(descriptor)
            else:
                os.close(descriptor)
                descriptors.append(None)
        node.descriptors = descriptors
        node.texts = [b""] * len(descriptors)
        if self._free:
            node.number = self._free.pop()
            self._numbered[node.number] = node
        else:
            node.number = len(self._numbered)
            self._numbered.append(node)
        return True

    def _close(self, node: _Node) -> None:
        for descriptor in node.descriptors:
            if descriptor is not None:
                os.close(descriptor)
                self._descriptors_left += 1
        node.descriptors = []

    def _end(self, node: _Node) -> None:
        """A group has ended, and those below it."""
        for child in list(node.children.values()):
            self._end(child)
        self._close(node)
        self._nodes.pop(node.path, None)
        if node.parent is not None:
            node.parent.children.pop(node.path.rpartition("/")[2], None)
            node.parent.seen = None  # its name may have been taken again
            if node.parent.number is not None:
                self._lost_children.add(node.parent.number)
        if node.number is not None:
            self._ended.append(node)

    def _place(self, path: str) -> str:
        return f"{self.hierarchy.folder}{path}"

    def _changed_texts(self) -> Iterator[tuple[int, int, bytes]]:
        """Number of a group, index of the file, text; children before their parents.

        A parent that is read after its children counts at least what they counted.
        """
        found = []
        for node in reversed(list(self._nodes.values())):
            for index, descriptor in enumerate(node.descriptors):
                try:
                    text = self._read(node, index, descriptor)
                except OSError as error:
                    if error.errno not in (errno.ENODEV, errno.ENOENT):
                        raise HostStateError(
                            f"{self._place(node.path)}/{self.hierarchy.files[index]}: "
                            f"{error.strerror}"
                        ) from None
                    self._end(node)
                    break
                if text != node.texts[index]:
                    node.texts[index] = text
                    assert node.number is not None
                    found.append((node.number, index, text))
        return iter(found)

    def _read(self, node: _Node, index: int, descriptor: int | None) -> bytes:
        if descriptor is None:
            file = f"{self._place(node.path)}/{self.hierarchy.files[index]}"
            with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - five times as fast
                return stream.read()
        text = os.pread(descriptor, self._sizes[index], 0)
        while len(text) == self._sizes[index]:
            self._sizes[index] *= 2
            text = os.pread(descriptor, self._sizes[index], 0)
        return text

    def _forget_ended(self) -> None:
        numbers = [node.number for node in self._ended if node.number is not None]
        if not numbers:
            return
        stays = ~np.isin(self._codes // _DEVICES_MAX, numbers)
        self._codes, self._last = self._codes[stays], self._last[stays]
        self._owed = self._owed[stays]
        self._find_parents()
        for number in numbers:
            self._numbered[number] = None
        self._free += numbers

    def _advance(self, changed: Iterator[tuple[int, int, bytes]]) -> Integers:
        """Counts by row of the table since the last reading, of each group without its children."""
        by_file: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for number, index, text in changed:
            if self._numbered[number] is not None:
                by_file[index].append((number, text))
        updates = []
        for index, texts in by_file.items():
            for numbers, devices, columns, values in self._parsers[index].parse(texts):
                codes, known = self._codes_of(numbers, devices)
                updates.append((codes[known], columns, values[known]))
        self._insert(np.concatenate([codes for codes, _, _ in updates] or [self._codes[:0]]))
        now = self._last.copy()
        for codes, columns, values in updates:
            rows = np.searchsorted(self._codes, codes)
            now[rows[:, None], columns] = values
        if self._new_rows is not None:
            self._last[self._new_rows] = now[self._new_rows]
            self._new_rows = None
        grown = now - self._last
        reset = (grown < 0).any(axis=1)
        grown[reset] = now[reset]
        self._last = now
        if not self.hierarchy.recursive:
            return grown
        own = grown.copy()
        rows = np.flatnonzero((self._parents >= 0) & grown.any(axis=1))
        np.subtract.at(own, self._parents[rows], grown[rows])
        self._without_what_parents_had(own, grown)
        # a negative remainder of two readings that do not coincide is carried
        self._owed += own
        counts = np.maximum(self._owed, 0)
        self._owed -= counts
        return counts

    def _without_what_parents_had(self, own: Integers, grown: Integers) -> None:
        """Take from groups that were found late what their parents were already charged for."""
        found = [
            row for row in np.searchsorted(self._codes, self._found) if self._parents[row] >= 0
        ]
        outer_first = sorted(found, key=lambda row: len(self._node_of(row).path))
        for row in outer_first:
            parent = self._parents[row]
            # its counts contain those of the groups below it, which come next
            twice = np.minimum(np.maximum(-own[parent], 0), grown[row])
            own[parent] += twice
            own[row] -= twice

    def _node_of(self, row: int) -> _Node:
        node = self._numbered[int(self._codes[row]) // _DEVICES_MAX]
        assert node is not None
        return node

    def _codes_of(self, numbers: Integers, devices: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Row identifiers, and which belong to a drive that is known."""
        distinct, inverse = np.unique(devices, return_inverse=True)
        index = np.array(
            [self._by_number.get(number, -1) for number in distinct.tolist()], dtype=np.int64
        )[inverse]
        return numbers * _DEVICES_MAX + index, index >= 0

    def _insert(self, codes: Integers) -> None:
        """Add rows; they start at 0, but at present values in the first reading of a drive."""
        at = np.searchsorted(self._codes, codes)  # a twentieth of np.setdiff1d's time
        new = np.unique(codes[np.append(self._codes, -1)[at] != codes])
        self._found = new
        if not len(new):
            return
        merged = np.concatenate([self._codes, new])
        order = np.argsort(merged, kind="stable")
        empty = np.zeros((len(new), len(COLUMNS)), dtype=np.int64)
        self._codes = merged[order]
        self._last = np.concatenate([self._last, empty])[order]
        self._owed = np.concatenate([self._owed, empty])[order]
        self._find_parents()
        late = np.isin(new % _DEVICES_MAX, list(self._new_devices))
        started = new[late] if self._began else new
        if len(started):
            self._new_rows = np.searchsorted(self._codes, started)

    def _find_parents(self) -> None:
        """Row of the parent group's counts of the same drive; -1 without one."""
        parent_of = np.full(len(self._numbered), -1, dtype=np.int64)
        for number, node in enumerate(self._numbered):
            if node is not None and node.parent is not None and node.parent.number is not None:
                parent_of[number] = node.parent.number
        parents = parent_of[self._codes // _DEVICES_MAX]
        codes = parents * _DEVICES_MAX + self._codes % _DEVICES_MAX
        rows = np.searchsorted(self._codes, codes)
        rows[rows == len(self._codes)] = 0
        matches = (parents >= 0) & (self._codes[rows] == codes) if len(rows) else rows < 0
        self._parents = np.where(matches, rows, -1).astype(np.intp)
