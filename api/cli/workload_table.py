"""A workload profile, and what was seen of the workload, for people."""

from __future__ import annotations

from typing import Any

from iojoule.api.cli import console
from iojoule.api.words.quantities import digits, quantity, size
from iojoule.datasets.io_summary import IoSummary, IoWindow, LogHistogram
from iojoule.recommender.workload import WorkloadProfile

PERCENTS = (1, 50, 90, 99)
_SIZES = ("useful_request_bytes", "request_bytes", "request_bytes_coalescible")


def parts(profile: WorkloadProfile, summary: IoSummary | None) -> list[Any]:
    """Tables and lines in the order they are printed."""
    loop = "closed loop" if profile.as_fast_as_possible else "open loop: a demand to be met"
    table = console.new_table(["field", "value"], title=f"{profile.name} ({loop})")
    for section in ("workload", "current"):
        stated = getattr(profile, section).model_dump(mode="json", exclude_none=True)
        for name, value in stated.items():
            table.add_row(f"{section}.{name}", _shown(name, value))
    if profile.concurrency_max is not None:
        table.add_row("concurrency_max", str(profile.concurrency_max))
    found: list[Any] = [table]
    if summary is not None:
        found += _seen(summary.pooled())
    return found + [f"note: {note}" for note in profile.notes]


def _shown(name: str, value: Any) -> str:
    if name in _SIZES:
        return size(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return quantity("seconds" if "_seconds_p" in name else name, float(value))


def _seen(window: IoWindow) -> list[Any]:
    """Percentiles of gaps and bursts, where there are any, and how long was watched."""
    table = console.new_table(["seen", "how many", *(f"p{each}" for each in PERCENTS)])
    for name, field, histogram in (
        ("gaps", "seconds", window.gaps),
        ("bursts", "bytes", window.bursts),
    ):
        if histogram is not None and histogram.count:
            table.add_row(name, str(histogram.count), *_percentiles(field, histogram))
    lines: list[Any] = ["", table] if table.row_count else []
    if window.seconds is not None:
        busy = window.busy_seconds
        share = "" if busy is None else f", busy {digits(100 * busy / window.seconds)} % of them"
        lines.append(
            f"{window.reads} reads and {window.writes} writes in {digits(window.seconds)} s{share}"
        )
    return lines


def _percentiles(field: str, histogram: LogHistogram) -> list[str]:
    return [quantity(field, histogram.percentile(each)) for each in PERCENTS]
