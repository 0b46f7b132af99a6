"""The lab drive's own power meter: what it reports of its true power (log 25h, SMART)."""

from __future__ import annotations

import math
import struct

from iojoule.measure.drive.power_measurement import HEADER_BYTES, power_word
from iojoule.measure.errors import DriveError, LabError
from iojoule.measure.lab.disk_control import DiskControl

ERROR_PERCENT = 1
BINS = 64
BIN_WATTS = 0.25
"""Width of a bin of the histogram: the specification allows no other."""
LARGEST_MINUTES = 1440

_SECOND_NS = 10**9
_RUNNING, _OVERFLOWED = 1, 16
_DESCRIPTOR_BYTES = 8


class PowerMeter:
    """One measurement at a time, in whole seconds; raises LabError where the disk does."""

    def __init__(self, control: DiskControl) -> None:
        self._control = control
        self._generation = 0
        self._begin_ns: int | None = None
        self._end_ns: int | None = None
        self._minutes = 0
        self._watts: list[float] = []

    @property
    def feature(self) -> int:
        """The current value of feature 25h."""
        self._advance()
        return int(self._running) | self._minutes << 16

    def set(self, action: int, minutes: int) -> bool:
        """Start (1) or stop (0); False if there is no such action or stop time."""
        if action > 1 or minutes > LARGEST_MINUTES:
            return False
        self._advance()
        if action:
            self._generation = self._generation + 1 & 0xFF
            self._begin_ns = int(self._control.status()["now_ns"])
            self._end_ns = self._begin_ns + minutes * 60 * _SECOND_NS if minutes else None
            self._minutes, self._watts = minutes, []
        elif self._running:
            self._end_ns = int(self._control.status()["now_ns"])
        return True

    def log(self) -> bytearray:
        """The Power Measurement log with its histogram."""
        self._advance()
        counts, over = self._histogram()
        data = bytearray(HEADER_BYTES + _DESCRIPTOR_BYTES * BINS)
        attributes = _RUNNING * self._running | _OVERFLOWED * bool(over)
        struct.pack_into("<BB", data, 0, 0, self._generation)
        struct.pack_into("<HIIHH", data, 2, attributes, len(data), len(self._watts), BINS, 0)
        struct.pack_into("<HHH", data, 24, _DESCRIPTOR_BYTES, round(BIN_WATTS * 1000), BINS)
        struct.pack_into("<I", data, 32, over)
        if self._watts:
            mean = sum(self._watts) / len(self._watts)
            struct.pack_into("<II", data, 40, _word(mean), _word(max(self._watts)))
        data[56] = ERROR_PERCENT
        for number, count in enumerate(counts):
            lower = 2 << 16 | round(number * BIN_WATTS * 100)  # in 10 mW
            struct.pack_into("<II", data, HEADER_BYTES + 8 * number, count, lower)
        return data

    def last_second(self) -> int:
        """The power word of the mean of the last second; 0 until the drive is on for one."""
        now_ns = int(self._control.status()["now_ns"])
        try:
            return _word(self._control.joules(now_ns - _SECOND_NS, now_ns))
        except LabError:  # before its begin the drive knows no power; a lost one failed above
            return 0

    @property
    def _running(self) -> bool:
        if self._begin_ns is None:
            return False
        return self._end_ns is None or self._end_ns > int(self._control.status()["now_ns"])

    def _advance(self) -> None:
        """Add the seconds that have ended since."""
        if self._begin_ns is None:
            return
        now_ns = int(self._control.status()["now_ns"])
        end_ns = now_ns if self._end_ns is None else min(self._end_ns, now_ns)
        at_ns = self._begin_ns + len(self._watts) * _SECOND_NS
        while at_ns + _SECOND_NS <= end_ns:
            self._watts.append(self._control.joules(at_ns, at_ns + _SECOND_NS))
            at_ns += _SECOND_NS

    def _histogram(self) -> tuple[list[int], int]:
        counts, over = [0] * BINS, 0
        for watts in self._watts:
            place = math.floor(watts / BIN_WATTS)
            if place < BINS:
                counts[place] += 1
            else:
                over += 1
        return counts, over


def _word(watts: float) -> int:
    """The nearest power word; 0, "not reported", where no word holds it."""
    try:
        return power_word(watts)
    except DriveError:
        return 0
