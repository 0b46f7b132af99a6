"""Power that an NVMe drive measures, reports and limits itself: fields and commands.

Layouts: NVM Express Base Specification 2.3 as in libnvme's nvme/types.h (Power Limit, feature 23h;
Power Threshold, 24h; Power Measurement, feature and log 25h; SMART bytes 232 to 243). Numbers are
little endian. A value that the drive does not report is None.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from iojoule.measure.drive.nvme import (
    IDENTIFY_BYTES,
    SMART_BYTES,
    WATTS_BY_SCALE,
    NvmeController,
    require_bytes,
)
from iojoule.measure.errors import DriveError

POWER_LIMIT = 0x23
NO_LIMIT = 0
"""Value of that feature without a limit."""
POWER_THRESHOLD = 0x24
POWER_MEASUREMENT = 0x25
"""Both a feature and a log page."""

HEADER_BYTES = 64
BIN_WATTS = 0.25
"""Width of a bin of the histogram: the specification allows no other."""
JOULES_PER_WATT_HOUR = 3600.0
LOG_INTERVAL_SECONDS = 1.0
"""What one interval measurement covers."""

_LARGEST_LOG_BYTES = 1 << 20
_LEAST_DESCRIPTOR_BYTES = 8
_LARGEST_PERCENT = 100
_POWER_WORD = 0x3FFFF
_WATTS_AT_VALUE = 0xFFFF
_SECONDS_BY_SCALE = {1: 1e-6, 2: 1e-5, 3: 1e-4, 4: 1e-3, 5: 1e-2}


def power_watts(word: int) -> float | None:
    """Watts of a power word: value in bits 15:0, scale in 17:16; higher bits are ignored."""
    scale = WATTS_BY_SCALE.get(word >> 16 & 3)
    return (word & 0xFFFF) * scale if scale else None


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


@dataclass(frozen=True)
class PowerAbilities:
    """What Identify Controller declares.

    Attributes:
        measures: Whether it has Power Measurement (CTRATT bit 21).
        unlimited_power_watts: Largest power of state 0 without a limit (MUP), None = not reported.
            Its scale is that of the maximum power of state 0.
        sample_interval_seconds: Longest gap between two raw samples (IPMSR).
        longest_stop_minutes: Longest stop time of a measurement (MSMT); 0 = not reported.
    """

    measures: bool
    unlimited_power_watts: float | None
    sample_interval_seconds: float | None
    longest_stop_minutes: int


def parse_abilities(data: bytes) -> PowerAbilities:
    """Read Identify Controller. Raises DriveError unless it has 4,096 bytes."""
    require_bytes(data, IDENTIFY_BYTES, "Identify Controller")
    (attributes,) = struct.unpack_from("<I", data, 96)
    most, interval, scale, minutes = struct.unpack_from("<HBBH", data, 390)
    unit = _SECONDS_BY_SCALE.get(scale)
    unit_watts = WATTS_BY_SCALE[1 if data[2048 + 3] & 1 else 2]
    return PowerAbilities(
        measures=bool(attributes >> 21 & 1),
        unlimited_power_watts=most * unit_watts if most else None,
        sample_interval_seconds=interval * unit if unit and interval else None,
        longest_stop_minutes=minutes,
    )


@dataclass(frozen=True)
class SmartPower:
    """Power fields of the SMART / Health log.

    Attributes:
        lifetime_watt_hours: Energy since manufacture, rounded up, of the whole NVM subsystem.
        interval_power_watts: Mean of the second before the command.
        resolution_watts: One step of that mean.
    """

    lifetime_watt_hours: int | None
    interval_power_watts: float | None
    resolution_watts: float | None

    @property
    def lifetime_joules(self) -> float | None:
        """Lifetime energy in joules, good to 3,600 J."""
        hours = self.lifetime_watt_hours
        return None if hours is None else hours * JOULES_PER_WATT_HOUR


def parse_smart_power(data: bytes) -> SmartPower:
    """Read the SMART log. Raises DriveError unless it has 512 bytes."""
    if len(data) != SMART_BYTES:
        raise DriveError(f"the SMART log has {len(data)} and not {SMART_BYTES} bytes")
    hours, word = struct.unpack_from("<QI", data, 232)
    # the specification reserves the word 0; with a scale, a value of 0 is no reading either
    watts = power_watts(word) if word & 0xFFFF else None
    resolution = None if watts is None else WATTS_BY_SCALE[word >> 16 & 3]
    return SmartPower(hours or None, watts, resolution)


@dataclass(frozen=True)
class Bin:
    """One bin of the histogram: measurements at or above the lower threshold."""

    count: int
    lower_watts: float | None


@dataclass(frozen=True)
class PowerLog:
    """The Power Measurement log.

    Attributes:
        generation: Number of starts modulo 256.
        running: Whether a measurement is under way.
        has_gaps: Whether data are missing within it (attribute bit 1).
        estimated: Whether power is estimated and not measured (bit 2).
        overflowed: Whether the histogram overflowed (bit 4).
        kind: What is measured: 0 the whole NVM subsystem, Ch to Fh vendor specific.
        size_bytes: Of the whole log, as the drive states it.
        intervals: Number of 1-s measurements since the start.
        minutes_left: Until it stops by itself; 0 = not specified.
        overflow_count: Measurements above the last bin.
        maximum_at_ms: Time stamp of the maximum; None where bit 3 is clear.
        error_fraction: Largest error; None = not reported.
        bins: The histogram, as far as the bytes at hand reach.
        complete: Whether they hold every descriptor that the header states.
    """

    generation: int
    running: bool
    has_gaps: bool
    estimated: bool
    overflowed: bool
    kind: int
    size_bytes: int
    intervals: int
    minutes_left: int
    overflow_count: int
    mean_watts: float | None
    maximum_watts: float | None
    maximum_at_ms: int | None
    error_fraction: float | None
    bins: tuple[Bin, ...]
    complete: bool

    @property
    def joules(self) -> float | None:
        """Energy since the start; None where power is not reported or has gaps."""
        if self.mean_watts is None or self.has_gaps:
            return None
        return self.mean_watts * self.intervals * LOG_INTERVAL_SECONDS

    @property
    def fault(self) -> str | None:
        """Why it is no measurement of power; None if it is one."""
        if self.estimated:
            return "the drive estimates its power and does not measure it (attribute bit 2)"
        if self.has_gaps:
            return "its measurement has gaps (attribute bit 1)"
        return None


def parse_power_log(data: bytes) -> PowerLog:
    """Read the Power Measurement log, or its first 64 bytes.

    Raises DriveError if it is shorter than its header or of an unknown version.
    """
    if len(data) < HEADER_BYTES:
        raise DriveError(f"the Power Measurement log has {len(data)} and not {HEADER_BYTES} bytes")
    if data[0]:
        raise DriveError(f"the Power Measurement log has version {data[0]}; only 0 is known")
    _, generation, attributes, size, intervals = struct.unpack_from("<BBHII", data, 0)
    descriptors, minutes = struct.unpack_from("<HH", data, 12)
    (stride,) = struct.unpack_from("<H", data, 24)
    (overflow,) = struct.unpack_from("<I", data, 32)
    mean, maximum = struct.unpack_from("<II", data, 40)
    percent = data[56]
    if descriptors and stride < _LEAST_DESCRIPTOR_BYTES:
        raise DriveError(
            f"the Power Measurement log states descriptors of {stride} bytes; they have 8 at least"
        )
    # what is shorter than its own size field is read as far as both reach
    end = min(len(data), max(size, HEADER_BYTES))
    whole = (end - HEADER_BYTES) // stride if stride else 0
    bins = []
    for number in range(min(descriptors, whole)):
        count, threshold = struct.unpack_from("<II", data, HEADER_BYTES + number * stride)
        bins.append(Bin(count, power_watts(threshold)))
    return PowerLog(
        generation=generation,
        running=bool(attributes & 1),
        has_gaps=bool(attributes & 2),
        estimated=bool(attributes & 4),
        overflowed=bool(attributes & 16),
        kind=attributes >> 12,
        size_bytes=size,
        intervals=intervals,
        minutes_left=minutes,
        overflow_count=overflow,
        mean_watts=power_watts(mean),
        maximum_watts=power_watts(maximum),
        maximum_at_ms=int.from_bytes(data[48:54], "little") if attributes & 8 else None,
        error_fraction=percent / 100 if percent <= _LARGEST_PERCENT else None,
        bins=tuple(bins),
        complete=len(bins) == descriptors and len(data) >= size,
    )


@dataclass(frozen=True)
class Threshold:
    """Power Threshold: the interval power that raises an event."""

    watts: float | None
    kind: int
    enabled: bool


def parse_threshold(value: int) -> Threshold:
    """Read feature 24h."""
    return Threshold(power_watts(value), value >> 20 & 0xF, bool(value >> 31 & 1))


def limit_watts(value: int) -> float | None:
    """Read feature 23h: the Power Limit, None where there is none."""
    return power_watts(value) if value & 0xFFFF else None


def same_limit(limit: int, other: int) -> bool:
    """Whether two values of feature 23h are the same limit, reserved bits apart."""
    return limit & _POWER_WORD == other & _POWER_WORD or limit_watts(limit) == limit_watts(other)


def start_value(minutes: int = 0) -> int:
    """Value of feature 25h that starts a measurement of the subsystem; 0 minutes: no stop time."""
    return 1 | minutes << 16


STOP_VALUE = 0


def read_power_log(read: Callable[[int, int], bytes]) -> PowerLog:
    """The whole log through `read(identifier, bytes)`: the header first, then what it states."""
    head = parse_power_log(read(POWER_MEASUREMENT, HEADER_BYTES))
    if not HEADER_BYTES < head.size_bytes <= _LARGEST_LOG_BYTES:
        return head
    return parse_power_log(read(POWER_MEASUREMENT, head.size_bytes + -head.size_bytes % 4))


@dataclass
class Measurement:
    """A measurement that this process started. A start by another program makes it invalid.

    Raises DriveError from every method if the drive refuses or does not answer.
    """

    controller: NvmeController
    generation: int | None = None

    def start(self, minutes: int = 0) -> None:
        """Start it; raises DriveError if one is under way already or the start has no effect."""
        before = self.peek()
        if before.running:
            raise DriveError(
                f"{self.controller.node}: another program measures its power, and a start would "
                "erase that; stop it first: "
                + self.controller.set_feature_command(POWER_MEASUREMENT, STOP_VALUE)
            )
        self.controller.set_feature(POWER_MEASUREMENT, start_value(minutes))
        after = self.peek()
        if after.generation != (before.generation + 1) & 0xFF or not after.running:
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
