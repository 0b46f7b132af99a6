"""What is compared: closed-loop points one by one, and series of writes by what marks them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.sim.calibration.gate import iops_of

Floats = NDArray[np.float64]

SERIES_ROWS = 20
"""As many rows over bytes written in one series and host are a series; fewer are points."""

REPEAT_SD = 0.02
"""Log sd of one run's throughput by chance (the gate leaves the unsteady ones out)."""

UNNAMED_HOST = "the host"


@dataclass(frozen=True)
class Point:
    """One configuration that ran in a closed loop, and what was observed.

    Attributes:
        measurement: The run, or the first of several repeats.
        host: Whose costs it has.
        iops: Requests a second, geometric mean over the repeats.
        latency_ns: Mean latency, NaN where none was observed.
        tails_ns: p50, p99 and p99.9, NaN where not observed.
        watts: Of the drive, NaN where not observed.
        held_out: Whether it is left out of the fit.
    """

    measurement: Measurement
    host: str
    iops: float
    latency_ns: float
    tails_ns: tuple[float, float, float]
    watts: float
    held_out: bool = False

    @property
    def concurrency(self) -> int:
        """Requests in flight."""
        return self.measurement.concurrency()

    def features(self) -> list[float]:
        """Where it stands: log2 of size, depth and jobs."""
        chosen = self.measurement.configuration
        return [math.log2(v) for v in (chosen.request_bytes, chosen.queue_depth, chosen.jobs)]


@dataclass(frozen=True)
class Series:
    """Writes of one kind going on until the drive has to collect garbage.

    Attributes:
        measurement: The first row.
        host: Whose costs it has.
        written: Host bytes written before each row, shape (n,).
        seconds: Duration of each row.
        bytes_per_second: Of the host, shape (n,).
        watts: Of the drive, NaN where not observed.
        held_out: Rows that are left out of the fit.
    """

    measurement: Measurement
    host: str
    written: Floats
    seconds: Floats
    bytes_per_second: Floats
    watts: Floats
    held_out: NDArray[np.bool_]


def points_and_series(
    measurements: Sequence[Measurement], held_out: Sequence[bool]
) -> tuple[list[Point], list[Series]]:
    """Sort what passed the gate; repeats of a configuration become one point.

    Args:
        measurements: What passed.
        held_out: Whether each is left out of the fit.
    """
    running: dict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(measurements):
        if each.workload.operation is Operation.WRITE and _written(each) is not None:
            about = each.conditions
            key = (about.host_id, about.series_id, about.session_id, each.configuration)
            running[str(key)].append(index)
    of_series = {i for rows in running.values() if len(rows) >= SERIES_ROWS for i in rows}
    alike: dict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(measurements):
        if index not in of_series:
            about = each.conditions
            alike[str((each.workload, each.configuration, about.host_id))].append(index)
    points = []
    for rows in alike.values():
        mean = _mean_point([measurements[index] for index in rows])
        points.append(replace(mean, held_out=any(held_out[index] for index in rows)))
    series = [
        _series([measurements[i] for i in rows], [held_out[i] for i in rows])
        for rows in running.values()
        if len(rows) >= SERIES_ROWS
    ]
    return points, series


def _written(each: Measurement) -> float | None:
    return each.state.host_bytes_written_since_purge


def _host(each: Measurement) -> str:
    return each.conditions.host_id or UNNAMED_HOST


def _mean_point(same: Sequence[Measurement]) -> Point:
    def mean(name: str) -> float:
        found = [value for one in same if (value := getattr(one.observations, name))]
        return float(np.exp(np.mean(np.log(found)))) if found else math.nan

    return Point(
        same[0],
        _host(same[0]),
        float(np.exp(np.mean([np.log(iops_of(one)) for one in same]))),
        mean("latency_mean_ns"),
        (mean("latency_p50_ns"), mean("latency_p99_ns"), mean("latency_p999_ns")),
        mean("device_power_watts"),
    )


def _series(rows: Sequence[Measurement], held_out: Sequence[bool]) -> Series:
    order = np.argsort([_written(each) or 0.0 for each in rows], kind="stable")
    written = np.array([_written(rows[i]) for i in order], dtype=float)
    rate = np.array([iops_of(rows[i]) * rows[i].configuration.request_bytes for i in order])
    seconds = np.empty(len(rows))
    seconds[:-1] = np.diff(written) / rate[:-1]
    seconds[-1] = seconds[:-1].mean()
    watts = [rows[i].observations.device_power_watts or math.nan for i in order]
    return Series(
        rows[order[0]], _host(rows[order[0]]), written, seconds, rate, np.array(watts),
        np.array([held_out[i] for i in order]),
    )  # fmt: skip


def hosts_of(points: Sequence[Point], series: Sequence[Series]) -> list[str]:
    """Every host that is named, in order."""
    return sorted({each.host for each in points} | {each.host for each in series})
