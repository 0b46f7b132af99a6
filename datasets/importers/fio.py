"""fio's JSON as measurements: `iojoule import fio PATH...`.

Jobs that ran side by side become one measurement, jobs that ran one after the other several.
Rates add over jobs and directions; the mean latency is fio's `lat` (submission plus completion),
weighted by completed requests; percentiles are fio's `clat` (completion alone) unless it was asked
for `lat_percentiles`, merged exactly over jobs from json+ histograms and never averaged.

fio's JSON leaves out switches that were given without a value (`stonewall`, `group_reporting`,
`hipri`, ...), so what they did is read off the groups, the number of entries and the times.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.fio_file import (
    PERCENTILES,
    FioFile,
    FioJob,
    Stats,
    direction_stats,
    find_files,
    load,
    together,
)
from iojoule.datasets.importers.fio_options import JobSetup, job_setup
from iojoule.datasets.littles_law import FAIL_ABOVE, WARN_ABOVE, littles_message
from iojoule.datasets.provenance import Provenance, SourceFile
from iojoule.datasets.schema import from_row
from iojoule.datasets.store import Dataset

DIRECTIONS = ("read", "write", "mixed")


@dataclass(frozen=True)
class Entry:
    """One entry of fio's `jobs`.

    Attributes:
        job: What fio wrote.
        options: Its options and the global ones.
        setup: What it was asked to do.
        clones: How many jobs the entry stands for (group_reporting merges them).
        stats: What it achieved, by direction; `mixed` where fio was told to unify them.
        where: File and job, for messages.
    """

    job: FioJob
    options: Mapping[str, str]
    setup: JobSetup
    clones: int
    stats: Mapping[str, Stats]
    where: str

    @property
    def total(self) -> Stats:
        """All directions together."""
        return together(list(self.stats.values()))

    @property
    def in_flight(self) -> int:
        """Requests the entry may have in flight."""
        return int(self.clones * self.setup.fields["queue_depth"])


def phases(file: FioFile) -> list[list[FioJob]]:
    """Split a run into what ran one after the other; each part is one measurement.

    Raises:
        InputError: The file does not tell which jobs ran side by side.
    """
    jobs = file.run.jobs
    parts: list[list[FioJob]] = [[jobs[0]]]
    unclear = False
    for before, job in pairwise(jobs):
        options = _options(file, job)
        waits = "wait_for" in job.options and job.options != before.options
        waits = waits or (job.groupid != before.groupid and _switch(options, "stonewall"))
        grouped = job.groupid == before.groupid or _switch(options, "new_group")
        if grouped and not waits:
            parts[-1].append(job)
        else:
            unclear = unclear or not waits
            parts.append([job])
    return _timed(file, parts) if unclear else parts


def _timed(file: FioFile, parts: list[list[FioJob]]) -> list[list[FioJob]]:
    """Decide by the clock whether groups ran one after the other (stonewall) or side by side."""
    seconds = [max(_runtime_ms(job) for job in part) / 1000 for part in parts]
    starts = [part[0].job_start for part in parts]
    if all(start is not None for start in starts):
        known = [start or 0 for start in starts]
        if all(known[i] + seconds[i] * 950 <= known[i + 1] for i in range(len(parts) - 1)):
            return parts
    elapsed = file.run.jobs[0].elapsed or sum(seconds)
    if elapsed >= 0.95 * sum(seconds):
        return parts
    if elapsed <= 1.1 * max(seconds) + 1:
        return [[job for part in parts for job in part]]
    names = ", ".join(part[0].jobname for part in parts)
    raise InputError(
        f"{file.path}: jobs {names}: the file does not tell which of them ran side by side; write "
        "stonewall=1 or new_group=1 (with a value, or fio does not record it), or one run a file"
    )


def entries(file: FioFile, part: Sequence[FioJob]) -> list[Entry]:
    """Read the jobs of one measurement.

    Raises:
        DataQualityError: A job failed, did nothing, or was merged with other jobs.
        InputError: A job did what a measurement cannot express.
    """
    entries: list[Entry] = []
    families = Counter(_family(job) for job in part)
    for job in part:
        where = f"{file.path}, job {job.jobname!r}"
        if job.error:
            raise DataQualityError(
                f"{where}: fio reports error {job.error}{_reason(job.error)}; correct the "
                "job and run it again"
            )
        if not file.run.global_options and not job.options:
            raise InputError(
                f"{where}: this version ({file.run.version}) does not record the job's options; "
                "run a newer fio, or import a table with a column map"
            )
        options = _options(file, job)
        setup = job_setup(options, where)
        stats = _stats(job, setup, where)
        clones = _clones(job, setup, families[_family(job)], where)
        entries.append(Entry(job, options, setup, clones, stats, where))
    return entries


def _stats(job: FioJob, setup: JobSetup, where: str) -> dict[str, Stats]:
    if job.trim.total_ios:
        raise InputError(f"{where}: trims; only reads and writes can be imported")
    stats = {
        name: direction_stats(direction)
        for name in DIRECTIONS
        if (direction := getattr(job, name)) is not None and direction.total_ios
    }
    if "mixed" in stats and len(stats) > 1:  # unified_rw_reporting=both
        del stats["mixed"]
    if not stats or not any(item.runtime_seconds and item.iops for item in stats.values()):
        raise DataQualityError(
            f"{where}: no request completed in a measurable time (runtime 0); run it for longer"
        )
    operation = setup.fields["operation"]
    if operation != "mixed" and stats.keys() - {operation, "mixed"}:
        raise DataQualityError(
            f"{where}: asked to {operation}, but did {' and '.join(stats)}: group_reporting merged "
            "it with other jobs; run without group_reporting"
        )
    return stats


def _clones(job: FioJob, setup: JobSetup, entries_alike: int, where: str) -> int:
    """How many jobs an entry stands for."""
    if entries_alike % setup.numjobs == 0:
        clones = 1
    elif entries_alike == 1:
        clones = setup.numjobs
    else:
        raise DataQualityError(
            f"{where}: {entries_alike} entries for numjobs={setup.numjobs}: some jobs are missing; "
            "run it again"
        )
    runtime = _runtime_ms(job)
    if job.job_runtime and runtime and job.job_runtime > 1.4 * clones * runtime:
        raise DataQualityError(
            f"{where}: stands for about {job.job_runtime / runtime:.0f} jobs where its options "
            f"say {clones}: group_reporting merged it with other jobs; run without group_reporting"
        )
    return clones


def combined(members: Sequence[Entry]) -> tuple[dict[str, Any], dict[str, Stats]]:
    """Workload, configuration and results of jobs that ran side by side.

    Clones add up to more jobs. Readers beside writers of the same size, depth and engine become
    a mixed workload that sends its directions separately.

    Returns:
        Fields of the schema, and the results by direction.

    Raises:
        InputError: The jobs differ in a way the schema cannot express; names them and the option.
        DataQualityError: They did not run side by side for most of the time.
    """
    _require_one_drive(members)
    _require_overlap(members)
    first = members[0].setup.fields
    differing = sorted(
        {
            name
            for member in members
            for name in (first.keys() | member.setup.fields.keys()) - {"cpu_cores_available"}
            if member.setup.fields.get(name) != first.get(name)
        }
    )
    separated = differing in (["operation"], ["flush_every_writes", "operation"]) and {
        member.setup.fields["operation"] for member in members
    } == {"read", "write"}
    held_back = any(member.setup.held_back for member in members)
    if differing and (not separated or held_back):
        rate = ", held back by a rate or a think time" if separated else ""
        raise InputError(
            f"{members[0].where}: ran beside {_names(members[1:])} with another "
            f"{', '.join(differing)}{rate}; one measurement cannot hold both: run them one after "
            "the other (stonewall) or alike"
        )
    stats = {
        name: together(present)
        for name in DIRECTIONS
        if (present := [member.stats[name] for member in members if name in member.stats])
    }
    jobs = sum(member.clones for member in members)
    fields: dict[str, Any] = {**first, "jobs": jobs}
    if separated:
        writer = next(m for m in members if m.setup.fields["operation"] == "write")
        total = sum(item.iops for item in stats.values())
        fields |= {**writer.setup.fields, "jobs": jobs, "operation": "mixed"}
        fields |= {"mix_dispatch": "separated", "read_fraction": stats["read"].iops / total}
    for demand in ("demand_bytes_per_second", "demand_operations_per_second"):
        if demand in fields:
            fields[demand] *= jobs
    if len({member.job.options.get("cpus_allowed") for member in members}) > 1:
        fields.pop("cpu_cores_available", None)  # each job had cores of its own
    return fields, stats


def _require_one_drive(members: Sequence[Entry]) -> None:
    drives = set().union(*(member.setup.devices for member in members))
    if len(drives) > 1:
        raise InputError(
            f"{members[0].where}: ran on {', '.join(sorted(drives))} at once; a measurement is "
            "about one drive: run them one after the other"
        )


def _require_overlap(members: Sequence[Entry]) -> None:
    runtimes = [member.total.runtime_seconds for member in members]
    delays = {member.job.options.get("startdelay", "0") for member in members}
    if max(runtimes) > 1.25 * min(runtimes) or len(delays) > 1:
        raise DataQualityError(
            f"{members[0].where}: ran beside {_names(members[1:])} only part of the time "
            f"({min(runtimes):.1f} to {max(runtimes):.1f} s), so their rates do not add; give all "
            "the same runtime (time_based) and start"
        )


def _names(members: Sequence[Entry]) -> str:
    return ", ".join(dict.fromkeys(repr(member.job.jobname) for member in members))


def _reason(error: int) -> str:
    return f" ({os.strerror(error)})" if error in errno.errorcode else ""


def _options(file: FioFile, job: FioJob) -> dict[str, str]:
    return {**file.run.global_options, **job.options}


def _family(job: FioJob) -> tuple[object, ...]:
    return (job.jobname, job.groupid, *sorted(job.options.items()))


def _switch(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0") not in ("0", "false")


def _runtime_ms(job: FioJob) -> int:
    return max(part.runtime for part in (job.read, job.write, job.mixed) if part is not None)


_COUNTERS_FROM_SECONDS = 30.0
"""fio samples the device's counters every quarter of a second and misses the end of a run."""

