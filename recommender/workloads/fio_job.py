"""A fio job file, as it is, as a workload profile.

What an option means is fio's HOWTO. Jobs that run at the same time are one workload: where they ask
for the same their clones add up; where they differ, and each states a rate, their rates do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_options import UNRECORDED, JobSetup, Sizes, job_setup
from iojoule.datasets.importers.units import parse_fio_size
from iojoule.datasets.schema import Workload
from iojoule.recommender.request import (
    DEMANDS,
    Current,
    WorkloadProfile,
    lines_of,
    parse_workload,
    read_text,
)
from iojoule.recommender.workloads.page_cache import PageCache, reaches_drive
from iojoule.recommender.workloads.sizes import percent_text

JOBS_MAX = 4096
"""As many as fio runs: 3.33 ends with "maximum number of jobs reached"."""

WATCH = "run it and let `iojoule workload observe /dev/X --seconds 60` count what the drive sees"
"""The way on for a job that says not enough about the drive's load."""

OPTIONS_MAX = 500
"""Of one section; fio 3.33 knows 217 (`fio --cmdhelp=all`)."""


@dataclass(frozen=True)
class Section:
    """One job: its name, and its options with those of [global] before it."""

    name: str
    options: Mapping[str, str]


def sections(text: str, where: str) -> list[Section]:
    """Split a job file: [global] applies to the jobs that follow it.

    Raises:
        InputError: Not a fio job file; names the line.
    """
    shared: dict[str, str] = {}
    jobs: list[Section] = []
    options: dict[str, str] | None = None
    for number, raw in enumerate(lines_of(text), start=1):
        # fio ends a line at a comment wherever it begins (strip_blank_end in init.c)
        line = re.split("[;#]", raw, maxsplit=1)[0].strip()
        if not line:
            continue
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            if name == "global":
                options = shared
            else:
                options = dict(shared)
                jobs.append(Section(name, options))
                if len(jobs) > JOBS_MAX:
                    raise InputError(
                        f"{where}: line {number}: more than {JOBS_MAX} jobs, which fio does not "
                        "run either; split the file"
                    )
            continue
        if options is None:
            raise InputError(
                f"{where}: line {number}: {line!r} stands before any [section]; not a fio job file"
            )
        if line.startswith("include "):
            raise InputError(
                f"{where}: line {number}: {line}: write the included file out here",
                field="include",
            )
        name, _, value = line.partition("=")
        options[name.strip().lower()] = value.strip()
        if len(options) > OPTIONS_MAX:
            raise InputError(
                f"{where}: line {number}: more than {OPTIONS_MAX} options, and fio knows fewer; "
                "not a fio job file"
            )
    if not any(job.options for job in jobs):
        raise InputError(f"{where}: no job section with an option; not a fio job file")
    return jobs


SIZE_OPTIONS = ("bs", "blocksize", "bsrange", "blocksize_range", "bssplit")
BLOCK_BYTES = 512
Split = dict[int, float]
"""Size in bytes -> share of the requests."""


@dataclass(frozen=True)
class OneSize:
    """What stands for the sizes of a job.

    Attributes:
        mean_bytes: Their mean, rounded to whole blocks of 512 B.
        mix: The distribution as `bytes/percent:...`; None where there is but one size, or a range.
        notes: What the mean does not say.
    """

    mean_bytes: int
    mix: str | None = None
    notes: tuple[str, ...] = ()


def _splits(options: Mapping[str, str], place: str) -> tuple[Split, Split]:
    """Shares of the sizes of reads and of writes; of one left out those that `bs` states."""
    name, text = _stated(options)
    parts = text.split(",")
    parts = parts[:2] if len(parts) > 1 else parts * 2
    if not all(part.strip() for part in parts):
        only = {one: text for one, text in options.items() if one in ("bs", "blocksize")}
        others = ({4096: 1.0},) * 2 if name == "bs" else _splits(only, place)
    reads, writes = (
        _split(name, part, place) if part.strip() else others[direction]
        for direction, part in enumerate(parts)
    )
    return reads, writes


