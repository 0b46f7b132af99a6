"""Watching one drive for some time, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import GAP_SECONDS, IoSource, IoSummary, IoWindow
from iojoule.measure.command.block_io import Disk, find_disk
from iojoule.measure.observe.samples import INTERVAL_SECONDS, sample
from iojoule.measure.observe.window import Watch

NOT_TOLD = (
    "addresses are not among the block layer's counters: taken as random; --pattern says otherwise",
    "nor are writes with forced unit access",
)


@dataclass(frozen=True)
class Request:
    """What to watch.

    Attributes:
        drive: Its node.
        seconds: For how long each time.
        interval_seconds: Time between two readings.
        gap_seconds: Shortest gap that parts two bursts; several intervals at least.
        repeat: How often.
        every_seconds: From one beginning to the next.
    """

    drive: Path
    seconds: float
    interval_seconds: float = INTERVAL_SECONDS
    gap_seconds: float = GAP_SECONDS
    repeat: int = 1
    every_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.gap_seconds < 4 * self.interval_seconds:
            raise InputError(
                f"--gap-seconds {self.gap_seconds:g} cannot be told with a reading every "
                f"{self.interval_seconds:g} s: say at least {4 * self.interval_seconds:g}, or "
                "a shorter --interval"
            )
        if self.every_seconds is not None and self.every_seconds < self.seconds:
            raise InputError(
                f"--every {self.every_seconds:g} is shorter than --seconds {self.seconds:g}"
            )


def observe(request: Request, *, keep: Callable[[IoSummary], None]) -> None:
    """Watch a drive; it is neither opened nor touched.

    Args:
        request: What to watch.
        keep: Is given the summary so far after every stretch of time, the last one also when the
            user interrupts it.

    Raises:
        DriveError: There is no such drive, or it vanished.
        UnsafeDriveError: It is a partition, or no block device.
        KeyboardInterrupt: The user ended it; what was seen was kept.
    """
    disk = find_disk(request.drive)
    scheduler = _scheduler(disk)
    windows: list[IoWindow] = []
    for number in range(request.repeat):
        began = time.monotonic()
        watch = Watch(time.time(), request.gap_seconds)
        try:
            for samples in sample(disk, request.seconds, request.interval_seconds):
                watch.add(samples)
        finally:
            window = watch.window()
            if window.seconds is not None:
                windows.append(window)
                keep(
                    IoSummary(
                        source=IoSource.DISKSTATS,
                        name=disk.name,
                        scheduler=scheduler,
                        windows=tuple(windows),
                        notes=NOT_TOLD,
                    )
                )
        if number + 1 < request.repeat and request.every_seconds is not None:
            time.sleep(max(0.0, began + request.every_seconds - time.monotonic()))


def _scheduler(disk: Disk) -> str | None:
    """What stands in brackets in queue/scheduler; None where the drive has none to choose."""
    try:
        text = (disk.folder / "queue" / "scheduler").read_text()
    except OSError:
        return None
    return text.partition("[")[2].partition("]")[0] or None
