"""The jobs of a run of fio: which ran side by side, what each was asked to do, what it achieved.

fio's JSON leaves out switches that were given without a value (`stonewall`, `group_reporting`,
`hipri`, ...), so what they did is read off the groups, the number of entries and the times.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio_file import FioFile, FioJob, Stats, direction_stats, together
from iojoule.datasets.importers.fio_options import JobSetup, job_setup
from iojoule.datasets.importers.fio_text import named_options
from iojoule.datasets.littles_law import FAIL_ABOVE, WARN_ABOVE

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
        merged: Whether it is one direction of jobs that group_reporting merged.
        partial: Whether it ran only part of the time of the others.
    """

    job: FioJob
    options: Mapping[str, str]
    setup: JobSetup
    clones: int
    stats: Mapping[str, Stats]
    where: str
    merged: bool = False
    partial: bool = False

    def over(self, seconds: float, longest: float) -> Entry:
        """The same, at the rate of a run that is longer than its own."""
        stats = {name: item.times(seconds / longest) for name, item in self.stats.items()}
        return replace(self, stats=stats, partial=True)

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
        options = options_of(file, job)
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
        "stonewall=1 or new_group=1 (with a value, or fio does not record it), or one run a file",
        field="unclear which jobs ran side by side",
    )


def entries(file: FioFile, part: Sequence[FioJob]) -> list[Entry]:
    """Read the jobs of one measurement.

    Raises:
        DataQualityError: A job failed, did nothing, or was merged with other jobs.
        InputError: A job did what a measurement cannot express.
    """
    entries: list[Entry] = []
    families = Counter(family(job) for job in part)
    for job in part:
        where = f"{file.path}, job {job.jobname!r}"
        if job.error:
            raise DataQualityError(
                f"{where}: fio reports error {job.error}{_reason(job.error)}; correct the "
                "job and run it again",
                field="fio reports an error",
            )
        options = options_of(file, job)
        stats = _stats(job, where)
        if "rw" not in options and not recorded_options(file, job):
            setup = unrecorded_setup(file, job.jobname, stats, where)
        elif recorded_options(file, job):
            setup = job_setup(options, where)
        else:
            setup = _printed_setup(file, options, where)
        alone = Entry(job, options, setup, 1, stats, where)
        clones = _clones(job, setup, families[family(job)], where)
        merged = _jobs_merged(alone, clones)
        if merged is None:
            entries.append(replace(alone, clones=clones))
        else:
            entries += _unmerged(alone, merged)
    return entries


def _stats(job: FioJob, where: str) -> dict[str, Stats]:
    if job.trim.total_ios:
        raise InputError(f"{where}: trims; only reads and writes can be imported", field="trims")
    stats = {
        name: direction_stats(direction)
        for name in DIRECTIONS
        if (direction := getattr(job, name)) is not None and direction.total_ios
    }
    if "mixed" in stats and len(stats) > 1:  # unified_rw_reporting=both
        del stats["mixed"]
    if not stats and "write" not in job.model_fields_set:
        raise InputError(
            f"{where}: has no section `write`, which every fio writes: a modified fio wrote this, "
            "and what it renamed is not known; run the released fio",
            field="written by a modified fio",
        )
    if not stats or not any(item.runtime_seconds and item.iops for item in stats.values()):
        raise DataQualityError(
            f"{where}: no request completed in a measurable time (runtime 0); run it for longer",
            field="no request completed",
        )
    return stats


def _printed_setup(file: FioFile, options: Mapping[str, str], where: str) -> JobSetup:
    """What fio printed of a job, which leaves out its mix and whether it bypassed the page cache.

    Where fio counted the requests of the drives, they tell: a cache keeps most of them away.
    """
    options = {"rwmixread": _read_percent(file), **options}
    setup = job_setup({**options, "direct": "1"}, where)
    disks = file.run.disk_util
    served = sum(d.read_ios + d.write_ios + d.read_merges + d.write_merges for d in disks)
    requested = sum(job.read.total_ios + job.write.total_ios for job in file.run.jobs)
    cached = bool(disks) and served < _CACHED_BELOW * requested
    note = (
        f"direct is not recorded, and the drives served {served} of {requested} requests: the page "
        "cache took part"
        if cached
        else "direct is not recorded, and taken for 1"
    )
    return replace(setup, buffered=cached, notes=(*setup.notes, note))


