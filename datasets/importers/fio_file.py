"""Finds fio's output among files and decodes it, whatever stands around it.

fio prints notes before the JSON; a file may hold several runs; with `--status-interval` a run
writes one cumulative document after the other, of which the last is the whole run; versions
before 3 count in microseconds. Text is read into the same documents (`fio_text`).

Several jobs are added up: rates add, means are weighted by completed requests. Percentiles of
several jobs exist only where every job has its histogram (`bins`, json+): histograms add exactly,
percentiles do not.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.importers.fio_logs import document_of_logs
from iojoule.datasets.importers.fio_text import (
    NORMAL,
    TERSE,
    normal_documents,
    printed_options,
    terse_document,
)
from iojoule.datasets.input_file import read_input_text
from iojoule.datasets.provenance import unreadable
from iojoule.datasets.schema import Count, NonNegative

_LOOK_BYTES = 64 * 1024
_MARK = '"fio version"'
_RUN = re.compile(r'\{\s*"fio version"')
_OBJECT = re.compile(r"^[ \t]*\{", flags=re.MULTILINE)
_AGAIN = "run fio again with --output=FILE --output-format=json+"
_SOURCE_CODE = re.compile(
    r"\.(c|cc|cpp|go|h|html|ipynb|js|md|pl|py|rb|rs|rst|sh|sql|toml|tsx?|ya?ml)", re.IGNORECASE
)
NOT_FIO = "not fio's output"
"""The reason of a file that is skipped rather than refused."""

Options = Annotated[
    dict[str, str],
    BeforeValidator(lambda v: {k: str(o) for k, o in v.items()} if isinstance(v, dict) else v),
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False, populate_by_name=True)


class Latency(_Part):
    """One of fio's latency records, in the unit of its key (ns, before version 3 us)."""

    mean: NonNegative = 0.0
    count: Count | None = Field(default=None, alias="N")
    percentile: dict[str, NonNegative] = {}
    bins: dict[str, Count] = {}


class Direction(_Part):
    """What fio says about the reads, the writes or the trims of a job."""

    io_bytes: Count = 0
    io_kbytes: Count | None = None
    bw: NonNegative = 0.0
    bw_bytes: NonNegative | None = None
    iops: NonNegative = 0.0
    runtime: Count = 0
    total_ios: Count = 0
    slat_ns: Latency | None = None
    clat_ns: Latency | None = None
    lat_ns: Latency | None = None
    slat: Latency | None = None
    clat: Latency | None = None
    lat: Latency | None = None


class Syncs(_Part):
    """The flushes of a job."""

    total_ios: Count = 0
    lat_ns: Latency = Latency()


class FioJob(_Part):
    """One entry of `jobs`: a job, or with group_reporting all jobs of its group."""

    jobname: str
    groupid: int = 0
    error: int = 0
    options: Options = Field(default={}, alias="job options")
    read: Direction = Direction()
    write: Direction = Direction()
    trim: Direction = Direction()
    mixed: Direction | None = None
    sync: Syncs = Syncs()
    job_runtime: Count | None = None
    elapsed: Count | None = None
    job_start: Count | None = None
    usr_cpu: NonNegative = 0.0
    sys_cpu: NonNegative = 0.0
    ctx: Count = 0


class DiskUtil(_Part):
    """Counters of a block device over the whole run."""

    name: str
    read_ios: Count = 0
    write_ios: Count = 0
    read_merges: Count = 0
    write_merges: Count = 0


class FioRun(_Part):
    """One document of fio."""

    version: str = Field(alias="fio version")
    timestamp: Count | None = None
    timestamp_ms: Count | None = None
    global_options: Options = Field(default={}, alias="global options")
    jobs: tuple[FioJob, ...]
    disk_util: tuple[DiskUtil, ...] = ()

    @property
    def ended_seconds(self) -> float | None:
        """When it was written, in Unix time."""
        milliseconds = self.timestamp_ms
        return self.timestamp if milliseconds is None else milliseconds / 1000


