"""From what was seen of a workload's I/O to the question a recommendation answers."""

from __future__ import annotations

from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import IoSummary, IoWindow
from iojoule.datasets.vocabulary import Pattern, Scheduler
from iojoule.recommender.request import Loop, WorkloadProfile, parse_workload, with_loop
from iojoule.recommender.workloads.sizes import percent_text

SEQUENTIAL_SHARE = 0.5
"""From this share of requests on that begin where another ended, the workload is sequential."""

GAP_TIME_SHARE = 0.01
"""Gaps that take less of the time than this do not make bursts."""

BLOCK_BYTES = 512


def from_summary(
    summary: IoSummary,
    *,
    windows: tuple[IoWindow, ...] | None = None,
    loop: Loop | None = None,
    pattern: Pattern | None = None,
    same_drive: bool = False,
) -> WorkloadProfile:
    """The workload that was seen.

    Args:
        summary: What was seen.
        windows: Only these of its windows.
        loop: Whether the rate is a demand; None: it is, where the source tells times.
        pattern: Order of the addresses where the source does not tell.
        same_drive: Whether the question is about the drive that was seen: its latency is known.

    Raises:
        InputError: Nothing was read or written, or an open loop is asked of a source without
            times.
    """
    seen = summary.pooled(windows)
    if seen.requests == 0:
        raise InputError(
            f"{summary.name}: nothing was read or written"
            + (f" in {seen.seconds:.1f} s; observe while it works" if seen.seconds else "")
        )
    notes = list(summary.notes)
    workload = _mix(seen, notes) | _flushes(seen, notes) | _pattern(seen, pattern)
    if seen.seconds is not None:
        workload |= _arrival(seen, notes)
        workload["demand_bytes_per_second"] = _rounded(seen.bytes / seen.seconds)
        if loop is not Loop.CLOSED:
            _tell_saturation(seen, notes)
    if seen.span_bytes:
        workload["working_set_bytes"] = float(seen.touched_bytes or seen.span_bytes)
    if seen.discards:
        notes.append(f"{seen.discards} requests to discard are left out")
    data = {
        "name": summary.name,
        "workload": workload,
        "current": _current(summary, seen, notes),
        **_observed(seen, notes, same_drive=same_drive),
        "notes": tuple(notes),
    }
    return with_loop(parse_workload(data, summary.name), loop)


def _observed(seen: IoWindow, notes: list[str], *, same_drive: bool) -> dict[str, Any]:
    """The mean latency, which is that of one drive."""
    mean = seen.latency_mean_seconds
    if mean is None or seen.seconds is None:
        return {}
    latency = {"latency_mean_ns": _rounded(1e9 * mean)}
    if same_drive:
        return {"observed": latency}
    notes.append(
        f"requests took {1e6 * mean:.4g} us in the mean; where the question is about the same "
        f"drive, state observed.latency_mean_ns = {latency['latency_mean_ns']:g}"
    )
    return {}


def _rounded(value: float) -> float:
    """Six significant digits: a count over a time tells no more."""
    return float(f"{value:.6g}")


def _mix(seen: IoWindow, notes: list[str]) -> dict[str, Any]:
    """Operation, share and size: one request size that keeps requests and bytes as they were."""
    found: dict[str, Any] = {"operation": "read" if not seen.writes else "write"}
    if seen.reads and seen.writes:
        found = {"operation": "mixed", "read_fraction": _rounded(seen.reads / seen.requests)}
    mean = seen.bytes / seen.requests
    found["useful_request_bytes"] = max(BLOCK_BYTES, round(mean / BLOCK_BYTES) * BLOCK_BYTES)
    sizes = _sizes(seen)
    if sizes and (mix := percent_text(sizes)) is not None:
        found["request_bytes_mix"] = mix
        notes.append(
            f"request sizes are mixed: useful_request_bytes is their mean, {mean:.0f} bytes in "
            "whole blocks of 512, which keeps both the requests and the bytes a second"
        )
    if seen.reads and seen.writes:
        read, write = seen.read_bytes / seen.reads, seen.write_bytes / seen.writes
        if abs(read - write) > 0.1 * max(read, write):
            notes.append(
                f"reads have {read:.0f} bytes in the mean and writes {write:.0f}; a profile has "
                "one size for both"
            )
    return found


