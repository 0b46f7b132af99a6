"""Parses the text of io.stat and blkio files of many control groups at once.

Texts that differ in their digits only are one kind: its structure is worked out once, and the
numbers of all texts of a kind are converted together. A line without keys, keys that are not
counters (cost.usage), and lines without a device are passed over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

COLUMNS = ("rbytes", "wbytes", "rios", "wios", "dbytes", "dios")
"""Counters of a group and drive: bytes and requests read, written and discarded."""

_DIGITS = b"0123456789"
_SPACES = bytes(code if chr(code) in "0123456789" else 32 for code in range(256))
_DEVICE = re.compile(rb"(\d+):(\d+)(?=\s|$)")
_COUNTER = re.compile(rb"\s(\w+)=(\d+)(?=\s|$)")
_OPERATION = re.compile(rb"\s(Read|Write|Discard) (\d+)$")
_BY_OPERATION = {b"Read": ("rbytes", "rios"), b"Write": ("wbytes", "wios")}
_BY_OPERATION[b"Discard"] = ("dbytes", "dios")
_NONE = np.empty(0, dtype=np.int64)
_STRUCTURES_MAX = 4096


class Line(NamedTuple):
    """Where the numbers of a line are, counted in numbers from the start of the text."""

    major: int
    minor: int
    columns: tuple[int, ...]
    positions: tuple[int, ...]


class Structure(NamedTuple):
    """Lines with counters, and how many numbers a text has in all."""

    lines: tuple[Line, ...]
    width: int


class Parsed(NamedTuple):
    """Counters of one line of n texts: `numbers` and `devices` (n,), `values` (n, columns).

    A device is major << 20 | minor.
    """

    numbers: Integers
    devices: Integers
    columns: list[int]
    values: Integers


class Parser:
    """Parses texts; remembers the structure of each kind.

    Args:
        operations: For v1, whose two files look alike: the values are requests, not bytes.
    """

    def __init__(self, *, operations: bool = False) -> None:
        self._operations = operations
        self._structures: dict[bytes, Structure] = {}

    def parse(self, texts: Iterable[tuple[int, bytes]]) -> Iterator[Parsed]:
        """Counters in texts, each with the number of its group."""
        kinds: dict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
        for number, text in texts:
            kinds[text.translate(None, _DIGITS)].append((number, text))
        for skeleton, members in kinds.items():
            structure = self._structures.get(skeleton)
            if structure is None:
                if len(self._structures) >= _STRUCTURES_MAX:
                    self._structures.clear()
                structure = structure_of(members[0][1], self._operations)
                self._structures[skeleton] = structure
            yield from self._convert(members, structure)

    def _convert(
        self, members: Sequence[tuple[int, bytes]], structure: Structure
    ) -> Iterator[Parsed]:
        joined = b" ".join(text for _, text in members).translate(_SPACES)
        values = np.fromstring(joined, dtype=np.int64, sep=" ") if joined.strip() else _NONE
        if len(values) != structure.width * len(members):
            # in one of them a number is missing, which its skeleton does not show
            for member in members:
                yield from self._convert([member], structure_of(member[1], self._operations))
            return
        table = values.reshape(len(members), structure.width)
        numbers = np.array([number for number, _ in members], dtype=np.int64)
        for line in structure.lines:
            devices = table[:, line.major] << 20 | table[:, line.minor]
            yield Parsed(numbers, devices, list(line.columns), table[:, line.positions])


def structure_of(text: bytes, operations: bool) -> Structure:
    """The structure of a text."""
    lines, passed = [], 0
    for line in text.split(b"\n"):
        spans = {match.start(): passed + at for at, match in enumerate(re.finditer(rb"\d+", line))}
        passed += len(spans)
        device = _DEVICE.match(line)
        if device is None:
            continue
        columns, positions = [], []
        for column, start in _counters(line, operations):
            columns.append(COLUMNS.index(column))
            positions.append(spans[start])
        if columns:
            major, minor = spans[device.start(1)], spans[device.start(2)]
            lines.append(Line(major, minor, tuple(columns), tuple(positions)))
    return Structure(tuple(lines), passed)


def _counters(line: bytes, operations: bool) -> Iterator[tuple[str, int]]:
    """Column and position of its digits."""
    for match in _COUNTER.finditer(line):
        name = match.group(1).decode("ascii", "replace")
        if name in COLUMNS:
            yield name, match.start(2)
    match_v1 = _OPERATION.search(line)
    if match_v1 is not None:
        yield _BY_OPERATION[match_v1.group(1)][operations], match_v1.start(2)
