"""Measurements of one operation and pattern as arrays, ready for fitting."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import path_key
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Completion, Engine, Scheduler, depth_at_drive
from iojoule.model.evaluate.bands import Floats

Strings = NDArray[np.object_]

APART = ("unsteady", "published")
"""A session whose id contains one of these words stands apart: it may differ freely from the
others (unsteady runs, points taken from a text) and moves them little."""

PUBLISHED = "published"
"""A session whose id starts with this word holds published points, not measurements."""

BY_RATE = 0.75
"""Weight of the rate: it counts every request, while the clocks leave out what fio itself takes."""

PERCENTILES = ("p50", "p99", "p999")

SETTINGS = (
    "request_bytes",
    "queue_depth",
    "jobs",
    "engine",
    "completion",
    "submission_polling",
    "scheduler",
)
"""What a host sets for a run, but for the power state."""


@dataclass(frozen=True)
class Rows:
    """n measurements, one array each; latencies in ns, NaN where not observed.

    `latency_ns` is the geometric mean, weighted by `BY_RATE`, of concurrency / IOPS and of the
    observed mean latency, which Little's law says are equal and which differ by the few percent
    that fio spends outside its own clocks; either alone where the other is missing.
    `relative_sd` is what one row may be off by chance, and weighs it.
    """

    request_bytes: Floats
    queue_depth: Floats
    jobs: Floats
    engine: Strings
    completion: Strings
    submission_polling: Strings
    scheduler: Strings
    session: Strings
    cores: Floats
    iops: Floats
    mean_ns: Floats
    latency_ns: Floats
    p50: Floats
    p99: Floats
    p999: Floats
    cpu_cores: Floats
    relative_sd: Floats

    def __len__(self) -> int:
        return len(self.request_bytes)

    def take(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """Keep the rows where `mask` is true, or those of the given indices."""
        return replace(
            self, **{field.name: getattr(self, field.name)[mask] for field in fields(self)}
        )

    def path(self) -> list[tuple[str, str, bool]]:
        """Engine, completion and submission polling of each row."""
        return [
            (str(engine), str(completion), bool(polling))
            for engine, completion, polling in zip(
                self.engine, self.completion, self.submission_polling, strict=True
            )
        ]

    def path_keys(self) -> list[str]:
        """Name of the host path of each row, scheduler included."""
        return [
            path_key(*path, str(scheduler))
            for path, scheduler in zip(self.path(), self.scheduler, strict=True)
        ]

    def series(self) -> list[tuple[str, str]]:
        """Host path and session of each row."""
        return list(zip(self.path_keys(), map(str, self.session), strict=True))

    def percentile(self, name: str) -> Floats:
        """Return an observed percentile, ns."""
        values: Floats = getattr(self, name)
        return values


def stands_apart(session: str) -> bool:
    """Whether a session's id says that it differs from the others in more than chance."""
    return any(word in session for word in APART)


def rows_of(measurements: list[Measurement], *, host_cores: int, relative_sd: float = 0.03) -> Rows:
    """Collect measurements that observed throughput or latency.

    Args:
        measurements: All of one operation and pattern.
        host_cores: Cores of the reference host, where a row does not say its own.
        relative_sd: Chance error of one row where nothing else is known.
    """
    table: dict[str, list[object]] = {field.name: [] for field in fields(Rows)}
    for measurement in measurements:
        seen, chosen = measurement.observations, measurement.configuration
        depth = depth_at_drive(chosen.engine, chosen.queue_depth)
        queued = chosen.queue_depth / depth  # for each request at the drive
        concurrency = depth * chosen.jobs
        by_rate = concurrency / seen.iops * 1e9 if seen.iops else None
        by_clock = seen.latency_mean_ns / queued if seen.latency_mean_ns else None
        if by_rate is None and by_clock is None:
            continue
        log_rate, log_clock = np.log([by_rate or by_clock or 0.0, by_clock or by_rate or 0.0])
        latency = np.exp(BY_RATE * log_rate + (1.0 - BY_RATE) * log_clock)
        engine = chosen.engine or Engine.LIBAIO
        completion = chosen.completion or (
            Completion.POLLED if engine is Engine.SPDK else Completion.INTERRUPT
        )
        table["request_bytes"].append(chosen.request_bytes)
        table["queue_depth"].append(depth)
        table["jobs"].append(chosen.jobs)
        table["engine"].append(engine.value)
        table["completion"].append(completion.value)
        table["submission_polling"].append(bool(chosen.submission_polling))
        table["scheduler"].append((chosen.scheduler or Scheduler.NONE).value)
        table["session"].append(measurement.conditions.session)
        table["cores"].append(measurement.conditions.cpu_cores_available or host_cores)
        table["iops"].append(seen.iops if seen.iops else concurrency / latency * 1e9)
        table["mean_ns"].append(by_clock if by_clock else latency)
        table["latency_ns"].append(latency)
        for name in PERCENTILES:
            percentile = getattr(seen, f"latency_{name}_ns")
            table[name].append(percentile / queued if percentile else np.nan)
        table["cpu_cores"].append(seen.cpu_utilisation or np.nan)
        table["relative_sd"].append(relative_sd)
    text = {"engine", "completion", "submission_polling", "scheduler", "session"}
    return Rows(
        **{
            name: np.array(values, dtype=object if name in text else np.float64)
            for name, values in table.items()
        }
    )


def join(parts: list[Rows]) -> Rows:
    """Concatenate rows."""
    return Rows(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Rows)
        }
    )


def sample(rows: Rows, most: int) -> Rows:
    """At most `most` rows, drawn at random but with every session, host path and extreme."""
    if len(rows) <= most:
        return rows
    keep = np.zeros(len(rows), dtype=bool)
    keep[np.random.default_rng(0).permutation(len(rows))[:most]] = True
    kinds = np.array([f"{path} {s}" for path, s in rows.series()])
    keep[np.unique(kinds, return_index=True)[1]] = True
    for name in ("request_bytes", "queue_depth", "jobs"):
        keep[[np.argmin(getattr(rows, name)), np.argmax(getattr(rows, name))]] = True
    return rows.take(keep)


def average_repeats(rows: Rows) -> Rows:
    """Merge rows of one configuration and session into their geometric mean.

    Repeats tell about chance, not about more of the surface; without this a series of 600
    seconds at one point would drown a sweep.
    """
    numbers = ["iops", "mean_ns", "latency_ns", "p50", "p99", "p999", "cpu_cores"]
    keys: dict[tuple[object, ...], list[int]] = {}
    for index in range(len(rows)):
        key = (
            rows.request_bytes[index],
            rows.queue_depth[index],
            rows.jobs[index],
            rows.engine[index],
            rows.completion[index],
            rows.submission_polling[index],
            rows.scheduler[index],
            rows.session[index],
            rows.cores[index],
        )
        keys.setdefault(key, []).append(index)
    first = np.array([members[0] for members in keys.values()], dtype=np.intp)
    merged = {field.name: getattr(rows, field.name)[first] for field in fields(Rows)}
    for name in numbers:
        values = getattr(rows, name)
        merged[name] = np.array(
            [np.exp(np.mean(np.log(values[members]))) for members in keys.values()]
        )
    return Rows(**merged)