_SLEEPS_PER_REQUEST = 0.5
"""Context switches per request from which on a job slept, so it cannot have polled."""


def import_fio(
    paths: Sequence[Path | str],
    keep_going: bool = False,
    *,
    constants: Mapping[str, Any] | None = None,
) -> Dataset:
    """Read runs of fio 2 and 3, JSON or JSON+.

    Args:
        paths: Files, or folders that are searched for *.json and for files that hold fio's JSON.
        keep_going: Leave out the runs that cannot be imported and name them in the warnings.
        constants: Fields that the files do not state, for instance device_model or power_state;
            what a file states itself stays.

    Returns:
        One measurement per set of jobs that ran side by side, in the order of the files. The
        warnings say what was not in force, not recorded or doubtful. `cpu_utilisation` is user
        plus system time in cores, `context_switches_per_second` covers all jobs. Names of files
        and folders are kept without the path to them.

    Raises:
        DataQualityError: A run failed, is cut off, or is more than 8 % off Little's law.
        InputError: A file is not fio's, or did what a measurement cannot express; the message
            names file, job, option and remedy.
    """
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    sources: list[SourceFile] = []
    for json_file in find_files([Path(path) for path in paths]):
        try:
            file = load(json_file)
            sources.append(SourceFile.of(file.path, name=file.name))
            parts = phases(file)
        except InputError as error:
            _skip_or_raise(error, keep_going, json_file.path, json_file.name, warnings)
            continue
        warnings += file.notes
        for part in parts:
            try:
                row, notes = measurement(file, entries(file, part), len(parts) == 1)
                row = {**(constants or {}), **row}
                from_row(row, where=f"{file.path}, job {part[0].jobname!r}")
            except InputError as error:
                _skip_or_raise(error, keep_going, json_file.path, json_file.name, warnings)
                continue
            rows.append(row)
            warnings += notes
    if not rows:
        raise InputError(f"nothing could be imported: {'; '.join(warnings)}")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    provenance = Provenance(importer="fio", sources=tuple(sources), warnings=tuple(warnings))
    return Dataset.from_columns(columns, provenance)


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it; raises as `import_fio`."""
    return import_fio(paths, options.keep_going, constants=options.constants)


def _skip_or_raise(
    error: InputError, keep_going: bool, path: Path, name: str, warnings: list[str]
) -> None:
    if not keep_going:
        raise error
    warnings.append(f"skipped: {error.message.replace(str(path), name)}")


def measurement(
    file: FioFile, members: list[Entry], alone: bool
) -> tuple[dict[str, Any], list[str]]:
    """One row of the schema from the jobs that ran side by side, and what is to be said of it.

    Args:
        file: What holds them.
        members: The jobs.
        alone: Whether the file holds no other jobs, so that its counters of the drive are theirs.

    Raises:
        DataQualityError: They are more than 8 % off Little's law.
        InputError: They differ in a way that one measurement cannot express.
    """
    notes = [
        f"{file.name}, job {m.job.jobname!r}: {note}" for m in members for note in m.setup.notes
    ]
    for member in members:
        notes += _littles_law(file, member)
    fields, stats = combined(members)
    total = together(list(stats.values()))
    where = f"{file.name}, job {members[0].job.jobname!r}"
    row = {**fields, **_observed(total, "")}
    if fields["operation"] == "mixed":
        for direction in ("read", "write"):
            if direction in stats:
                row |= _observed(stats[direction], f"{direction}_")
    row["series_id"] = file.series
    if total.mean_ns is None:
        notes.append(f"{where}: latencies were not measured (disable_lat, gtod_reduce)")
    elif total.doubtful:
        notes.append(f"{where}: {total.doubtful}")
    elif "p99" not in total.percentiles_ns and (len(members) > 1 or len(stats) > 1):
        notes.append(
            f"{where}: percentiles of several jobs or directions need their histograms; left out: "
            "run fio with --output-format=json+"
        )
    actual = total.bytes_per_second / total.iops
    if abs(actual / fields["request_bytes"] - 1) > 0.01:
        notes.append(
            f"{where}: requests were {actual:.0f} B on average, not {fields['request_bytes']} B"
        )
    switches = sum(member.job.ctx for member in members)
    row["cpu_utilisation"] = sum((m.job.usr_cpu + m.job.sys_cpu) / 100 * m.clones for m in members)
    row["context_switches_per_second"] = switches / total.runtime_seconds
    row |= _waiting(row, switches / total.requests, where, notes)
    if alone:
        row |= _device_counters(file, members, total)
    return {name: value for name, value in row.items() if value is not None}, notes


def _observed(stats: Stats, prefix: str) -> dict[str, float | None]:
    latencies = {
        f"{prefix}latency_{name}_ns": stats.percentiles_ns.get(name) for name in PERCENTILES
    }
    return {
        f"{prefix}throughput_bytes_per_second": stats.bytes_per_second,
        f"{prefix}iops": stats.iops,
        f"{prefix}latency_mean_ns": stats.mean_ns,
        **latencies,
    }


def _littles_law(file: FioFile, member: Entry) -> list[str]:
    """Ask one job, with its own depth, whether rate, latency and depth agree.

    The time of the flushes counts: a job that waits for one has no other request in flight.
    """
    total = member.total
    flushes = member.job.sync
    timed = not member.setup.fields.get("flush_every_writes") or flushes.total_ios > 0
    if total.mean_ns is None or member.setup.held_back or not timed:
        return []
    flushing = flushes.total_ios * flushes.lat_ns.mean / total.runtime_seconds
    ratio = (total.iops * total.mean_ns + flushing) * 1e-9 / member.in_flight
    if abs(ratio - 1) > FAIL_ABOVE:
        raise DataQualityError(littles_message(member.where, ratio))
    if abs(ratio - 1) > WARN_ABOVE:
        return [
            (
                f"{file.name}, job {member.job.jobname!r}: throughput x mean latency / concurrency "
                f"= {ratio:.3f}, more than {WARN_ABOVE:.0%} off Little's law"
            )
        ]
    return []


def _waiting(
    row: Mapping[str, Any], switches_per_request: float, where: str, notes: list[str]
) -> dict[str, str]:
    """Whether io_uring waited for interrupts where the file does not say it.

    fio leaves a bare `hipri` out of its JSON. A job that slept for every request did not poll;
    of a busy one nothing is known.
    """
    if row.get("completion") is not None:
        return {}
    if switches_per_request >= _SLEEPS_PER_REQUEST:
        return {"completion": "interrupt"}
    notes.append(
        f"{where}: whether completions were polled is unknown, as fio does not record a bare "
        "hipri; write hipri=1 or hipri=0, or state completion for all files"
    )
    return {}


def _device_counters(
    file: FioFile, members: Sequence[Entry], total: Stats
) -> dict[str, float | None]:
    """Commands and merges of the device where fio watched exactly one for long enough."""
    disks = file.run.disk_util
    ramped = any("ramp_time" in {**file.run.global_options, **m.job.options} for m in members)
    if len(disks) != 1 or ramped or total.runtime_seconds < _COUNTERS_FROM_SECONDS:
        return {}
    disk, seconds = disks[0], total.runtime_seconds
    if not disk.read_ios + disk.write_ios:
        return {}
    return {
        "device_commands_per_second": (disk.read_ios + disk.write_ios) / seconds,
        "merged_requests_per_second": (disk.read_merges + disk.write_merges) / seconds,
    }
