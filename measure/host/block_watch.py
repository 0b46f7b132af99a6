"""What the block layer serves right now: throughput and mean latency over a window.

Source: Documentation/block/stat.rst of Linux. The latency is that of requests from the moment they
are queued until they are done, without what the application and the system call add; the counters
add up nanoseconds and are shown in milliseconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from iojoule.measure.drive.block_device import SECTOR_BYTES, BlockDevice
from iojoule.measure.errors import DriveError


@dataclass(frozen=True)
class BlockWindow:
    """What was served in a window.

    Attributes:
        seconds: Its length.
        requests: Reads and writes that were completed.
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
class Reading:
    """The counters at a moment (CLOCK_MONOTONIC, ns)."""

    at_ns: int
    requests: int
    bytes: int
    waited_ms: int
    busy_ms: int
    in_flight: int


def read_counters(device: BlockDevice) -> Reading:
    """The counters of a drive now.

    Raises:
        DriveError: It has vanished.
    """
    path = Path(device.sysfs) / "class" / "block" / device.carrier / "stat"
    try:
        fields = [int(text) for text in path.read_text().split()]
        return Reading(
            at_ns=time.monotonic_ns(),
            requests=fields[0] + fields[4],
            bytes=(fields[2] + fields[6]) * SECTOR_BYTES,
            waited_ms=fields[3] + fields[7],
            in_flight=fields[8],
            busy_ms=fields[9],
        )
    except (OSError, ValueError, IndexError) as error:
        raise DriveError(f"{device.path}: its counters cannot be read ({error})") from None


def between(first: Reading, last: Reading) -> BlockWindow:
    """What was served between two readings."""
    seconds = (last.at_ns - first.at_ns) * 1e-9
    requests = last.requests - first.requests
    latency: float | None = None
    if requests:
        latency = (last.waited_ms - first.waited_ms) * 1e6 / requests
    elif last.in_flight:
        latency = seconds * 1e9
    return BlockWindow(
        seconds=seconds,
        requests=requests,
        bytes=last.bytes - first.bytes,
        latency_mean_ns=latency,
        busy_share=min(1.0, (last.busy_ms - first.busy_ms) * 1e-3 / seconds),
    )
