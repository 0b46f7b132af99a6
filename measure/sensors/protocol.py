"""The interface of sensors.

A sensor never kills the process, never blocks without a time-out, and never takes silence for an
unchanged value: it fails with a `SensorError` that says why, or flags the samples.
All time stamps are CLOCK_MONOTONIC in nanoseconds (`time.monotonic_ns`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Kind(StrEnum):
    """How a rail's values become watts, or that they do not."""

    POWER = "power"  # watts, sampled
    ENERGY = "energy"  # joules, an ever growing counter (already unwrapped)
    GAUGE = "gauge"  # anything else that is sampled: degrees, hertz, a load
    COUNTER = "counter"  # an ever growing count


class Scope(StrEnum):
    """What a rail's watts belong to. Scopes are never added up by a sensor."""

    DEVICE = "device"
    CPU = "cpu"
    DRAM = "dram"
    SYSTEM = "system"
    HOST = "host"  # not power: load, frequency, block layer counters


POWER_FIELDS = {
    scope: f"{scope.value}_power_watts"
    for scope in (Scope.DEVICE, Scope.CPU, Scope.DRAM, Scope.SYSTEM)
}
"""The observation that holds the mean watts of a scope."""


class Flag(IntFlag):
    """What is to be known of one sample."""

    MARKER = 1  # a marker that the host sent
    GAP = 2  # samples were lost between the previous one and this
    STALE = 4  # a slow instrument repeated its last reading: no new information


@dataclass(frozen=True)
class Rail:
    """One quantity of a sensor.

    Attributes:
        name: Unique within the sensor, for instance `3v3` or `package-0`.
        unit: `watts`, `joules`, `celsius`, `hertz`, `fraction`, `bytes`, `operations`, ...
        resolution: Smallest step of a value, in the unit; None = unknown.
        offset_uncertainty: Calibration error in the unit, not averaged out; None = unknown.
        gain_uncertainty: Likewise, as a fraction of the value.
        counts: Whether the rail is part of its scope's total (a child of a counted rail is not).
        full_scale: The highest value that it can show, in the unit; None = unknown.
    """

    name: str
    unit: str
    kind: Kind
    scope: Scope
    resolution: float | None = None
    offset_uncertainty: float | None = None
    gain_uncertainty: float | None = None
    counts: bool = True
    full_scale: float | None = None


@dataclass(frozen=True)
class Probe:
    """Rails in the order of `Chunk.values`, nominal samples a second, and the sensor's identity."""

    rails: tuple[Rail, ...]
    nominal_hertz: float
    identity: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chunk:
    """Samples in order of time; possibly none.

    Attributes:
        monotonic_ns: int64, shape (n,).
        values: float64, shape (n, rails); NaN where a rail has no value at that time.
        flags: uint8 of `Flag`, shape (n,).
    """

    monotonic_ns: NDArray[np.int64]
    values: NDArray[np.float64]
    flags: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.monotonic_ns)


def empty_chunk(rails: int) -> Chunk:
    """No samples of so many rails."""
    return Chunk(np.empty(0, np.int64), np.empty((0, rails)), np.empty(0, np.uint8))


@dataclass(frozen=True)
class Delivery:
    """What a sensor delivered between start and stop."""

    samples: int
    lost: int
    errors: tuple[str, ...]
    first_ns: int | None
    last_ns: int | None


class Sensor(Protocol):
    """One instrument. `start`, `read` and `stop` are called from one thread, in this order.

    After `stop`, `read` is called once more for what was held back, and does not wait.
    """

    name: str
    """What people call it: `powersensor3:/dev/ttyACM0`."""

    def probe(self) -> Probe:
        """Find out what it can deliver; may be called again.

        Raises SensorError if it is missing, unreadable or unexpected; the message names the remedy.
        """

    def start(self) -> None:
        """Begin to deliver. Raises SensorError if it does not start."""

    def read(self, timeout_seconds: float) -> Chunk:
        """Samples since the last call; waits at most this long for the first.

        Raises SensorError if it stalled, vanished, or sends invalid data.
        """

    def stop(self) -> Delivery:
        """End delivery and release the device; may be called twice and after a failure.

        Returns totals since `start`, with what `read` has yet to return.
        """
