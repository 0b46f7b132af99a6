"""Selects the measurements that a calibration compares: closed-loop points and write series."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.littles_law import FAIL_ABOVE
from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import usable
from iojoule.datasets.vocabulary import Operation
from iojoule.model.evaluate.bands import Floats
from iojoule.sim.against import SECTOR_BYTES, held_back, without_costs

UNSTEADY = "unsteady"
"""A session with this word in its id is labelled as such."""

REPEATS_APART = 0.25
"""Runs of one configuration further apart than this contradict each other."""


@dataclass(frozen=True)
class Excluded:
    """A measurement that is left out.

    Attributes:
        index: Its place among the measurements, from 0.
        what: What it is, for people.
        reason: Why it is left out.
    """

    index: int
    what: str
    reason: str


def gate(measurements: Sequence[Measurement]) -> tuple[list[int], list[Excluded], list[str]]:
    """The measurements that may be used, those that may not, and what else is to be doubted.

    Returns:
        Indices of the usable ones, the excluded ones, and a sentence for every configuration whose
        usable repeats contradict each other.
    """
    kept: list[int] = []
    excluded: list[Excluded] = []
    for index, each in enumerate(measurements):
        reason = _reason(each)
        if reason is None:
            kept.append(index)
        else:
            excluded.append(Excluded(index, described(each), reason))
    return kept, excluded, list(_contradictions([measurements[index] for index in kept]))


def _reason(each: Measurement) -> str | None:
    seen, conditions = each.observations, each.conditions
    ratio = each.littles_ratio()
    if not usable([each]).measurements:
        return f"its campaign calls it {each.judgement.verdict}: {each.judgement.verdict_reasons}"
    if UNSTEADY in (conditions.session_id or ""):
        return f"session {conditions.session_id} is labelled unsteady"
    if conditions.thermal_throttle_seconds:
        return f"the drive throttled for {conditions.thermal_throttle_seconds:g} s"
    if conditions.power_state_verified is False:
        return "nobody verified its power state"
    if ratio is not None and abs(ratio - 1) > FAIL_ABOVE and not held_back(each):
        return f"throughput x latency / concurrency is {ratio:.3f}, off Little's law"
    if not seen.throughput_bytes_per_second and not seen.iops:
        return "it has no throughput"
    return _not_simulated(each)


def _not_simulated(each: Measurement) -> str | None:
    """What of a good run the simulated host and drive do not have."""
    if each.workload.operation is Operation.MIXED or each.workload.request_bytes_mix:
        return "mixed runs are not simulated here"
    if held_back(each):
        return "a rate, a think time or flushes held it back"
    if each.configuration.request_bytes % SECTOR_BYTES:
        return f"its size is no multiple of {SECTOR_BYTES} bytes"
    if (each.conditions.cpu_cores_available or each.configuration.jobs) < each.configuration.jobs:
        return "more jobs than cores: it tells of the host's scheduling"
    if each.configuration.scheduler not in (None, "none"):
        return f"the simulated host has no scheduler {each.configuration.scheduler}"
    if each.configuration.power_state or each.configuration.power_limit_watts:
        return "the drive was in a power state or under a limit below its fastest"
    return without_costs(each)


def described(each: Measurement) -> str:
    """A measurement in a few words."""
    chosen, about = each.configuration, each.conditions
    engine = chosen.engine.value if chosen.engine else "any engine"
    place = about.session_id or about.series_id or "no session"
    return (
        f"{each.workload.pattern} {each.workload.operation} of {chosen.request_bytes} bytes, depth "
        f"{chosen.queue_depth} x {chosen.jobs}, {engine}, {place}"
    )


def _contradictions(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Configurations whose runs differ by more than chance; series over time are no repeats."""
    alike: dict[str, list[Measurement]] = defaultdict(list)
    for each in measurements:
        if each.state.host_bytes_written_since_purge is None:
            key = (each.workload, each.configuration, each.state, each.conditions.host_id)
            alike[
                "|".join(
                    part if isinstance(part, str) else part.model_dump_json()
                    for part in key
                    if part is not None
                )
            ].append(each)
    for same in alike.values():
        rates = [iops_of(one) for one in same]
        if len(rates) > 1 and max(rates) > (1 + REPEATS_APART) * min(rates):
            yield (
                f"{described(same[0])}: {len(rates)} runs between {min(rates):.0f} and "
                f"{max(rates):.0f} IOPS (median {median(rates):.0f}) contradict each other; leave "
                "the wrong session out"
            )


def iops_of(each: Measurement) -> float:
    """Requests a second, from the bytes where they are not stated."""
    seen = each.observations
    if seen.iops:
        return seen.iops
    return (seen.throughput_bytes_per_second or 0.0) / each.configuration.request_bytes


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
        rows[order[0]],
        _host(rows[order[0]]),
        written,
        seconds,
        rate,
        np.array(watts),
        np.array([held_out[i] for i in order]),
    )


def hosts_of(points: Sequence[Point], series: Sequence[Series]) -> list[str]:
    """Every host that is named, in order."""
    return sorted({each.host for each in points} | {each.host for each in series})