def _read_percent(file: FioFile) -> str:
    """Share of reads among the requests of jobs that did both; half where fio unified them."""
    both = [job for job in file.run.jobs if job.read.total_ios and job.write.total_ios]
    reads, writes = (
        sum(getattr(job, name).total_ios for job in both) for name in ("read", "write")
    )
    return f"{100 * reads / (reads + writes):.0f}" if both else "50"


_CACHED_BELOW = 0.5
"""Share of the requests that drives serve at least without a page cache: fio counts theirs every
quarter of a second, and the kernel merges small ones, which are counted too."""


def unrecorded_setup(
    file: FioFile, jobname: str, stats: Mapping[str, Stats], where: str
) -> JobSetup:
    """What a job was asked to do, where neither the file nor the caller has its options.

    A file of bench-fio says mode, depth and jobs in its name, normal output the jobs. Otherwise
    the requests have their mean size, and as many were in flight as Little's law finds.

    Raises:
        InputError: The order of the addresses is not known, or no whole number of requests.
    """
    name = file.path.name
    options = {**named_options(name), **file.options.get(jobname, {})}
    total = together(list(stats.values()))
    size = round(total.bytes_per_second / total.iops)
    # rates of terse output are whole KiB/s
    size = round(size / 512) * 512 if abs(size / 512 - round(size / 512)) < 0.01 * size / 512 else 0
    words = f"{name} {jobname}".lower()
    if "rw" not in options and not re.search("rand|seq", words):
        raise InputError(
            f"{where}: this output ({file.run.version}) does not record the job's options, and "
            "neither the text before it nor the name of file or job says whether it is random or "
            "sequential; write JSON (--output-format=json+), name the file as bench-fio does "
            "(randread-DEPTH-JOBS), or import a table with a column map",
            field="options not recorded",
        )
    if not size:
        raise InputError(f"{where}: requests of several sizes", field="several request sizes")
    both = {"read", "write"} <= stats.keys() or "mixed" in stats
    mode = options.get("rw") or (
        ("rand" if "rand" in words else "") + ("rw" if both else next(iter(stats)))
    )
    notes = ["options are not recorded: engine and direct are unknown"]
    if "iodepth" not in options:
        if total.mean_ns is None:
            raise InputError(
                f"{where}: neither depth nor latency is recorded", field="options not recorded"
            )
        in_flight = total.iops * total.mean_ns * 1e-9 / int(options.get("numjobs", 1))
        options["iodepth"] = str(max(1, round(in_flight)))
        notes.append(
            f"{in_flight:.2f} requests of a job in flight by Little's law, taken for the depth"
        )
    options = {"rwmixread": _read_percent(file), **options, "rw": mode, "bs": str(size)}
    known = job_setup(options | {"ioengine": "libaio", "direct": "1"}, where)
    unknown = ("engine", "completion", "submission_polling", "scheduler")
    fields = {name: value for name, value in known.fields.items() if name not in unknown}
    return JobSetup(fields, known.numjobs, frozenset(), tuple(notes))


def _clones(job: FioJob, setup: JobSetup, entries_alike: int, where: str) -> int:
    """How many jobs an entry stands for, by its options."""
    if entries_alike % setup.numjobs == 0:
        return 1
    if entries_alike == 1:
        return setup.numjobs
    raise DataQualityError(
        f"{where}: {entries_alike} entries for numjobs={setup.numjobs}: some jobs are missing; "
        "run it again",
        field="jobs are missing",
    )


