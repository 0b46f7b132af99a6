"""A fio job file, as it is, as a workload profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_options import UNRECORDED, JobSetup, job_setup
from iojoule.datasets.schema import Workload
from iojoule.recommender.workload import Current, WorkloadProfile, parse_workload, read_text

_MAPPED = """
rw readwrite rwmixread rwmixwrite bs blocksize ioengine ioscheduler iodepth numjobs hipri
sqthread_poll rate rate_iops rate_process thinktime thinktime_blocks fsync fdatasync sync direct
buffered size io_size filename
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

SIZE_LISTS = ("bsrange", "blocksize_range", "bssplit")


@dataclass(frozen=True)
class _Section:
    name: str
    options: Mapping[str, str]


def from_fio_job(path: Path, *, job: str | None = None) -> WorkloadProfile:
    """Read a fio job file as the workload and the current configuration that it describes.

    Several job sections are one workload where they ask for the same (their clones then add up);
    otherwise one has to be picked. What the schema has no field for is listed in `notes`.

    Args:
        path: The job file.
        job: Name of the section to take.

    Raises:
        InputError: Not a fio job file, an option that cannot be expressed, or jobs that differ;
            the message names file, section and option.
    """
    sections = _sections(read_text(path), str(path))
    if job is not None:
        chosen = [section for section in sections if section.name == job]
        if not chosen:
            names = ", ".join(section.name for section in sections)
            raise InputError(f"{path}: no job named {job}; it has {names}", field="job")
    else:
        chosen = sections
    setups = [_setup(section, str(path)) for section in chosen]
    for section, setup in zip(chosen[1:], setups[1:], strict=True):
        if setup.fields != setups[0].fields:
            differing = sorted(
                name
                for name in setup.fields.keys() | setups[0].fields.keys()
                if setup.fields.get(name) != setups[0].fields.get(name)
            )
            raise InputError(
                f"{path}: jobs {chosen[0].name} and {section.name} differ in "
                f"{', '.join(differing)}; pick one by its name "
                f"({', '.join(s.name for s in chosen)})",
                field="job",
            )
    return _profile(path, chosen, setups)


def _setup(section: _Section, where: str) -> JobSetup:
    place = f"{where}: [{section.name}]"
    for name in SIZE_LISTS:
        if section.options.get(name):
            raise InputError(
                f"{place}: {name}={section.options[name]} mixes request sizes, which one workload "
                "profile cannot express; write one job for each size with bs=",
                field=name,
            )
    for name, value in section.options.items():
        if "${" in value or ("$" in value and name in MAPPED):
            raise InputError(
                f"{place}: {name}={value} holds a variable; write its value instead", field=name
            )
    direct = section.options.get("direct")
    if direct == "0" or section.options.get("buffered", "0") not in ("0", ""):
        raise InputError(
            f"{place}: direct=0 goes through the page cache, which a profile of the drive cannot "
            "express; say direct=1 where the application bypasses it",
            field="direct",
        )
    return job_setup(section.options, place)


def _profile(path: Path, sections: list[_Section], setups: list[JobSetup]) -> WorkloadProfile:
    fields = dict(setups[0].fields)
    stonewalled = any(
        "stonewall" in section.options or "wait_for_previous" in section.options
        for section in sections[1:]
    )
    clones = [setup.numjobs for setup in setups]
    jobs = max(clones) if stonewalled else sum(clones)
    for name in ("demand_bytes_per_second", "demand_operations_per_second"):
        if name in fields:
            fields[name] *= jobs
    workload = {name: value for name, value in fields.items() if name in Workload.model_fields}
    current = {name: value for name, value in fields.items() if name in Current.model_fields}
    workload["useful_request_bytes"] = fields["request_bytes"]
    # unlike in fio's output, a switch that a job file does not name is off
    current.setdefault("completion", "polled" if fields["engine"] == "spdk" else "interrupt")
    current.setdefault("submission_polling", False)
    current["jobs"] = jobs
    notes = [note for setup in setups[:1] for note in setup.notes]
    notes += _left_out(sections)
    return parse_workload(
        {
            "name": path.stem if len(sections) > 1 else sections[0].name,
            "workload": workload,
            "current": current,
            "notes": tuple(notes),
        },
        str(path),
    )


def _left_out(sections: list[_Section]) -> list[str]:
    names = sorted({name for section in sections for name in section.options} - MAPPED)
    work = [name for name in names if name not in ORGANISATIONAL and name not in UNRECORDED]
    run = [name for name in names if name in ORGANISATIONAL]
    notes = []
    if work:
        notes.append(f"fio options without an effect on the answer: {', '.join(work)}")
    if run:
        notes.append(f"fio options about the run, not the workload: {', '.join(run)}")
    return notes


def _sections(text: str, where: str) -> list[_Section]:
    """Split a job file as fio does: [global] applies to the jobs that follow it."""
    shared: dict[str, str] = {}
    jobs: list[_Section] = []
    options: dict[str, str] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            if name == "global":
                options = shared
            else:
                options = dict(shared)
                jobs.append(_Section(name, options))
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
    if not jobs:
        raise InputError(f"{where}: no job section; not a fio job file")
    return jobs
