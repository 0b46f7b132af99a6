"""Power that an NVMe drive measures, reports and limits itself: fields and commands.

Layouts: NVM Express Base Specification 2.3 as in libnvme's nvme/types.h (Power Limit, feature 23h;
Power Measurement, feature and log 25h; SMART bytes 240 to 243). Numbers are little endian. A value
that the drive does not report is None.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from iojoule.measure.drive.nvme import SMART_BYTES, WATTS_BY_SCALE, NvmeController
from iojoule.measure.errors import DriveError

POWER_LIMIT = 0x23
NO_LIMIT = 0
"""Value of that feature without a limit."""
POWER_MEASUREMENT = 0x25
"""Both a feature and a log page."""

HEADER_BYTES = 64
LOG_INTERVAL_SECONDS = 1.0
"""What one interval measurement covers."""

_LARGEST_PERCENT = 100
_POWER_WORD = 0x3FFFF
_WATTS_AT_VALUE = 0xFFFF


def power_watts(word: int) -> float | None:
    """Watts of a power word: value in bits 15:0, scale in 17:16; higher bits are ignored."""
    scale = WATTS_BY_SCALE.get(word >> 16 & 3)
    return (word & 0xFFFF) * scale if scale else None


def stated_watts(word: int) -> float | None:
    """Watts that a drive states; None where they are 0: no reading, or no limit.

    The specification reserves the word 0; with a scale, a value of 0 says no more.
    """
    return power_watts(word) if word & 0xFFFF else None


def power_word(watts: float) -> int:
    """The power word that holds at most `watts`, in the finest scale that fits.

    Raises DriveError for a power that no word holds: 0 W or less, or above 655.35 W.
    """
    for scale, unit in sorted(WATTS_BY_SCALE.items()):
        # a limit is never rounded up; the margin is that of binary fractions
        value = math.floor(watts / unit + 1e-6) if math.isfinite(watts) else 0
        if 0 < value <= _WATTS_AT_VALUE:
            return value | scale << 16
    raise DriveError(f"{watts:g} W is no power limit: it must be above 0 and at most 655.35 W")


def interval_power(data: bytes) -> tuple[float, float] | None:
    """Mean watts of the second before the command, and one step of them, from the SMART log.

    None where the drive does not report them. Raises DriveError unless it has 512 bytes.
    """
    if len(data) != SMART_BYTES:
        raise DriveError(f"the SMART log has {len(data)} and not {SMART_BYTES} bytes")
    (word,) = struct.unpack_from("<I", data, 240)
    watts = stated_watts(word)
    return None if watts is None else (watts, WATTS_BY_SCALE[word >> 16 & 3])


@dataclass(frozen=True)
class PowerLog:
    """The header of the Power Measurement log.

    Attributes:
        generation: Number of starts modulo 256.
        running: Whether a measurement is under way.
        has_gaps: Whether data are missing within it (attribute bit 1).
        estimated: Whether power is estimated and not measured (bit 2).
        intervals: Number of 1-s measurements since the start.
        mean_watts: Of them; None = not reported.
        step_watts: One step of it.
        error_fraction: Largest error; None = not reported.
    """

    generation: int
    running: bool
    has_gaps: bool
    estimated: bool
    intervals: int
    mean_watts: float | None
    step_watts: float
    error_fraction: float | None

    @property
    def joules(self) -> float | None:
        """Energy since the start; None where power is not reported or has gaps."""
        if self.mean_watts is None or self.has_gaps:
            return None
        return self.mean_watts * self.intervals * LOG_INTERVAL_SECONDS

    @property
    def step_joules(self) -> float:
        """One step of the energy: it grows with every interval."""
        return self.step_watts * self.intervals * LOG_INTERVAL_SECONDS

    @property
    def fault(self) -> str | None:
        """Why it is no measurement of power; None if it is one."""
        if self.estimated:
            return "the drive estimates its power and does not measure it (attribute bit 2)"
        if self.has_gaps:
            return "its measurement has gaps (attribute bit 1)"
        return None


def parse_power_log(data: bytes) -> PowerLog:
    """Read the header of the Power Measurement log.

    Raises DriveError if it is shorter or of an unknown version.
    """
    if len(data) < HEADER_BYTES:
        raise DriveError(f"the Power Measurement log has {len(data)} and not {HEADER_BYTES} bytes")
    if data[0]:
        raise DriveError(f"the Power Measurement log has version {data[0]}; only 0 is known")
    generation, attributes, _, intervals = struct.unpack_from("<BHII", data, 1)
    (mean,) = struct.unpack_from("<I", data, 40)
    percent = data[56]
    return PowerLog(
        generation=generation,
        running=bool(attributes & 1),
        has_gaps=bool(attributes & 2),
        estimated=bool(attributes & 4),
        intervals=intervals,
        mean_watts=stated_watts(mean),
        step_watts=WATTS_BY_SCALE.get(mean >> 16 & 3, 0.0),
        error_fraction=percent / 100 if percent <= _LARGEST_PERCENT else None,
    )


def limit_watts(value: int) -> float | None:
    """Read feature 23h: the Power Limit, None where there is none."""
    return stated_watts(value)


def same_limit(limit: int, other: int) -> bool:
    """Whether two values of feature 23h are the same limit, reserved bits apart."""
    return limit & _POWER_WORD == other & _POWER_WORD or limit_watts(limit) == limit_watts(other)


START_VALUE, STOP_VALUE = 1, 0
"""Values of feature 25h: start a measurement of the whole subsystem without a stop time; stop."""


@dataclass
class Measurement:
    """A measurement that this process started. A start by another program makes it invalid.

    Raises DriveError from every method if the drive refuses or does not answer.
    """

    controller: NvmeController
    generation: int | None = None

    def start(self) -> None:
        """Start it; raises DriveError if one is under way already or the start has no effect."""
        before = self.peek()
        if before.running:
            raise DriveError(
                f"{self.controller.node}: another program measures its power, and a start would "
                "erase that; stop it first: "
                + self.controller.set_feature_command(POWER_MEASUREMENT, STOP_VALUE)
            )
        self._begin(before.generation)

    def restart(self) -> None:
        """Begin anew, at once after `read`, whose data are erased; raises as `start`."""
        assert self.generation is not None
        self._begin(self.generation)

    def _begin(self, before: int) -> None:
        self.controller.set_feature(POWER_MEASUREMENT, START_VALUE)
        after = self.peek()
        if after.generation != (before + 1) & 0xFF or not after.running:
            raise DriveError(
                f"{self.controller.node}: accepted the start of a power measurement but did not "
                "start one, or another program did"
            )
        self.generation = after.generation

    def read(self) -> PowerLog:
        """The log since `start`; raises DriveError if another program restarted it."""
        log = self.peek()
        if log.generation != self.generation:
            raise DriveError(
                f"{self.controller.node}: another program restarted its power measurement "
                f"(generation {log.generation} instead of {self.generation})"
            )
        return log

    def stop(self) -> None:
        """Stop it where it is still ours; its data stay."""
        generation, self.generation = self.generation, None
        if generation is not None and self.header().generation == generation:
            self.controller.set_feature(POWER_MEASUREMENT, STOP_VALUE)

    def peek(self) -> PowerLog:
        """The log's header; raises DriveError with the reason if it is no measurement."""
        log = self.header()
        if log.fault is not None:
            raise DriveError(f"{self.controller.node}: {log.fault}; use another sensor")
        return log

    def header(self) -> PowerLog:
        """The log's header, whatever it states."""
        return parse_power_log(self.controller.log(POWER_MEASUREMENT, HEADER_BYTES))