def _sizes(split: Split) -> Sizes:
    return Sizes(min(split), sum(size * share for size, share in split.items()))


def one_size(options: Mapping[str, str], read_share: float, place: str) -> OneSize:
    """The size that stands for those of a job.

    Args:
        options: All options of the job.
        read_share: Share of reads among its requests, 0 to 1.
        place: File and job, for messages.

    Raises:
        InputError: A size that is none, or percentages that are no shares; names the option.
    """
    name, text = _stated(options)
    reads, writes = _splits(options, place)
    shares: Split = {}
    for split, weight in ((reads, read_share), (writes, 1 - read_share)):
        for size, share in split.items():
            shares[size] = shares.get(size, 0.0) + share * weight
    shares = {size: share for size, share in sorted(shares.items()) if share > 0}
    mean = sum(size * share for size, share in shares.items())
    rounded = max(BLOCK_BYTES, round(mean / BLOCK_BYTES) * BLOCK_BYTES)
    if len(shares) == 1:
        return OneSize(int(mean))
    note = (
        f"{name}={text} mixes request sizes: useful_request_bytes is their mean, {mean:.0f} bytes, "
        "which keeps both the requests and the bytes a second"
    )
    return OneSize(rounded, None if name == "bsrange" else percent_text(shares), (note,))


def _stated(options: Mapping[str, str]) -> tuple[str, str]:
    """The option that counts (bssplit before bsrange before bs), and its text."""
    for names in (("bssplit",), ("bsrange", "blocksize_range"), ("bs", "blocksize")):
        for name in names:
            if options.get(name):
                return names[0], options[name]
    return "bs", "4k"


def _split(name: str, text: str, place: str) -> Split:
    if name == "bs":
        return {_size(name, text, text, place): 1.0}
    if name == "bsrange":
        ends = [_size(name, text, end, place) for end in text.split("-")]
        if len(ends) != 2 or ends[0] > ends[1]:
            raise InputError(f"{place}: {name}={text} is not a range like 4k-64k", field=name)
        return {ends[0]: 1.0} if ends[0] == ends[1] else {ends[0]: 0.5, ends[1]: 0.5}
    return _shares(text, place)


def _shares(text: str, place: str) -> Split:
    """`4k/10:64k/:1m/`: what has no percentage shares what is left of a hundred."""
    percents: list[tuple[int, float | None]] = []
    for entry in text.split(":"):
        size, _, percent = entry.partition("/")
        percent = percent.strip()
        if percent and not (percent.isascii() and percent.isdigit() and float(percent) <= 100):
            raise InputError(
                f"{place}: bssplit={text}: {percent} is not a percentage", field="bssplit"
            )
        number = float(percent) if percent else None
        percents.append((_size("bssplit", text, size, place), number))
    stated = sum(percent for _, percent in percents if percent is not None)
    open_ = sum(percent is None for _, percent in percents)
    if stated > 100 or (not open_ and stated < 100):
        raise InputError(
            f"{place}: bssplit={text} adds up to {stated:g} %, not to 100", field="bssplit"
        )
    shares: Split = {}
    for each, part in percents:
        share = (100 - stated) / open_ if part is None else part
        shares[each] = shares.get(each, 0.0) + share / 100
    return shares


def _size(name: str, text: str, word: str, place: str) -> int:
    size = parse_fio_size(word.strip()) if word.strip() else None
    if not size:
        raise InputError(f"{place}: {name}={text} is not a size like 4k", field=name)
    return int(size)


_MAPPED = """
rw readwrite rwmixread rwmixwrite bs blocksize bsrange blocksize_range bssplit ioengine ioscheduler
iodepth numjobs hipri sqthread_poll rate rate_iops rate_process thinktime thinktime_blocks fsync
fdatasync sync direct buffered size io_size filename
"""