def _jobs_merged(entry: Entry, clones: int) -> dict[str, int] | None:
    """Jobs by direction of an entry that group_reporting merged with others; None: it is alone.

    fio writes the options of the first of them alone. The others are known where every request
    has its size, and Little's law with its depth gives a whole number of jobs in each direction
    that add up to as many as fio counts.

    Raises:
        DataQualityError: They cannot be told apart.
    """
    job, stats, operation = entry.job, entry.stats, entry.setup.fields["operation"]
    runtime = _runtime_ms(job)
    ratio = job.job_runtime / runtime if job.job_runtime and runtime else float(clones)
    foreign = "mixed" not in (operation, *stats) and bool(stats.keys() - {operation})
    if not foreign and (ratio <= 1.4 * clones or _as_asked(entry, clones)):
        return None
    number, jobs = round(ratio), {}
    size, depth = entry.setup.fields["request_bytes"], entry.setup.fields["queue_depth"]
    for direction, seen in stats.items():
        in_flight = seen.iops * (seen.mean_ns or 0.0) * 1e-9 / depth
        jobs[direction] = round(in_flight)
        alike = abs(seen.bytes_per_second / seen.iops / size - 1) < 0.01
        if not alike or not jobs[direction] or abs(in_flight / jobs[direction] - 1) > WARN_ABOVE:
            jobs = {}
            break
    held = entry.setup.held_back or entry.setup.fields.get("flush_every_writes")
    if held or operation not in jobs or number < 2 or sum(jobs.values()) != number:
        what = (
            f"asked to {operation}, but did {' and '.join(stats)}"
            if foreign
            else f"stands for about {ratio:.0f} jobs where its options say {clones}"
        )
        raise DataQualityError(
            f"{entry.where}: {what}: group_reporting merged it with other jobs, whose options "
            "are not recorded; run without group_reporting",
            field="group_reporting merged different jobs",
        )
    return jobs


def _as_asked(entry: Entry, clones: int) -> bool:
    """Whether Little's law finds as many requests in flight as the options say.

    fio's `job_runtime` runs on while a job waits for others or for commands of its zones.
    """
    total, depth = entry.total, entry.setup.fields["queue_depth"]
    in_flight = total.iops * (total.mean_ns or 0.0) * 1e-9
    return not entry.setup.held_back and abs(in_flight / (clones * depth) - 1) <= FAIL_ABOVE


def _unmerged(entry: Entry, jobs: Mapping[str, int]) -> list[Entry]:
    """An entry for each direction of merged jobs."""
    note = (
        f"group_reporting merged {sum(jobs.values())} jobs: "
        f"{' and '.join(f'{count} {name}' for name, count in jobs.items())} by Little's law; the "
        "options of the first are taken for all"
    )
    own: list[Entry] = []
    for name, count in jobs.items():
        setup = replace(
            entry.setup,
            fields={**entry.setup.fields, "operation": name},
            notes=(*entry.setup.notes, note) if not own else (),
        )
        shared = entry.job.model_copy(
            update={"ctx": 0, "usr_cpu": 0.0, "sys_cpu": 0.0} if own else {}
        )
        stats = {name: entry.stats[name]}
        own.append(Entry(shared, entry.options, setup, count, stats, entry.where, merged=True))
    return own


def _reason(error: int) -> str:
    return f" ({os.strerror(error)})" if error in errno.errorcode else ""


def options_of(file: FioFile, job: FioJob) -> dict[str, str]:
    """The options of a job, the global ones included."""
    return recorded_options(file, job) or dict(file.options.get(job.jobname, {}))


def recorded_options(file: FioFile, job: FioJob) -> dict[str, str]:
    """Those that the document states."""
    return {**file.run.global_options, **job.options}


def family(job: FioJob) -> tuple[object, ...]:
    """What clones of one job share."""
    return (job.jobname, job.groupid, *sorted(job.options.items()))


def _switch(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0") not in ("0", "false")


def _runtime_ms(job: FioJob) -> int:
    return max(part.runtime for part in (job.read, job.write, job.mixed) if part is not None)
