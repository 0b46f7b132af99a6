"""The card's last section: every point that the profile was fitted on, beside what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.power_laws import measured
from iojoule.api.words.quantities import quantity, size
from iojoule.datasets.profile import DeviceProfile, PerformancePoints

HEADING = "Every fitted point"


def points_section(profile: DeviceProfile) -> Section:
    """Performance, the drive's watts and the CPU's, a table each."""
    blocks = [*_performance(profile), *_drive(profile), *_cpu(profile)]
    if not blocks:
        return Section(HEADING, (Text("No measured point was fitted, or none is kept."),))
    return Section(HEADING, tuple(blocks))


def _performance(profile: DeviceProfile) -> Iterator[Block]:
    assessment = profile.assessment
    points = assessment.performance if assessment is not None else []
    rows = [row for one in points for row in _rows(one)]
    if rows:
        yield Text(
            "Latency, observed over answered; throughput is off by the inverse of the mean latency."
            + _kept(sum(one.total for one in points), rows)
        )
        yield Table.of(
            ("workload", "request", "depth", "jobs", "host path", "session", "mean latency", "p99"),
            rows,
            (1, 2, 3, 6, 7),
        )


def _rows(points: PerformancePoints) -> Iterator[tuple[str, ...]]:
    for place, path in enumerate(points.path):
        p99 = points.p99[place]
        yield (
            f"{points.pattern} {points.operation}s",
            size(points.request_bytes[place]),
            str(points.queue_depth[place]),
            str(points.jobs[place]),
            path,
            "apart" if points.apart[place] else "steady",
            percent(np.expm1(points.latency[place]), sign=True),
            "-" if p99 is None else percent(np.expm1(p99), sign=True),
        )


def _drive(profile: DeviceProfile) -> Iterator[Block]:
    points = profile.assessment.power if profile.assessment is not None else None
    if points is None or profile.device_power is None:
        return
    _, watts = measured(profile.device_power, points)
    rows = [
        (
            f"PS{points.power_state[place]}",
            size(points.request_bytes[place]),
            quantity("bytes_per_second", points.read_bytes_per_second[place]),
            quantity("bytes_per_second", points.write_bytes_per_second[place]),
            percent(points.collecting[place], 0),
            quantity("watts", watts[place]),
            quantity("watts", watts[place] / np.exp(points.watts[place])),
            percent(np.expm1(points.watts[place]), sign=True),
        )
        for place in range(len(points.watts))
    ]
    yield Text("Watts of the drive." + _kept(points.total, rows))
    yield Table.of(
        ("state", "request", "reads", "writes", "background work", "observed", "answered", "off"),
        rows,
        range(1, 8),
    )


def _cpu(profile: DeviceProfile) -> Iterator[Block]:
    known = profile.host_power.points if profile.host_power is not None else []
    rows = [
        (
            f"{one.busy_cores:.3g}",
            f"{one.serving_cores:.3g}",
            f"{one.wakeups_per_second:,.0f}",
            quantity("watts", one.watts),
            quantity("watts", one.answered_watts),
            percent(one.watts / one.answered_watts - 1.0, sign=True),
            one.source,
        )
        for one in known
    ]
    if rows:
        yield Text("Watts of the CPU.")
        yield Table.of(
            ("cores busy", "serving", "wake-ups/s", "observed", "answered", "off", "source"),
            rows,
            range(6),
        )


def _kept(total: int, rows: Sequence[object]) -> str:
    return "" if len(rows) == total else f" {len(rows):,} of {total:,} are kept, evenly spread."
