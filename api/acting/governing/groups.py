"""Best-effort control groups: what they move on a drive, and the bandwidth they are limited to.

Sources, in Documentation/admin-guide of Linux: cgroup-v2.rst (io.stat, io.max) and
cgroup-v1/blkio-controller.rst. In v1 the limits of reads and writes are files of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.host.changes import Change, GroupLimit
from iojoule.measure.host.journal import HostState

FLOOR_BYTES_PER_SECOND = 64 * 1024
"""No group is limited to less: what it waits for may hold locks that others need."""

_DECREASE, _INCREASE = 0.7, 1.25
_SETTLE_SECONDS = 2.0
_V2_LIMIT, _V2_STAT = "io.max", "io.stat"
_V1_LIMITS = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")
_V1_STAT = "blkio.throttle.io_service_bytes_recursive"
_V1_LINE = re.compile(r"^(\d+:\d+) (?:Read|Write) (\d+)$", re.MULTILINE)
_V2_LINE = re.compile(r"^(\d+:\d+) (.*)$", re.MULTILINE)
_V2_BYTES = re.compile(r"\b[rw]bytes=(\d+)")


@dataclass
class Throttle:
    """Bytes a second that a group may move: fewer at once under pressure, more again slowly.

    Multiplicative decrease from what it moves, increase after a while without pressure; lifted when
    the group no longer moves half of it.

    Args:
        hold_seconds: Without pressure before each increase.
    """

    hold_seconds: float = 10.0
    limit: float | None = None
    _changed_at: float = float("-inf")

    def decide(self, at_seconds: float, is_pressed: bool, moved: float) -> float | None:
        """The limit from now on, bytes a second; None for none.

        Args:
            at_seconds: Now.
            is_pressed: Whether the safest setting misses the SLA, or the least the budget.
            moved: Bytes a second that the group moved in the last interval.
        """
        since = at_seconds - self._changed_at
        if is_pressed and since >= _SETTLE_SECONDS:
            present = moved if self.limit is None else min(moved, self.limit)
            if self.limit is not None or moved > FLOOR_BYTES_PER_SECOND:
                self.limit = max(_DECREASE * present, FLOOR_BYTES_PER_SECOND)
                self._changed_at = at_seconds
        elif not is_pressed and self.limit is not None and since >= self.hold_seconds:
            self.limit = None if moved < self.limit / 2 else self.limit * _INCREASE
            self._changed_at = at_seconds
        return self.limit


class BestEffortGroup:
    """One control group on one drive.

    Args:
        folder: Its folder below the mount point of cgroups, v2 or v1's blkio.
        device: The drive.
        state: The journal; None for a dry run.

    Raises:
        InputError: It has no limits of I/O.
    """

    def __init__(self, folder: Path, device: BlockDevice, state: HostState | None) -> None:
        self.folder, self._number, self._state = folder.resolve(), device.number, state
        self.throttle = Throttle()
        self.is_v2 = (self.folder / _V2_LIMIT).exists()
        if not self.is_v2 and not all((self.folder / name).exists() for name in _V1_LIMITS):
            raise InputError(
                f"{folder}: has neither {_V2_LIMIT} nor {_V1_LIMITS[0]}; name a control group with "
                "the io controller, below the root"
            )
        self._before: float | None = None
        self._set: float | None = None
        if state is not None:
            for change, _ in self._changes(None):
                state.remember(change)

    def decide(
        self, at_seconds: float, seconds: float, *, is_pressed: bool, of_drive: float
    ) -> float | None:
        """Let the throttle decide for the interval that has passed, and set its limit.

        A group that has ended has none.

        Args:
            at_seconds: Now.
            seconds: Length of the interval.
            is_pressed: As for `Throttle.decide`.
            of_drive: Bytes a second that the drive moved. They stand for the group's while the
                kernel does not count these: in v1 only once there is a limit on the drive.

        Raises:
            HostStateError: The limit is refused.
        """
        if not self.folder.exists():
            self.throttle, self._before, self._set = Throttle(), None, None
            return None
        moved, before = self._moved(), self._before
        known = moved is not None and before is not None and moved >= before
        rate = (moved - before) / seconds if known else of_drive  # type: ignore[operator]
        self._before = moved
        limit = self.throttle.decide(at_seconds, is_pressed, rate)
        if self._state is not None and limit != self._set:
            for change, value in self._changes(limit):
                self._state.set(change, value)
            self._set = limit
        return limit

    def put_back(self) -> None:
        """Set the limit that was there at first, as far as it is taken."""
        if self._state is not None:
            self._state.put_back_all(change for change, _ in self._changes(None))

    def _changes(self, limit: float | None) -> Iterator[tuple[Change, str]]:
        if self.is_v2:
            value = "max" if limit is None else str(int(limit))
            change = GroupLimit(str(self.folder / _V2_LIMIT), self._number)
            yield change, f"rbps={value} wbps={value} riops=max wiops=max"
            return
        for name in _V1_LIMITS:
            value = "0" if limit is None else str(int(limit))
            yield GroupLimit(str(self.folder / name), self._number), value

    def _moved(self) -> float | None:
        """Bytes read and written so far, of the group and all below it; None where unknown."""
        try:
            text = (self.folder / (_V2_STAT if self.is_v2 else _V1_STAT)).read_text()
        except OSError:
            return None
        if self.is_v2:
            lines = dict(_V2_LINE.findall(text))
            counts = _V2_BYTES.findall(lines.get(self._number, ""))
        else:
            counts = [count for number, count in _V1_LINE.findall(text) if number == self._number]
        return float(sum(map(int, counts))) if counts else None