@dataclass(frozen=True)
class FioFile:
    """A run that was read from a file.

    Attributes:
        path: Where it lies.
        name: Its name without private folders: relative to the folder that was given.
        series: The folder it was found in, relative likewise; None for a file named directly.
        run: The document of the whole run.
        notes: What was unusual about it.
        host: Which client of a client/server run it is of.
        options: What fio printed before the run about jobs whose options it does not record.
    """

    path: Path
    name: str
    series: str | None
    run: FioRun
    notes: tuple[str, ...]
    host: str | None = None
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A file to import; `name` and `series` as in `FioFile`."""

    path: Path
    name: str
    series: str | None


def find_files(paths: Sequence[Path]) -> list[Found]:
    """List the files to import: those named, and in folders *.json and what holds fio's output.

    Raises:
        InputError: A path does not exist, or a folder holds nothing that could be fio's.
    """
    files: list[Found] = []
    for path in paths:
        inside = [file for file in files_in(path) if _could_be_fio(file.path)]
        if not inside and path.is_dir():
            raise InputError(f"{path}: no fio JSON in this folder; {_AGAIN}")
        files += inside if path.is_dir() else files_in(path)
    return files


def files_in(path: Path) -> list[Found]:
    """Every file of a folder, or the file itself.

    Raises:
        InputError: It does not exist.
    """
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; check the path")
        return [Found(path, path.name, None)]
    listed = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            relative = file.relative_to(path)
            series = path.resolve().name if relative.parent == Path() else str(relative.parent)
            listed.append(Found(file, str(relative), series))
    return listed


def load(file: Found) -> FioFile:
    """Decode a file that holds one run.

    Raises:
        DataQualityError: The file is cut off or half written.
        InputError: It is empty, not text, not fio's, or holds several runs.
    """
    runs = load_runs(file)
    if len(runs) > 1:
        raise InputError(
            f"{file.path}: holds {len(runs)} runs, where one is expected; split it into one file "
            "per run"
        )
    return runs[0]


def load_runs(file: Found) -> list[FioFile]:
    """Decode every run in a file, whatever stands around it.

    Documents that one run wrote at intervals (--status-interval) are one run, the last of them.
    Each client of a client/server run is a run of its own.

    Raises:
        DataQualityError: The file is cut off or half written.
        InputError: It is empty, not text, or not fio's.
    """
    text = _text(file.path)
    listed: list[FioFile] = []
    if _MARK not in text and TERSE.search(text):
        document = terse_document(text, str(file.path))
        run = _validate(file.path, document)
        return [FioFile(file.path, file.name, file.series, run, (), options=printed_options(text))]
    if _MARK not in text and NORMAL.search(text):
        for number, (document, options) in enumerate(normal_documents(text, str(file.path)), 1):
            name = file.name if number == 1 else f"{file.name}#{number}"
            run = _validate(file.path, document)
            listed.append(FioFile(file.path, name, file.series, run, (), options=options))
        return listed
    hosts: dict[str | None, list[FioRun]] = {}
    for document in _documents(file.path, text):
        for host, own in _by_host(file.path, document):
            hosts.setdefault(host, []).append(_validate(file.path, own))
    begin = _RUN.search(text)
    options = printed_options(text[: begin.start()] if begin else text)
    for host, runs in hosts.items():
        for several in _cumulative(runs):
            name = file.name if not listed else f"{file.name}#{len(listed) + 1}"
            count = len(several)
            notes = [f"{name}: {count} cumulative documents, the last is the run"] * (count > 1)
            notes += [f"{name}: ran beside {len(hosts) - 1} other hosts"] * (len(hosts) > 1)
            run_file = FioFile(
                file.path, name, file.series, several[-1], tuple(notes), host, options
            )
            listed.append(run_file)
    return listed


def load_logs(run: str, logs: Sequence[tuple[str, Found]]) -> FioFile:
    """The run that logs over time were kept of, by kind and file.

    Raises:
        InputError: They do not tell what it achieved.
    """
    first = logs[0][1]
    document = document_of_logs(run, [(kind, each.path) for kind, each in logs])
    path = first.path.with_name(run)
    name = str(Path(first.name).with_name(run))
    note = f"{name}: read from {len(logs)} logs over time: no percentiles"
    return FioFile(path, name, first.series, _validate(path, document), (note,))


def _text(path: Path) -> str:
    try:
        text = read_input_text(path)
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not text, so not fio's JSON; {_AGAIN}", field=NOT_FIO) from None
    if not text.strip():
        raise DataQualityError(
            f"{path}: empty: fio failed or is still running; {_AGAIN}", field="empty file"
        )
    return text


def _could_be_fio(path: Path) -> bool:
    return path.suffix.lower() == ".json" or holds_fio(path)


def holds_fio(path: Path) -> bool:
    """Whether a file looks like output of fio: JSON, terse lines or normal, not source code."""
    if _SOURCE_CODE.fullmatch(path.suffix):
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_LOOK_BYTES)
    except OSError:
        return False
    if _MARK.encode() in head:
        return True
    text = head.decode(errors="replace") if b"%=" in head or b"(groupid=" in head else ""
    return TERSE.search(text) is not None or NORMAL.search(text) is not None


def _documents(path: Path, text: str) -> list[Any]:
    """Every document of fio, wherever it stands; text before and between them is fio talking."""
    decoder = json.JSONDecoder()
    documents: list[Any] = []
    begins = _RUN if _RUN.search(text) else _OBJECT
    match = begins.search(text)
    while match is not None:
        place = match.start() if begins is _RUN else match.end() - 1
        try:
            document, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            if _MARK not in text:
                raise InputError(f"{path}: not fio's JSON; {_AGAIN}", field=NOT_FIO) from None
            # a number of thousands of digits, and lists in lists without end, have no place
            at, why = place, str(error)
            if isinstance(error, json.JSONDecodeError):
                at, why = error.pos, error.msg
            line = text.count("\n", 0, at) + 1
            raise DataQualityError(
                f"{path}, line {line}: the JSON is cut off or damaged ({why}); "
                f"copy the file again, or {_AGAIN}",
                field="cut off or damaged",
            ) from None
        documents.append(document)
        match = begins.search(text, end)
    documents = [item for item in documents if isinstance(item, dict) and "fio version" in item]
    if not documents:
        raise InputError(f"{path}: not fio's JSON (no {_MARK}); {_AGAIN}", field=NOT_FIO)
    return documents


def _by_host(path: Path, document: dict[str, Any]) -> list[tuple[str | None, dict[str, Any]]]:
    """A document for each client of a client/server run; fio's sum of all clients is left out."""
    if "client_stats" not in document:
        return [(None, document)]
    clients: dict[str, list[Any]] = {}
    listed = document["client_stats"]
    for entry in listed if isinstance(listed, list) else []:
        # the sum bears the address of the last client
        summed = isinstance(entry, dict) and entry.get("jobname") == "All clients"
        if isinstance(entry, dict) and "hostname" in entry and not summed:
            clients.setdefault(f"{entry['hostname']}:{entry.get('port')}", []).append(entry)
    if not clients:
        raise InputError(
            f"{path}: a client/server run of fio whose clients reported nothing; {_AGAIN}",
            field="no results of clients",
        )
    shared = {name: value for name, value in document.items() if name != "client_stats"}
    if len(clients) > 1:
        shared.pop("disk_util", None)  # of all hosts together
    return [(host, {**shared, "jobs": jobs}) for host, jobs in clients.items()]