_ORGANISATIONAL = """
name description runtime time_based ramp_time group_reporting new_group stonewall
wait_for_previous thread directory filename_format randrepeat randseed norandommap invalidate
clocksource gtod_reduce percentile_list lat_percentiles clat_percentiles loops startdelay
write_bw_log write_lat_log write_iops_log log_avg_msec
"""

MAPPED = frozenset(_MAPPED.split())
"""Options that the workload profile expresses."""

ORGANISATIONAL = frozenset(_ORGANISATIONAL.split())
"""Options that say how a run is made and recorded, not what the application does."""


@dataclass(frozen=True)
class _Job:
    """A section, what it asks for and which sizes its mean stands for."""

    section: Section
    setup: JobSetup
    size: OneSize

    @property
    def name(self) -> str:
        return self.section.name

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.setup.fields

    @property
    def operations_per_second(self) -> float | None:
        """Of all its clones; None as fast as possible."""
        by_bytes, by_operations = (self.fields.get(name) for name in DEMANDS)
        if by_operations is None and by_bytes is not None:
            by_operations = by_bytes / self.fields["request_bytes"]
        return None if by_operations is None else by_operations * self.setup.numjobs


def from_fio_job(
    path: Path, *, job: str | None = None, cache: PageCache | None = None
) -> WorkloadProfile:
    """Read a fio job file as the workload and the current configuration that it describes.

    What the schema has no field for is listed in `notes`.

    Args:
        path: The job file.
        job: Name of the section to take; None: all that run.
        cache: What buffered jobs go through; None refuses direct=0.

    Raises:
        InputError: Not a fio job file, an option that cannot be expressed, or jobs that differ and
            do not all state a rate; the message names file, section and option.
    """
    return parse_fio_job(read_text(path), path, job=job, cache=cache)


def parse_fio_job(
    text: str, path: Path, *, job: str | None = None, cache: PageCache | None = None
) -> WorkloadProfile:
    """As `from_fio_job`, of a text that was read already; `path` names it in messages."""
    listed = sections(text, str(path))
    if job is not None:
        chosen = [section for section in listed if section.name == job]
        if not chosen:
            names = ", ".join(section.name for section in listed)
            raise InputError(f"{path}: no job named {job}; it has {names}", field="job")
        listed = chosen
    jobs = [_job(section, str(path), cache) for section in listed]
    if len(jobs) == 1 or not (differing := _differing(jobs)):
        return _alike(path, jobs)
    if any(one.operations_per_second is None for one in jobs) or _stonewalled(jobs):
        first, second, fields = differing
        raise InputError(
            f"{path}: jobs {first} and {second} differ in {', '.join(fields)}; pick one with --job "
            f"({', '.join(one.name for one in jobs)}), or take --each by itself; jobs that run at "
            "the same time and all state a rate are taken together",
            field="job",
        )
    return _together(path, jobs)


def each_fio_job(path: Path, *, cache: PageCache | None = None) -> list[WorkloadProfile]:
    """A workload profile for each job of the file by itself.

    Raises:
        InputError: As `from_fio_job`.
    """
    return [
        _alike(path, [_job(section, str(path), cache)])
        for section in sections(read_text(path), str(path))
    ]


