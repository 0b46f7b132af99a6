"""fio's output as measurements: `iojoule import fio PATH...`.

Jobs that ran side by side become one measurement, jobs that ran one after the other several, and
jobs side by side on different drives one for each drive.
Rates add over jobs and directions; the mean latency is fio's `lat` (submission plus completion),
weighted by completed requests; percentiles are fio's `clat` (completion alone) unless it was asked
for `lat_percentiles`, merged exactly over jobs from json+ histograms and never averaged.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import DataQualityError, InputError, close_names
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.fio_file import (
    NOT_FIO,
    PERCENTILES,
    FioFile,
    FioJob,
    Found,
    Stats,
    files_in,
    holds_fio,
    load_logs,
    load_runs,
    together,
)
from iojoule.datasets.importers.fio_jobs import (
    DIRECTIONS,
    Entry,
    entries,
    family,
    phases,
)
from iojoule.datasets.importers.fio_logs import LOG_OF_RESULT, log_of
from iojoule.datasets.importers.fio_sessions import Origin, origin, sessions
from iojoule.datasets.importers.power_log import (
    FEWEST,
    LARGEST_GAP,
    PowerLog,
    between,
    parse_power_log,
)
from iojoule.datasets.littles_law import FAIL_ABOVE, WARN_ABOVE, littles_message
from iojoule.datasets.provenance import ExcludedRow, Provenance, SourceFile
from iojoule.datasets.schema import COLUMNS, from_row
from iojoule.datasets.store import Dataset
from iojoule.datasets.verdict import ReasonCode
from iojoule.datasets.vocabulary import Verdict


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
            "the other (stonewall) or alike",
            field="different jobs side by side",
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
    for demand in DEMANDS & fields.keys():
        fields[demand] *= jobs
    if len({member.job.options.get("cpus_allowed") for member in members}) > 1:
        fields.pop("cpu_cores_available", None)  # each job had cores of its own
    return fields, stats


def by_drive(members: Sequence[Entry]) -> list[list[Entry]]:
    """Jobs side by side, apart where each has a drive of its own."""
    drives: dict[frozenset[str], list[Entry]] = {}
    for member in members:
        drives.setdefault(member.setup.devices, []).append(member)
    every = [drive for own in drives for drive in own]
    apart = all(drives) and len(every) == len(set(every))
    return list(drives.values()) if apart else [list(members)]


def _first_to_end(members: Sequence[Entry]) -> tuple[Sequence[Entry], float]:
    """The clones that ran only while all did, and how many each of them stands for.

    With `steadystate` or a fixed amount of I/O each clone ends by itself. While all run, one is
    like the other, so those that end first tell the rate of all. Where fewer than half do, the
    rate of the whole run is taken, as group_reporting does, and the run is doubtful.
    """
    runtimes = [member.total.runtime_seconds for member in members]
    shortest, longest = min(runtimes), max(runtimes)
    if longest <= OVERLAP * shortest or len({family(member.job) for member in members}) > 1:
        return members, 1.0
    ran = list(zip(members, runtimes, strict=True))
    first = [member for member, seconds in ran if seconds <= 1.05 * shortest]
    if 2 * len(first) >= len(members):
        return first, len(members) / len(first)
    return [member.over(seconds, longest) for member, seconds in ran], 1.0


def _require_overlap(members: Sequence[Entry]) -> None:
    runtimes = [member.total.runtime_seconds for member in members]
    delays = {member.job.options.get("startdelay", "0") for member in members}
    apart = max(runtimes) > OVERLAP * min(runtimes)
    if len(delays) > 1 or (apart and not all(member.partial for member in members)):
        raise DataQualityError(
            f"{members[0].where}: ran beside {_names(members[1:])} only part of the time "
            f"({min(runtimes):.1f} to {max(runtimes):.1f} s), so their rates do not add; give all "
            "the same runtime (time_based) and start",
            field="jobs overlap only in part",
        )


def _names(members: Sequence[Entry]) -> str:
    return ", ".join(dict.fromkeys(repr(member.job.jobname) for member in members))


OVERLAP = 1.25
"""Ratio of the longest to the shortest runtime up to which jobs ran side by side."""

DEMANDS = {"demand_bytes_per_second", "demand_operations_per_second"}

_COUNTERS_FROM_SECONDS = 30.0
"""fio samples the device's counters every quarter of a second and misses the end of a run."""

