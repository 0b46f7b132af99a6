"""fio's JSON: `iojoule import fio PATH...`.

Jobs that ran side by side become one measurement, jobs that ran one after the other several.
Rates add over jobs and directions; the mean latency is fio's `lat` (submission plus completion),
weighted by completed requests; percentiles are fio's `clat` (completion alone) unless it was asked
for `lat_percentiles`, merged exactly over jobs from json+ histograms and never averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.fio_file import FioFile, find_files, load
from iojoule.datasets.importers.fio_jobs import Entry, combined, entries, phases
from iojoule.datasets.importers.fio_stats import PERCENTILES, Stats, together
from iojoule.datasets.littles_law import FAIL_ABOVE, WARN_ABOVE, littles_message
from iojoule.datasets.provenance import Provenance, SourceFile
from iojoule.datasets.schema import from_row
from iojoule.datasets.store import Dataset

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
    for found in find_files([Path(path) for path in paths]):
        try:
            file = load(found)
            sources.append(SourceFile.of(file.path, name=file.name))
            parts = phases(file)
        except InputError as error:
            _skip_or_raise(error, keep_going, found.path, found.name, warnings)
            continue
        warnings += file.notes
        for part in parts:
            try:
                row, notes = measurement(file, entries(file, part), len(parts) == 1)
                row = {**(constants or {}), **row}
                from_row(row, where=f"{file.path}, job {part[0].jobname!r}")
            except InputError as error:
                _skip_or_raise(error, keep_going, found.path, found.name, warnings)
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