def _job(section: Section, where: str, cache: PageCache | None) -> _Job:
    place = f"{where}: [{section.name}]"
    for name, value in section.options.items():
        if "$" in value and name in MAPPED - {"filename"}:
            raise InputError(
                f"{place}: {name}={value} holds a variable; write its value instead", field=name
            )
    options = {name: text for name, text in section.options.items() if name not in SIZE_OPTIONS}
    of_reads, of_writes = map(_sizes, _splits(section.options, place))
    # a size that every mode accepts, only to learn the share of reads
    try:
        mode = job_setup(options | {"bs": "4k"}, place, (of_reads, of_writes)).fields
    except InputError as error:
        way = f"{error.message}; {_way_on(section.options.get('ioengine', ''))}"
        raise InputError(way, field=error.field) from None
    direct = section.options.get("direct")
    asked = direct == "0" or section.options.get("buffered", "0") not in ("0", "")
    if asked and cache is None:
        raise InputError(
            f"{place}: direct=0 goes through the page cache, and what of it reaches the drive "
            "depends on the host's memory; say how much keeps these files (`iojoule workload from "
            f"{where} --page-cache 16GiB --out workload.toml`), or {WATCH}, or say direct=1 where "
            "the application bypasses the cache",
            field="direct",
        )
    shares = {"read": 1.0, "write": 0.0}
    reads = shares.get(mode["operation"], mode.get("read_fraction", 0.5))
    size = one_size(section.options, reads, place)
    if size.mean_bytes % BLOCK_BYTES:
        raise InputError(
            f"{place}: requests of {size.mean_bytes} bytes are no whole blocks of {BLOCK_BYTES}; "
            "where each block carries metadata, write bs without it",
            field="bs",
        )
    setup = job_setup(options | {"bs": str(size.mean_bytes)}, place, (of_reads, of_writes))
    if setup.buffered and cache is not None:
        setup = reaches_drive(setup, section.options, cache, place)
        size = replace(size, mean_bytes=setup.fields["request_bytes"], mix=None)
    elif setup.buffered:
        way = f"to know what reaches the drive, say --page-cache, or {WATCH}"
        setup = replace(setup, notes=(*setup.notes, way))
    return _Job(section, setup, size)


_NO_DRIVE = frozenset(["cpuio", "null", "cpp_null", "net", "netsplice", "rdma", "exec"])
_ELSEWHERE = frozenset(["rbd", "rados", "http", "nfs", "gfapi", "libiscsi", "nbd", "dfs"])


def _way_on(engine: str) -> str:
    """What to do where the job cannot be converted, by fio's engine."""
    if engine in _NO_DRIVE:
        return "it moves no data of a drive: take another job with --job"
    if engine in _ELSEWHERE:
        return f"its drives are those of other hosts: on these, {WATCH}"
    return f"otherwise {WATCH}"


def _differing(jobs: Sequence[_Job]) -> tuple[str, str, list[str]] | None:
    """The first two jobs that ask for other things, and what differs."""
    first = jobs[0]
    for other in jobs[1:]:
        names = sorted(
            name
            for name in other.fields.keys() | first.fields.keys()
            if other.fields.get(name) != first.fields.get(name)
        )
        if other.size != first.size:
            names.append("bssplit")
        if names:
            return first.name, other.name, names
    return None


def _stonewalled(jobs: Sequence[_Job]) -> bool:
    return any(
        "stonewall" in one.section.options or "wait_for_previous" in one.section.options
        for one in jobs[1:]
    )


def _alike(path: Path, jobs: Sequence[_Job]) -> WorkloadProfile:
    """Jobs that ask for the same are one job with all their clones."""
    first = jobs[0]
    fields = dict(first.fields)
    clones = [one.setup.numjobs for one in jobs]
    number = max(clones) if _stonewalled(jobs) else sum(clones)
    for name in DEMANDS:
        if name in fields:
            fields[name] *= number
    if first.size.mix:
        fields["request_bytes_mix"] = first.size.mix
    if number == 1:
        fields |= _bursts(first)
    notes = [*first.setup.notes, *first.size.notes]
    return _profile(path, jobs, fields, number, notes)


def _bursts(job: _Job) -> dict[str, Any]:
    """`thinktime_blocks` of a single clone: so many requests, then a gap."""
    blocks = parse_fio_size(job.section.options.get("thinktime_blocks") or "1") or 1
    think = job.fields.get("think_time_ns")
    if not think or blocks < 2:
        return {}
    gap = think * blocks * 1e-9
    return {
        "burst_bytes": float(blocks * job.fields["request_bytes"]),
        "idle_gap_seconds_p50": gap,
        "idle_gap_seconds_p99": gap,
    }