def _sizes(seen: IoWindow) -> dict[int, float]:
    """Requests by size, each direction weighed by how many it has in all."""
    together: dict[int, float] = {}
    for sizes, number in ((seen.read_sizes, seen.reads), (seen.write_sizes, seen.writes)):
        known = sum(sizes.values())
        for size, count in sizes.items():
            together[size] = together.get(size, 0.0) + count * number / known
    return together


def _flushes(seen: IoWindow, notes: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if seen.flushes and seen.writes:
        each = seen.writes / seen.flushes
        found["flush_every_writes"] = max(1, round(each))
        rate = f", {seen.flushes / seen.seconds:.6g} a second" if seen.seconds else ""
        notes.append(f"{seen.flushes} flushes{rate}: one for every {each:.3g} writes")
    elif seen.flushes:
        notes.append(f"{seen.flushes} flushes without a write are left out")
    if seen.forced_writes:
        share = seen.forced_writes / max(1, seen.writes)
        if share > 0.5:
            found["force_unit_access"] = True
        notes.append(f"{share:.1%} of the writes have forced unit access")
    return found


def _pattern(seen: IoWindow, stated: Pattern | None) -> dict[str, Any]:
    if stated is not None:
        return {"pattern": stated.value}
    sequential = (seen.sequential_share or 0.0) >= SEQUENTIAL_SHARE
    return {"pattern": (Pattern.SEQUENTIAL if sequential else Pattern.RANDOM).value}


def _arrival(seen: IoWindow, notes: list[str]) -> dict[str, Any]:
    """Bursts and gaps, where the gaps take a part of the time that matters."""
    gaps = seen.gaps
    if gaps is None or seen.seconds is None:
        return {}
    if gaps.total < GAP_TIME_SHARE * seen.seconds:
        return {"arrival_process": "steady"}
    found: dict[str, Any] = {
        "arrival_process": "bursts",
        "burst_bytes": _rounded(seen.bytes / (gaps.count + seen.unsure_gaps)),
        "idle_gap_seconds_p50": _rounded(gaps.percentile(50) or 0.0),
        "idle_gap_seconds_p99": _rounded(gaps.percentile(99) or 0.0),
    }
    if seen.unsure_gaps:
        notes.append(
            f"of {seen.unsure_gaps} further gaps the length is not known: a reading came late, as "
            "the host was busy"
        )
    if (seen.resolution_seconds or 0.0) > seen.gap_floor_seconds / 2:
        notes.append(
            f"readings came up to {1e3 * (seen.resolution_seconds or 0.0):.1f} ms apart, as the "
            "host was busy: gaps are known to within that"
        )
    if gaps.count < 100:
        notes.append(
            f"the 99th percentile of {gaps.count} gaps is the longest of them; observe longer to "
            "know it"
        )
    return found


def _tell_saturation(seen: IoWindow, notes: list[str]) -> None:
    busy = seen.busy_seconds
    if busy is not None and seen.seconds is not None and busy > 0.95 * seen.seconds:
        notes.append(
            f"the drive was busy {busy / seen.seconds:.0%} of the time: the application may want "
            "more than it got; --loop closed asks for as much as the drive can do"
        )


def _current(summary: IoSummary, seen: IoWindow, notes: list[str]) -> dict[str, Any]:
    """What runs today as far as the drive shows it: requests in flight, scheduler."""
    found: dict[str, Any] = {}
    depth = seen.mean_in_flight
    if depth is not None:
        found |= {"queue_depth": max(1, round(depth)), "jobs": 1}
        notes.append(
            f"{depth:.2f} requests in flight in the mean while there are any, "
            f"{max(seen.in_flight)} at most; taken as one job of that depth: state the engine, "
            "jobs and depth that run today in [current], and concurrency_max where the application "
            "cannot keep more in flight"
        )
    if summary.scheduler in list(Scheduler):
        found["scheduler"] = summary.scheduler
    return found
