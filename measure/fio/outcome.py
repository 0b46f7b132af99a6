"""What a run of fio says: performance, when it was measured, and whether it may be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_file import FioFile, find_files, load
from iojoule.datasets.importers.fio_stats import (
    PERCENTILES,
    Stats,
    direction_stats,
    percentile,
    together,
)
from iojoule.datasets.vocabulary import MixDispatch
from iojoule.measure.errors import FioError
from iojoule.measure.fio.job_file import LOG_PREFIX, LOG_STEP_MS
from iojoule.measure.fio.program import MESSAGES_FILE, RESULT_FILE, messages
from iojoule.measure.point import Point

_NS_PER_MS = 1_000_000
_LATE_NS = 25 * _NS_PER_MS


@dataclass(frozen=True)
class Outcome:
    """A run of fio.

    Attributes:
        observations: Fields of the schema.
        begin_unix_ns: When the measured part began, on CLOCK_REALTIME.
        end_unix_ns: When it ended.
        requests: Completed requests.
        littles_ratio: Throughput x mean latency / concurrency; None where it says nothing.
        usual_p999_ns: 99.9th percentile of latency, without as many of the slowest requests as
            one stall of the drive holds up; None where fio gave no histogram.
        pause_unix_ns: Begin and end of the longest time in which no job completed a request, as
            far as the steps of fio's log tell.
        notes: What fio remarked.
    """

    observations: Mapping[str, float]
    begin_unix_ns: int
    end_unix_ns: int
    requests: int
    littles_ratio: float | None
    usual_p999_ns: float | None
    pause_unix_ns: tuple[int, int]
    notes: tuple[str, ...]


def read_outcome(folder: Path, point: Point) -> Outcome:
    """Read what fio left in a run's folder.

    Raises:
        FioError: A job failed or did nothing, or the file is cut off.
    """
    try:
        file = load(find_files([folder / RESULT_FILE])[0])
    except InputError as error:
        raise FioError(f"{error.message}; {messages(folder)}") from None
    failed = [job for job in file.run.jobs if job.error]
    if failed:
        raise FioError(f"job {failed[0].jobname}: error {failed[0].error}: {messages(folder)}")
    directions = {
        name: [
            direction_stats(part) for job in file.run.jobs if (part := getattr(job, name)).total_ios
        ]
        for name in ("read", "write")
    }
    known = {name: together(parts) for name, parts in directions.items() if parts}
    if not known:
        raise FioError(f"not one request was completed: {messages(folder)}")
    total = together(list(known.values()))
    observations = _observed(total, "")
    if len(known) == 2:
        for name, stats in known.items():
            observations |= _observed(stats, f"{name}_")
    observations["context_switches_per_second"] = (
        sum(job.ctx for job in file.run.jobs) / total.runtime_seconds
    )
    # user plus system time in cores, as the importer of fio's files has it
    observations["cpu_utilisation"] = (
        sum((job.usr_cpu + job.sys_cpu) / 100 for job in file.run.jobs)
        / len(file.run.jobs)
        * _processes(point)
    )
    steps = _logged_ns(folder)
    begin, end = _window(folder, file, total.runtime_seconds, steps)
    return Outcome(
        observations,
        begin,
        end,
        total.requests,
        _littles_ratio(point, total),
        _usual_p999(point, total),
        _longest_pause(begin, begin + int(total.runtime_seconds * 1e9), steps),
        _notes(folder, file),
    )


def _observed(stats: Stats, prefix: str) -> dict[str, float]:
    found = {
        f"{prefix}throughput_bytes_per_second": stats.bytes_per_second,
        f"{prefix}iops": stats.iops,
    }
    if stats.mean_ns:
        found[f"{prefix}latency_mean_ns"] = stats.mean_ns
    for name in PERCENTILES:
        if stats.percentiles_ns.get(name):
            found[f"{prefix}latency_{name}_ns"] = stats.percentiles_ns[name]
    return found


def _littles_ratio(point: Point, total: Stats) -> float | None:
    workload, configuration = point.workload, point.configuration
    held_back = (
        workload.demand_bytes_per_second
        or workload.demand_operations_per_second
        or workload.think_time_ns
        or workload.flush_every_writes
    )
    if held_back or total.mean_ns is None:
        return None
    in_flight = configuration.queue_depth * configuration.jobs
    return total.iops * total.mean_ns * 1e-9 / in_flight


def _processes(point: Point) -> int:
    """How many processes fio runs: separated directions have jobs of their own."""
    separated = point.workload.mix_dispatch is MixDispatch.SEPARATED
    return point.configuration.jobs * (2 if separated else 1)


def _usual_p999(point: Point, total: Stats) -> float | None:
    if total.bins is None:
        return None
    bins = dict(total.bins)
    left = point.configuration.queue_depth * point.configuration.jobs
    for latency in sorted(bins, reverse=True):
        taken = min(left, bins[latency])
        bins[latency] -= taken
        left -= taken
    if not any(bins.values()):
        return min(bins)
    return percentile({latency: count for latency, count in bins.items() if count}, 99.9)


def _logged_ns(folder: Path) -> list[int]:
    """Ends of the steps of fio's log, of all jobs, in order; empty where it kept none.

    A step ends with the first completion after its time, so that a long one is a pause.
    """
    try:
        lines = (folder / f"{LOG_PREFIX}_bw.log").read_text().splitlines()
        return sorted({int(line.partition(",")[0]) * _NS_PER_MS for line in lines})
    except (OSError, ValueError):
        return []  # fewer requests than one step of the log


def _longest_pause(begin: int, end: int, steps: Sequence[int]) -> tuple[int, int]:
    # completions may have filled the step before the pause
    pauses = [
        (min(first + LOG_STEP_MS * _NS_PER_MS, last), last)
        for first, last in pairwise([begin, *steps, max([end, *steps])])
    ]
    return max(pauses, key=lambda pause: pause[1] - pause[0])


def _window(
    folder: Path, file: FioFile, runtime_seconds: float, steps: Sequence[int]
) -> tuple[int, int]:
    """A stretch on CLOCK_REALTIME that lies inside the measured part.

    Two times bound when it began from above: the first entry of fio's log, which bears the end of
    its step (fio may leave out steps before it), and the time at which fio wrote its result less
    the runtime (fio looks for ended jobs every 10 ms, fio 3.33 backend.c, do_usleep). The earlier
    one is late by less than `_LATE_NS`, by which the stretch ends sooner.
    """
    length = int(runtime_seconds * 1e9)
    begins = [_written_ns(folder, file) - length]
    if steps:
        begins.append(steps[0] - LOG_STEP_MS * _NS_PER_MS)
    begin = min(begins)
    return begin, begin + max(length - _LATE_NS, length // 2)


def _written_ns(folder: Path, file: FioFile) -> int:
    written = file.run.timestamp_ms
    if written is not None:
        return written * _NS_PER_MS
    return (folder / RESULT_FILE).stat().st_mtime_ns


def _notes(folder: Path, file: FioFile) -> tuple[str, ...]:
    try:
        said = (folder / MESSAGES_FILE).read_text(errors="replace").splitlines()
    except OSError:
        said = []
    return (*file.notes, *(line.strip() for line in said if line.strip()))