def _together(path: Path, jobs: Sequence[_Job]) -> WorkloadProfile:
    """Jobs that differ and state their rates: rates, requests in flight and flushes add up."""
    rates = [one.operations_per_second or 0.0 for one in jobs]
    total = sum(rates)
    moved = sum(rate * one.fields["request_bytes"] for rate, one in zip(rates, jobs, strict=True))
    reads = sum(rate * _reads(one) for rate, one in zip(rates, jobs, strict=True))
    fields = dict(jobs[0].fields)
    named = ", ".join(one.name for one in jobs)
    taken = f"jobs {named} are taken together: {total:.6g} operations"
    notes = [f"{taken} and {moved:.6g} bytes a second"]
    for name in ("engine", "completion", "submission_polling", "scheduler"):
        if len({one.fields.get(name) for one in jobs}) > 1:
            raise InputError(
                f"{path}: jobs that run at the same time differ in {name}; pick one with --job",
                field=name,
            )
    fields["operation"] = "read" if reads == total else "mixed" if reads else "write"
    fields["read_fraction"] = reads / total
    fields["mix_dispatch"] = "interleaved" if 0 < reads < total else None
    fields["request_bytes"] = max(512, round(moved / total / 512) * 512)
    fields |= {DEMANDS[0]: moved, DEMANDS[1]: None, "working_set_bytes": None}
    clones = sum(one.setup.numjobs for one in jobs)
    in_flight = sum(one.setup.numjobs * one.fields["queue_depth"] for one in jobs)
    fields["queue_depth"] = max(1, round(in_flight / clones))
    flushes = sum(
        rate * (1 - _reads(one)) / one.fields["flush_every_writes"]
        for rate, one in zip(rates, jobs, strict=True)
        if one.fields.get("flush_every_writes")
    )
    fields["flush_every_writes"] = max(1, round((total - reads) / flushes)) if flushes else None
    if len({one.fields["pattern"] for one in jobs}) > 1:
        fields["pattern"] = "random"
        notes.append("some jobs are sequential and some random: taken as random")
    if len({one.fields.get("think_time_ns") for one in jobs}) > 1:
        fields["think_time_ns"] = None
        notes.append("think times differ between jobs and are left out: the rates stand")
    notes += [note for one in jobs for note in (*one.setup.notes, *one.size.notes)]
    known = {name: value for name, value in fields.items() if value is not None}
    return _profile(path, jobs, known, clones, list(dict.fromkeys(notes)))


def _reads(job: _Job) -> float:
    shares = {"read": 1.0, "write": 0.0}
    return float(shares.get(job.fields["operation"], job.fields.get("read_fraction", 0.5)))


def _profile(
    path: Path, jobs: Sequence[_Job], fields: dict[str, Any], clones: int, notes: list[str]
) -> WorkloadProfile:
    workload = {name: value for name, value in fields.items() if name in Workload.model_fields}
    current = {name: value for name, value in fields.items() if name in Current.model_fields}
    workload.setdefault("useful_request_bytes", fields["request_bytes"])
    # unlike in fio's output, a switch that a job file does not name is off
    current.setdefault("completion", "polled" if fields["engine"] == "spdk" else "interrupt")
    current.setdefault("submission_polling", False)
    current["jobs"] = clones
    return parse_workload(
        {
            "name": path.stem if len(jobs) > 1 else jobs[0].name,
            "workload": workload,
            "current": current,
            "notes": tuple(notes + _left_out([one.section for one in jobs])),
        },
        str(path),
    )


def _left_out(chosen: Sequence[Section]) -> list[str]:
    names = sorted({name for section in chosen for name in section.options} - MAPPED)
    work = [name for name in names if name not in ORGANISATIONAL and name not in UNRECORDED]
    run = [name for name in names if name in ORGANISATIONAL]
    notes = []
    if work:
        notes.append(f"fio options without an effect on the answer: {', '.join(work)}")
    if run:
        notes.append(f"fio options about the run, not the workload: {', '.join(run)}")
    return notes
