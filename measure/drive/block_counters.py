"""The counters of the block layer: the one line of /sys/block/X/stat.

Source: Documentation/block/stat.rst of Linux. Eleven numbers at first; discards came with 4.18,
flushes with 5.5. Sectors have 512 B, whatever the drive's are; times are in ms.
"""

from __future__ import annotations

from iojoule.measure.errors import DriveError

LEAST = 11
"""Numbers that every kernel shows."""


def numbers(line: str | bytes, path: str) -> tuple[int, ...]:
    """The numbers of a line, in the kernel's order.

    Args:
        line: What was read; empty where nothing could be.
        path: The drive's node, for the message.

    Raises:
        DriveError: These are no counters.
    """
    try:
        values = tuple(int(field) for field in line.split())
    except ValueError:
        values = ()
    if len(values) < LEAST:
        raise DriveError(f"{path}: the kernel has no statistics of it; is it still there?")
    return values
