"""What the block layer serves right now: throughput and mean latency over a window.

Source: Documentation/block/stat.rst of Linux. The latency is that of requests from the moment they
are queued until they are done, without what the application and the system call add; the counters
add up nanoseconds and are shown in milliseconds.
"""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from iojoule.measure.drive.block_counters import numbers
from iojoule.measure.drive.block_device import SECTOR_BYTES, BlockDevice


@dataclass(frozen=True)
class BlockWindow:
    """What was served in a window.

    Attributes:
        seconds: Its length.
        requests: Those that were completed.
        bytes: Of them.
        latency_mean_ns: Of them; where none was completed although some were waiting, the length
            of the window, below which it cannot be; None where there was nothing to serve.
        busy_share: Share of the time with at least one request in flight.
    """

    seconds: float
    requests: int
    bytes: int
    latency_mean_ns: float | None
    busy_share: float

    @property
    def throughput_bytes_per_second(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds

    @property
    def iops(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


@dataclass(frozen=True)
class Served:
    """Requests that were completed so far, their bytes, and the milliseconds that they took."""

    requests: int
    bytes: int
    waited_ms: int


Direction = Literal["read", "write"]


@dataclass(frozen=True)
class Reading:
    """The counters at a moment (CLOCK_MONOTONIC, ns)."""

    at_ns: int
    read: Served
    write: Served
    busy_ms: int
    in_flight: int

    def served(self, direction: Direction | None) -> Served:
        """Of one direction, or of both together."""
        if direction is not None:
            return self.read if direction == "read" else self.write
        pairs = zip(astuple(self.read), astuple(self.write), strict=True)
        return Served(*(one + other for one, other in pairs))


def read_counters(device: BlockDevice) -> Reading:
    """The counters of a drive now.

    Raises:
        DriveError: It has vanished.
    """
    path = Path(device.sysfs) / "class" / "block" / device.carrier / "stat"
    try:
        line = path.read_text()
    except OSError:
        line = ""
    at_ns = time.monotonic_ns()
    fields = numbers(line, str(device.path))
    return Reading(
        at_ns=at_ns,
        read=Served(fields[0], fields[2] * SECTOR_BYTES, fields[3]),
        write=Served(fields[4], fields[6] * SECTOR_BYTES, fields[7]),
        in_flight=fields[8],
        busy_ms=fields[9],
    )


def between(first: Reading, last: Reading, direction: Direction | None = None) -> BlockWindow:
    """What was served between two readings, in one direction or in both together."""
    seconds = (last.at_ns - first.at_ns) * 1e-9
    before, after = first.served(direction), last.served(direction)
    requests = after.requests - before.requests
    latency: float | None = None
    if requests:
        latency = (after.waited_ms - before.waited_ms) * 1e6 / requests
    elif last.in_flight and first.served(None).requests == last.served(None).requests:
        latency = seconds * 1e9
    return BlockWindow(
        seconds=seconds,
        requests=requests,
        bytes=after.bytes - before.bytes,
        latency_mean_ns=latency,
        busy_share=min(1.0, (last.busy_ms - first.busy_ms) * 1e-3 / seconds),
    )