_SLEEPS_PER_REQUEST = 0.5
"""Context switches per request from which on a job slept, so it cannot have polled."""


def import_fio(
    paths: Sequence[Path | str],
    *,
    strict: bool = False,
    constants: Mapping[str, Any] | None = None,
    power: PowerLog | None = None,
) -> Dataset:
    """Read runs of fio 2 and 3: JSON, JSON+ or terse.

    Args:
        paths: Files, and folders that are searched.
        strict: Stop at the first run that cannot be imported.
        constants: Fields that the files do not state, for instance device_model or power_state;
            what a file states itself stays.
        power: What a power meter logged meanwhile.

    Returns:
        One measurement per set of jobs that ran side by side on a drive, in the order of the
        files, in sessions by `sessions`. The provenance names what was left out and why; its
        warnings say what was not in force, not recorded or doubtful. `cpu_utilisation` is user
        plus system time in cores, `context_switches_per_second` covers all jobs. Names of files
        and folders are kept without the path to them.

    Raises:
        DataQualityError: A run failed or is cut off; with `strict` also one that is more than 8 %
            off Little's law, which is doubtful otherwise.
        InputError: A file is not fio's, or did what a measurement cannot express; the message
            names file, job, option and remedy. Both only where nothing at all could be imported,
            or with `strict`.
    """
    for name in constants or {}:
        if name not in COLUMNS:
            message = f"unknown field {name!r}{close_names(name, COLUMNS)}"
            raise InputError(message, field=name)
    listed = [file for path in paths for file in files_in(Path(path))]
    gathered = _Gathered(constants or {}, strict, power)
    for file in listed:
        gathered.add(file, in_folder=file.series is not None)
    gathered.add_logs()
    return gathered.dataset(", ".join(map(str, paths)))