def _validate(path: Path, document: dict[str, Any]) -> FioRun:
    try:
        run = FioRun.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path}: {place}: {first['msg']}: not what fio writes; {_AGAIN}",
            field="not what fio writes",
        ) from None
    if not run.jobs:
        raise DataQualityError(f"{path}: fio ran no job; {_AGAIN}", field="no job ran")
    return run


def _cumulative(runs: list[FioRun]) -> list[list[FioRun]]:
    """Documents of one run together: the same jobs that never count backwards."""
    groups = [[runs[0]]]
    for earlier, later in pairwise(runs):
        if _continues(earlier, later):
            groups[-1].append(later)
        else:
            groups.append([later])
    return groups


def _continues(earlier: FioRun, later: FioRun) -> bool:
    names = [(job.jobname, job.options) for job in earlier.jobs]
    if names != [(job.jobname, job.options) for job in later.jobs]:
        return False
    if any(_total(new) < _total(old) for old, new in zip(earlier.jobs, later.jobs, strict=True)):
        return False
    before, after = earlier.ended_seconds, later.ended_seconds
    elapsed = (earlier.jobs[0].elapsed, later.jobs[0].elapsed)
    if before is None or after is None or None in elapsed:
        return True
    # both are rounded to seconds; another run begins to count its time from zero
    passed = (elapsed[1] or 0) - (elapsed[0] or 0)
    return abs(after - before - passed) <= 3 + 0.05 * (after - before)


def _total(job: FioJob) -> int:
    parts = (job.read, job.write, job.mixed or Direction())
    return sum(part.total_ios for part in parts)


PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
"""The percentiles of the schema, in percent."""


@dataclass(frozen=True)
class Stats:
    """What one direction of one job, or several of them together, achieved.

    Attributes:
        bytes_per_second: Throughput.
        iops: Completed requests per second.
        requests: Completed requests.
        runtime_seconds: The longest runtime of the parts.
        mean_ns: Mean latency from submission to completion; None if it was not measured.
        percentiles_ns: By the names of `PERCENTILES`, as far as fio states them.
        bins: Histogram of latencies: ns -> requests; None where one of the parts has none.
        doubtful: Why percentiles were dropped, if they were.
    """

    bytes_per_second: float
    iops: float
    requests: int
    runtime_seconds: float
    mean_ns: float | None
    percentiles_ns: Mapping[str, float]
    bins: Mapping[float, int] | None
    doubtful: str | None = None

    def times(self, number: float) -> Stats:
        """The rates of so many alike; latencies stay."""
        return replace(
            self, bytes_per_second=number * self.bytes_per_second, iops=number * self.iops
        )


