"""What a day looks like, from windows seen at different times."""

from __future__ import annotations

import datetime

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import IoSummary, IoWindow
from iojoule.datasets.schema import Fraction, NonNegative, Section


class Hour(Section):
    """One hour of the day, UTC.

    Attributes:
        hour: 0 to 23; a window belongs to the hour of its middle.
        observed_seconds: How long it was watched in all.
        bytes_per_second: Read and written.
        requests_per_second: Reads and writes.
        read_fraction: Share of reads; None without requests.
        flushes_per_second: None where they are not counted.
        busy_share: Share of the time with a request in flight.
    """

    hour: int
    observed_seconds: float
    bytes_per_second: NonNegative
    requests_per_second: NonNegative
    read_fraction: Fraction | None
    flushes_per_second: NonNegative | None
    busy_share: NonNegative | None


def hour_of(window: IoWindow) -> int | None:
    """The hour in UTC of a window's middle; None where its time is unknown."""
    if window.began_unix_seconds is None or window.seconds is None:
        return None
    middle = window.began_unix_seconds + window.seconds / 2
    return datetime.datetime.fromtimestamp(middle, tz=datetime.UTC).hour


def day_profile(summary: IoSummary) -> list[Hour]:
    """The hours that were watched, in order."""
    return [
        _hour(hour, summary.pooled(windows))
        for hour in range(24)
        if (windows := tuple(one for one in summary.windows if hour_of(one) == hour))
    ]


def _hour(hour: int, seen: IoWindow) -> Hour:
    assert seen.seconds is not None
    return Hour(
        hour=hour,
        observed_seconds=seen.seconds,
        bytes_per_second=seen.bytes / seen.seconds,
        requests_per_second=seen.requests / seen.seconds,
        read_fraction=seen.reads / seen.requests if seen.requests else None,
        flushes_per_second=None if seen.flushes is None else seen.flushes / seen.seconds,
        busy_share=None if seen.busy_seconds is None else seen.busy_seconds / seen.seconds,
    )


def windows_in(summary: IoSummary, hours: str) -> tuple[IoWindow, ...]:
    """The windows in `FROM-TO`, hours in UTC, the first included and the last not (22-6 wraps).

    Raises:
        InputError: `hours` is not of that form, or nothing was watched then.
    """
    words = hours.split("-")
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"--hours {hours}: write it as FROM-TO, such as 8-18 (UTC)")
    first, last = (int(word) for word in words)
    if first > 23 or last > 24 or first == last:
        raise InputError(f"--hours {hours}: hours are 0 to 23, and TO may be 24")
    asked = {hour % 24 for hour in range(first, last if last > first else last + 24)}
    found = tuple(one for one in summary.windows if hour_of(one) in asked)
    if not found:
        seen = ", ".join(str(each.hour) for each in day_profile(summary)) or "none"
        raise InputError(f"--hours {hours}: nothing was watched then; there are hours {seen}")
    return found
