"""Which jobs of a fio run are one measurement, and what they achieved together.

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
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio_file import FioFile, FioJob
from iojoule.datasets.importers.fio_options import JobSetup, job_setup
from iojoule.datasets.importers.fio_stats import Stats, direction_stats, together

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
    found: list[Entry] = []
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
        found.append(Entry(job, options, setup, clones, stats, where))
    return found


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