@dataclass
class _Gathered:
    """What was read so far."""

    constants: Mapping[str, Any]
    strict: bool
    power: PowerLog | None = None
    unmetered: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    read: list[Path] = field(default_factory=list)
    excluded: list[ExcludedRow] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)
    logs: dict[tuple[Path, str], list[tuple[str, Found]]] = field(default_factory=dict)

    def add(self, listed: Found, *, in_folder: bool) -> None:
        """Read a file; in a folder, what is not fio's is only counted, and logs wait."""
        log = log_of(listed.path)
        if log is not None:
            run, kind = log
            self.logs.setdefault((listed.path.parent, run), []).append((kind, listed))
            return
        if in_folder and not holds_fio(listed.path):
            why = "empty file" if listed.path.stat().st_size == 0 else NOT_FIO
            self.excluded.append(ExcludedRow(source=listed.name, reason=why))
            return
        try:
            files = load_runs(listed)
            self.sources.append(SourceFile.of(listed.path, name=listed.name))
            self.read.append(listed.path)
        except InputError as error:
            self._leave_out(error, listed)
            return
        for file in files:
            self._add_run(file, listed)

    def add_logs(self) -> None:
        """Read the runs of which there are only logs over time."""
        folders = {path.parent for path in self.read}
        for (folder, run), logs in self.logs.items():
            if folders & {folder, folder.parent}:
                self.excluded += [
                    ExcludedRow(source=log.name, reason=LOG_OF_RESULT) for _, log in logs
                ]
                continue
            try:
                file = load_logs(run, logs)
            except InputError as error:
                self._leave_out(error, logs[0][1])
                continue
            self.sources += [SourceFile.of(log.path, name=log.name) for _, log in logs]
            self._add_run(file, logs[0][1])

    def _add_run(self, file: FioFile, listed: Found) -> None:
        self.warnings += file.notes
        try:
            parts = phases(file)
        except InputError as error:
            self._leave_out(error, listed)
            return
        for part in parts:
            try:
                members = entries(file, part)
            except InputError as error:
                self._leave_out(error, listed)
                continue
            drives = by_drive(members)
            for own in drives:
                try:
                    self._add_row(file, own, part, alone=len(parts) == len(drives) == 1)
                except InputError as error:
                    self._leave_out(error, listed)

    def _add_row(
        self, file: FioFile, own: list[Entry], part: Sequence[FioJob], *, alone: bool
    ) -> None:
        row, notes = measurement(file, own, alone, strict=self.strict)
        row = {**self.constants, **row, **self._power(file, own, alone=alone)}
        from_row(row, where=f"{file.path}, job {part[0].jobname!r}")
        self.rows.append(row)
        self.origins.append(origin(file, own[0].setup.devices))
        self.warnings += notes

    def _power(self, file: FioFile, own: list[Entry], *, alone: bool) -> dict[str, float]:
        """Mean power while the jobs of a file ran, where it holds no others."""
        if self.power is None:
            return {}
        ended = file.run.ended_seconds
        seconds = together(list(own[0].stats.values())).runtime_seconds
        watts = {}
        if alone and ended is not None:
            watts = self.power.during(ended - seconds, ended)
            self.times += [ended - seconds, ended]
        if not watts:
            self.unmetered.append(file.name)
        return watts

    def _say_power(self) -> None:
        """What of the log is in the rows; refuses one that covers no run."""
        if self.power is None:
            return
        if len(self.unmetered) == len(self.rows):
            log, times = self.power, self.times
            if times and (log.seconds[0] > max(times) or log.seconds[-1] < min(times)):
                why = (
                    f"is of {between(log.seconds[0], log.seconds[-1])}, but the runs took "
                    f"{between(min(times), max(times))}; state how far its clock is ahead: "
                    "--power FILE.csv,clock=SECONDS"
                )
            else:
                why = (
                    f"gives no run a mean, which takes {FEWEST} readings and no gap above "
                    f"{LARGEST_GAP:.0%} of the run, in a file of its own"
                )
            raise InputError(f"{log.path}: {why}", field="power")
        self.sources.append(SourceFile.of(self.power.path))
        self.warnings += [
            f"{name}: no power: fewer than {FEWEST} readings, a gap, or several runs in one file"
            for name in self.unmetered
        ]

    def _leave_out(self, error: InputError, listed: Found) -> None:
        if self.strict:
            raise error
        self.errors.append(error)
        reason = error.field or "not what fio writes"
        self.excluded.append(ExcludedRow(source=listed.name, reason=reason))
        self.warnings.append(f"left out: {error.message.replace(str(listed.path), listed.name)}")

    def dataset(self, where: str) -> Dataset:
        """All of it, in sessions."""
        if not self.rows:
            if len(self.errors) == 1:
                raise self.errors[0]
            reasons = Counter(item.reason for item in self.excluded).most_common()
            counted = "; ".join(f"{count} x {reason}" for reason, count in reasons) or "no file"
            first = f"; first: {self.errors[0].message}" if self.errors else ""
            raise InputError(
                f"{where}: no results of fio in this folder that can be read: {counted}{first}"
            )
        self._say_power()
        for row, name in zip(self.rows, sessions(self.origins), strict=True):
            row.setdefault("session_id", name)
        names = dict.fromkeys(name for row in self.rows for name in row)
        columns = {name: [row.get(name) for row in self.rows] for name in names}
        provenance = Provenance(
            importer="fio",
            sources=tuple(self.sources),
            warnings=tuple(self.warnings),
            excluded=tuple(self.excluded),
        )
        return Dataset.from_columns(columns, provenance)


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it; raises as `import_fio`."""
    power = None if options.power is None else parse_power_log(options.power)
    return import_fio(paths, strict=options.strict, constants=options.constants, power=power)


def measurement(
    file: FioFile, members: list[Entry], alone: bool, *, strict: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """One row of the schema from the jobs that ran side by side, and what is to be said of it.

    Args:
        file: What holds them.
        members: The jobs.
        alone: Whether the file holds no other jobs, so that its counters of the drive are theirs.
        strict: Refuse what is off Little's law, rather than call it doubtful.

    Raises:
        DataQualityError: They are more than 8 % off Little's law, with `strict`.
        InputError: They differ in a way that one measurement cannot express.
    """
    where = f"{file.name}, job {members[0].job.jobname!r}"
    setup_notes = dict.fromkeys(note for member in members for note in member.setup.notes)
    notes = [f"{where}: {note}" for note in setup_notes]
    ratios = [_littles_ratio(member) for member in members]
    members = [
        replace(member, partial=True)
        if abs(ratio - 1) > FAIL_ABOVE and _ended_apart(member, ratio)
        else member
        for member, ratio in zip(members, ratios, strict=True)
    ]
    notes += [
        f"{file.name}, job {member.job.jobname!r}: throughput x mean latency / concurrency "
        f"= {ratio:.3f}, more than {WARN_ABOVE:.0%} off Little's law"
        for member, ratio in zip(members, ratios, strict=True)
        if abs(ratio - 1) > WARN_ABOVE
    ]
    off = [
        (member, ratio)
        for member, ratio in zip(members, ratios, strict=True)
        if abs(ratio - 1) > FAIL_ABOVE and not member.partial
    ]
    if strict and off and not off[0][0].setup.buffered:
        message = littles_message(off[0][0].where, off[0][1])
        raise DataQualityError(message, field="off Little's law by more than 8 %")
    jobs = sum(member.clones for member in members)
    first, each = _first_to_end(members)
    fields, stats = combined(first)
    if each > 1:
        stats = {name: item.times(each) for name, item in stats.items()}
        fields["jobs"] = jobs
        for demand in DEMANDS & fields.keys():
            fields[demand] *= each
        notes.append(
            f"{where}: jobs ended by themselves; the rate of all {jobs} is that of the "
            f"{len(first)} that ended first"
        )
    total = together(list(stats.values()))
    row = {**fields, **_observed(total, "")}
    if fields["operation"] == "mixed":
        for direction in ("read", "write"):
            if direction in stats:
                row |= _observed(stats[direction], f"{direction}_")
    row["series_id"] = file.series
    row |= _judgement(first, off_law=bool(off))
    if file.host is not None:
        row["host_id"] = hashlib.sha256(file.host.encode()).hexdigest()[:16]
    notes += _latency_notes(total, where, several=len(first) > 1 or len(stats) > 1)
    actual = total.bytes_per_second / total.iops
    if abs(actual / fields["request_bytes"] - 1) > 0.01:
        notes.append(
            f"{where}: requests were {actual:.0f} B on average, not {fields['request_bytes']} B"
        )
    switches = each * sum(member.job.ctx for member in first)
    cores = sum((m.job.usr_cpu + m.job.sys_cpu) / 100 * m.clones for m in first)
    row["cpu_utilisation"] = each * cores
    row["context_switches_per_second"] = switches / total.runtime_seconds
    if "engine" in fields:
        row |= _waiting(row, switches / (each * total.requests), where, notes)
    if alone and each == 1:
        row |= _device_counters(file, first, total)
    return {name: value for name, value in row.items() if value is not None}, notes


def _latency_notes(total: Stats, where: str, *, several: bool) -> list[str]:
    """What is not known of the latencies."""
    if total.mean_ns is None:
        return [f"{where}: latencies were not measured (disable_lat, gtod_reduce)"]
    if total.doubtful:
        return [f"{where}: {total.doubtful}"]
    if several and "p99" not in total.percentiles_ns:
        need = "percentiles of several jobs or directions need their histograms; left out"
        return [f"{where}: {need}: run fio with --output-format=json+"]
    return []


def _judgement(members: Sequence[Entry], *, off_law: bool) -> dict[str, str]:
    """Why a run says nothing certain of one drive, although its figures are right."""
    drives = set().union(*(member.setup.devices for member in members))
    reasons = {
        ReasonCode.PAGE_CACHE: any(member.setup.buffered for member in members),
        ReasonCode.SEVERAL_DRIVES: len(drives) > 1,
        ReasonCode.MERGED_JOBS: any(member.merged for member in members),
        ReasonCode.PARTIAL_OVERLAP: any(member.partial for member in members),
        ReasonCode.LITTLES_LAW: off_law,
    }
    codes = ",".join(code for code, holds in reasons.items() if holds)
    return {"verdict": Verdict.DOUBTFUL, "verdict_reasons": codes} if codes else {}


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


def _littles_ratio(member: Entry) -> float:
    """Rate x latency / depth of one job with its own depth; 1 where the law says nothing.

    The time of the flushes counts: a job that waits for one has no other request in flight.
    """
    total = member.total
    flushes = member.job.sync
    timed = not member.setup.fields.get("flush_every_writes") or flushes.total_ios > 0
    if total.mean_ns is None or member.setup.held_back or not timed:
        return 1.0
    flushing = flushes.total_ios * flushes.lat_ns.mean / total.runtime_seconds
    return (total.iops * total.mean_ns + flushing) * 1e-9 / member.in_flight


def _ended_apart(member: Entry, ratio: float) -> bool:
    """Whether jobs that group_reporting merged ran so long that Little's law is explained."""
    if member.clones == 1 or not member.job.job_runtime:
        return False
    share = member.job.job_runtime / (1000 * member.total.runtime_seconds * member.clones)
    return share < 1 and abs(ratio / share - 1) <= FAIL_ABOVE


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