def direction_stats(direction: Direction) -> Stats:
    """Read one direction of one job, whatever version of fio wrote it.

    The mean is that of `lat` (submission plus completion), or of `clat` plus `slat` where `lat`
    was disabled. Percentiles and histogram are those of `lat` where fio was asked for them
    (lat_percentiles), else those of `clat`, which leaves out the submission.
    """
    modern = direction.clat_ns is not None or direction.lat_ns is not None
    scale = 1.0 if modern else 1000.0  # before version 3 in us
    lat = (direction.lat_ns if modern else direction.lat) or Latency()
    clat = (direction.clat_ns if modern else direction.clat) or Latency()
    slat = (direction.slat_ns if modern else direction.slat) or Latency()
    mean = (lat.mean or clat.mean + slat.mean) * scale
    source = lat if lat.bins or lat.percentile else clat
    broken = source is clat and lat.mean > 0 and clat.mean > 1.05 * lat.mean
    doubtful = (
        f"completion latency {clat.mean * scale:.3g} ns exceeds total latency {mean:.3g} ns, so "
        "its percentiles are left out (sqthread_poll does this)"
        if broken
        else None
    )
    bytes_per_second = direction.bw_bytes if direction.bw_bytes else direction.bw * 1024
    return Stats(
        bytes_per_second=bytes_per_second,
        iops=direction.iops,
        requests=direction.total_ios,
        runtime_seconds=direction.runtime / 1000,
        mean_ns=mean or None,
        percentiles_ns={} if broken else _percentiles(source, scale),
        bins=None if broken else _histogram(source, scale),
        doubtful=doubtful,
    )


def together(parts: Sequence[Stats]) -> Stats:
    """What several jobs or directions that ran side by side achieved together."""
    if len(parts) == 1:
        return parts[0]
    requests = sum(part.requests for part in parts)
    known = [part.mean_ns for part in parts if part.mean_ns is not None]
    weighted = sum((part.mean_ns or 0.0) * part.requests for part in parts)
    histograms = [part.bins for part in parts if part.bins is not None]
    bins = merge_bins(histograms) if len(histograms) == len(parts) else None
    return Stats(
        bytes_per_second=sum(part.bytes_per_second for part in parts),
        iops=sum(part.iops for part in parts),
        requests=requests,
        runtime_seconds=max(part.runtime_seconds for part in parts),
        mean_ns=weighted / requests if requests and len(known) == len(parts) else None,
        percentiles_ns=percentiles_of(bins) if bins else {},
        bins=bins,
        doubtful=next((part.doubtful for part in parts if part.doubtful), None),
    )


def merge_bins(histograms: Iterable[Mapping[float, int]]) -> dict[float, int]:
    """Add histograms; exact, because all of fio's bins lie on one grid."""
    total: Counter[float] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(sorted(total.items()))


def percentile(bins: Mapping[float, int], percent: float) -> float:
    """The latency of the first bin up to which `percent` of the requests completed.

    This is fio's own rule (stat.c, calc_clat_percentiles), so one job's histogram gives the
    percentiles that fio printed.
    """
    needed = percent / 100.0 * sum(bins.values())
    seen = 0
    value = math.nan
    for value in sorted(bins):
        seen += bins[value]
        if seen >= needed:
            break
    return value


def percentiles_of(bins: Mapping[float, int]) -> dict[str, float]:
    """The percentiles of the schema from a histogram."""
    return {name: percentile(bins, percent) for name, percent in PERCENTILES.items()}


def _percentiles(latency: Latency, scale: float) -> dict[str, float]:
    bins = _histogram(latency, scale)
    if bins:
        return percentiles_of(bins)
    stated = {float(key): value for key, value in latency.percentile.items()}
    return {
        name: stated[percent] * scale
        for name, percent in PERCENTILES.items()
        if stated.get(percent)
    }


def _histogram(latency: Latency, scale: float) -> dict[float, int] | None:
    counts = dict(latency.bins)
    bits = counts.pop("FIO_IO_U_PLAT_BITS", None)
    for key in ("FIO_IO_U_PLAT_VAL", "FIO_IO_U_PLAT_NR"):
        counts.pop(key, None)
    filled = {int(key): count for key, count in counts.items() if count}
    if not filled:
        return None
    if bits is None:
        return {key * scale: count for key, count in filled.items()}
    return {bin_middle(index, bits) * scale: count for index, count in filled.items()}


def bin_middle(index: int, bits: int) -> float:
    """The latency in the middle of a bin, for versions of fio that number their bins.

    Bins are exact up to 2^(bits+1); above, each power of two holds 2^bits of equal width
    (fio's stat.c, plat_idx_to_val).
    """
    per_octave = 1 << bits
    if index < 2 * per_octave:
        return float(index)
    shift = (index >> bits) - 1
    return float((1 << (shift + bits)) + ((index % per_octave) + 0.5) * (1 << shift))
