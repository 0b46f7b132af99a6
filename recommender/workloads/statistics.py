"""Counters that hosts and databases keep, as what was seen of a workload.

iostat -x (text, or -o JSON), sar -d (or sadf -d, -j), pg_stat_io of PostgreSQL 16 and later (psql
--csv or its table), answers of Prometheus to query_range of node_exporter's counters, and smartctl
-x --json.
None of them tells the order of the addresses, single gaps, or sizes beyond their mean.

A new source is one function from text to `Seen` per drive and one line in `STATISTICS`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.io_summary import IoSource, IoSummary, IoWindow

_ORDER = "the order of the addresses is not known and taken as random; --pattern states it"


@dataclass
class Seen:
    """What a source counted of one drive.

    Attributes:
        seconds: Over how long; 0 = not known.
        reads: Read requests.
        writes: Write requests.
        read_bytes: Read.
        write_bytes: Written.
        flushes: Flushes; None = not counted.
        busy_seconds: Time with a request in flight; None = not counted.
        queued_seconds: Requests in flight times seconds; None = not counted.
        sequential: Requests that are known to be sequential; None = not counted.
        notes: What the source does not tell.
    """

    seconds: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    flushes: float | None = None
    busy_seconds: float | None = None
    queued_seconds: float | None = None
    sequential: float | None = None
    notes: list[str] = field(default_factory=list)

    def window(self) -> IoWindow:
        """As a window of a summary."""
        requests = round(self.reads) + round(self.writes)
        in_flight: dict[int, float] = {}
        if self.busy_seconds and self.queued_seconds is not None:
            # two whole levels whose mean is what was counted
            mean = max(1.0, self.queued_seconds / self.busy_seconds)
            more = self.busy_seconds * (mean % 1.0)
            levels = {int(mean): self.busy_seconds - more, int(mean) + 1: more}
            in_flight = {level: seconds for level, seconds in levels.items() if seconds > 0.0}
        share = None if self.sequential is None or not requests else self.sequential / requests
        return IoWindow(
            seconds=self.seconds or None,
            reads=round(self.reads),
            writes=round(self.writes),
            read_bytes=round(self.read_bytes),
            write_bytes=round(self.write_bytes),
            flushes=None if self.flushes is None else round(self.flushes),
            busy_seconds=self.busy_seconds,
            in_flight=in_flight,
            sequential_share=None if share is None else min(1.0, share),
        )


Drives = dict[str, Seen]


def statistics_summary(
    source: IoSource, text: str, where: str, name: str, drive: str | None
) -> IoSummary:
    """What a file of counters says of one drive.

    Args:
        source: Which program wrote it.
        text: All of it.
        where: The file, for messages.
        name: What to call the workload.
        drive: Which of its drives; None where there is but one that works.

    Raises:
        InputError: It is not what it should be, or holds several drives and none is named.
    """
    try:
        drives = STATISTICS[source](text, where)
    except InputError as error:
        message = error.message if where in error.message else f"{where}: {error.message}"
        raise InputError(message, field=error.field) from None
    except (
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        raise InputError(f"{where}: damaged output of {source} ({error})") from None
    working = {each: seen for each, seen in drives.items() if seen.reads + seen.writes > 0}
    if not drives:
        raise InputError(f"{where}: no drive in this output of {source}")
    if drive is None:
        if len(working) > 1:
            listed = ", ".join(sorted(working))
            raise InputError(
                f"{where}: {len(working)} drives: {listed}; name one with --drive", field="drive"
            )
        drive = next(iter(working or drives))
    chosen = drive.removeprefix("/dev/")
    if chosen not in drives:
        raise InputError(
            f"{where}: no drive {chosen}{close_names(chosen, drives)} It has: "
            f"{', '.join(sorted(drives))}",
            field="drive",
        )
    seen = drives[chosen]
    notes = [*seen.notes, *([_ORDER] if seen.sequential is None else [])]
    return IoSummary(source=source, name=name, windows=(seen.window(),), notes=tuple(notes))


# sysstat --------------------------------------------------------------------------------------

_BYTES = {
    ("rkB/s", "wkB/s"): 1024.0,
    ("rMB/s", "wMB/s"): 1024.0**2,
    ("rsec/s", "wsec/s"): 512.0,
    ("rd_sec/s", "wr_sec/s"): 512.0,  # sar before version 11.5
}
_HUMAN = {"B": 1 / 1024, "k": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}
"""What --human appends, in the kB of its columns."""


def _cell(text: str) -> float:
    """A number as sysstat writes it: with the locale's comma, and with units for --human."""
    text = text.replace(",", ".").removesuffix("%")
    return float(text[:-1]) * _HUMAN[text[-1]] if text[-1:] in _HUMAN else float(text)


def _bytes(row: Mapping[str, float]) -> tuple[float, float]:
    """Bytes a second of reads and of writes, in whichever unit sysstat was asked for."""
    for (read, written), scale in _BYTES.items():
        if read in row:
            return row[read] * scale, row[written] * scale
    raise InputError(
        "no columns of bytes read and written (iostat -s and sar -b leave them out); write it with "
        "iostat -x -t 10 or sar -d 10 60"
    )


def _add(seen: Seen, row: Mapping[str, float], seconds: float) -> None:
    read, written = _bytes(row)
    if "r/s" in row:
        reads, writes = row["r/s"], row["w/s"]
    else:  # sar counts both together
        total = read + written
        reads = row["tps"] * (read / total if total else 0.0)
        writes = row["tps"] - reads if total else 0.0
    seen.seconds += seconds
    seen.reads += reads * seconds
    seen.writes += writes * seconds
    seen.read_bytes += read * seconds
    seen.write_bytes += written * seconds
    if "f/s" in row:
        seen.flushes = (seen.flushes or 0.0) + row["f/s"] * seconds
    seen.busy_seconds = (seen.busy_seconds or 0.0) + row.get("%util", 0.0) / 100 * seconds
    queue = row.get("aqu-sz", row.get("avgqu-sz", 0.0))
    seen.queued_seconds = (seen.queued_seconds or 0.0) + queue * seconds


Report = tuple[datetime | None, dict[str, dict[str, float]]]


def _put_together(reports: list[Report]) -> Drives:
    """Sum up reports; the first of several is the mean since the host was started."""
    drives: Drives = {}
    note = "the only report is the mean since the host was started; iostat -x 10 shows the present"
    untimed = "reports bear no time: each counts alike (iostat -t writes it)"
    for index, (moment, rows) in enumerate(reports[1:] or reports, 1):
        before = reports[index - 1][0] if len(reports) > 1 else None
        timed = moment is not None and before is not None
        seconds = (moment - before).total_seconds() % 86400 if moment and before else 1.0
        for name, row in rows.items():
            notes = [note] if len(reports) == 1 else [] if timed else [untimed]
            seen = drives.setdefault(name, Seen(notes=notes))
            _add(seen, row, seconds or 1.0)
    return drives


_MOMENTS = ("%m/%d/%Y %I:%M:%S %p", "%m/%d/%y %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%H:%M:%S")


def _moment(text: str) -> datetime | None:
    for form in (*_MOMENTS, "%m/%d/%Y %H:%M:%S", "%I:%M:%S %p"):
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=None)  # noqa: DTZ007
        except ValueError:
            continue
    return None


def parse_iostat(text: str, where: str) -> Drives:
    """Read iostat -x, as text or as JSON."""
    if text.lstrip().startswith("{"):
        (host,) = json.loads(text)["sysstat"]["hosts"]
        listed = [_json_report(report) for report in host["statistics"]]
        stamp = host["statistics"][0].get("timestamp") if listed else None
        if isinstance(stamp, dict) and listed[0][0] is not None:  # sadf -j counts from the first
            began = listed[0][0] - timedelta(seconds=float(stamp["interval"]))
            listed.insert(0, (began, {}))
        return _put_together(listed)
    reports: list[Report] = []
    names: list[str] = []
    moment: datetime | None = None
    for line in text.splitlines():
        cells = line.split()
        if not cells:
            names = []
        elif cells[0].rstrip(":") == "Device":
            names = cells[1:]
            reports.append((moment, {}))
        elif names and len(cells) == len(names) + 1:
            numbers = [_cell(cell) for cell in cells[1:]]
            reports[-1][1][cells[0]] = dict(zip(names, numbers, strict=True))
        else:
            moment = _moment(line) or moment
    if not reports:
        raise InputError(f"{where}: no table of devices; write it with iostat -x -t 10")
    return _put_together(reports)


_SADF = {"rkB": "rkB/s", "wkB": "wkB/s", "util-percent": "%util", "disk-device": "disk_device"}
"""What sadf -j calls otherwise than iostat -o JSON."""


def _json_report(report: Mapping[str, Any]) -> Report:
    stamp = report.get("timestamp", "")
    if isinstance(stamp, dict):  # sadf -j
        stamp = f"{stamp['date']}T{stamp['time']}+0000"
    rows: dict[str, dict[str, float]] = {}
    for disk in report.get("disk", []):
        row = {_SADF.get(name, name): value for name, value in disk.items()}
        device = row.pop("disk_device")
        rows[device] = {name: float(value) for name, value in row.items()}
    return _moment(str(stamp)), rows


def parse_sar(text: str, where: str) -> Drives:
    """Read sar -d or sadf -d; reads and writes are told apart by their bytes."""
    reports: list[Report] = [(None, {})]
    names: list[str] = []
    for line in text.splitlines():
        if line.count(";") > 4:  # sadf -d
            _sadf_line(line, reports, names)
            continue
        match = re.match(r"(\d\d:\d\d:\d\d(?: [AP]M)?)\s+(.*)", line)
        if match is None:
            continue
        moment = _moment(match[1])
        cells = match[2].split()
        if "DEV" in cells:  # -p writes it last
            names = cells
            if reports == [(None, {})]:
                reports = [(moment, {})]
            continue
        if moment != reports[-1][0]:
            reports.append((moment, {}))
        row = dict(zip(names, cells, strict=True))
        device = row.pop("DEV")
        reports[-1][1][device] = {name: _cell(cell) for name, cell in row.items()}
    if len(reports) < 2:
        raise InputError(f"{where}: no table of devices; write it with sar -d -p 10 60")
    drives = _put_together(reports)
    for seen in drives.values():
        seen.notes.append("sar counts reads and writes together: split as their bytes are")
    return drives


def _sadf_line(line: str, reports: list[Report], names: list[str]) -> None:
    cells = line.split(";")
    if line.startswith("#"):
        names[:] = cells
        return
    row = dict(zip(names, cells, strict=True))
    moment = _moment(row["timestamp"].removesuffix(" UTC").replace(" ", "T") + "+0000")
    if reports == [(None, {})] and moment is not None:
        reports[0] = (moment - timedelta(seconds=float(row["interval"])), {})
    if moment != reports[-1][0]:
        reports.append((moment, {}))
    numbers = {name: _cell(row[name]) for name in names[4:]}
    reports[-1][1][row["DEV"]] = numbers


# PostgreSQL -----------------------------------------------------------------------------------


def parse_pg_stat_io(text: str, where: str) -> Drives:
    """Rows of pg_stat_io; with a column `now` beside them they have a time."""
    rows = list(_table(text))
    if not rows or "backend_type" not in rows[0]:
        raise InputError(f"{where}: no columns of pg_stat_io")
    seen = Seen(flushes=0.0, sequential=0.0)
    for row in rows:
        size = _number(row.get("op_bytes")) or 8192.0
        reads, writes = _number(row.get("reads")), _number(row.get("writes"))
        extends = _number(row.get("extends"))
        seen.reads += reads
        seen.writes += writes + extends
        seen.read_bytes += _number(row.get("read_bytes")) or reads * size
        seen.write_bytes += _number(row.get("write_bytes")) or writes * size
        seen.write_bytes += _number(row.get("extend_bytes")) or extends * size
        seen.flushes = (seen.flushes or 0.0) + _number(row.get("fsyncs"))
        if row.get("context") in ("bulkread", "bulkwrite", "vacuum"):
            seen.sequential = (seen.sequential or 0.0) + reads + writes
    now, since = rows[0].get("now"), rows[0].get("stats_reset")
    if now and since:
        seen.seconds = (_timestamp(now) - _timestamp(since)).total_seconds()
    else:
        seen.notes.append(
            "no time is known, so no demand: write it with psql --csv -c "
            "'select now(), * from pg_stat_io'"
        )
    seen.notes.append(
        "these are requests to the kernel: what its page cache answers never reaches the drive, "
        "which may halve what the drive sees (000, F14); `iojoule workload observe` counts there"
    )
    return {"postgresql": seen}


def _table(text: str) -> Iterator[dict[str, str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and "|" in lines[0]:
        names = [cell.strip() for cell in lines[0].split("|")]
        for line in lines[1:]:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == len(names):
                yield dict(zip(names, cells, strict=True))
    else:
        yield from csv.DictReader(lines)


def _number(text: str | None) -> float:
    return float(text) if text else 0.0


def _timestamp(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r"([+-]\d\d)$", r"\1:00", text.strip()))


# Prometheus and SMART -------------------------------------------------------------------------

_COUNTERS = {
    "node_disk_reads_completed_total": "reads",
    "node_disk_writes_completed_total": "writes",
    "node_disk_read_bytes_total": "read_bytes",
    "node_disk_written_bytes_total": "write_bytes",
    "node_disk_flush_requests_total": "flushes",
    "node_disk_io_time_seconds_total": "busy_seconds",
    "node_disk_io_time_weighted_seconds_total": "queued_seconds",
}


def parse_prometheus(text: str, where: str) -> Drives:
    """Answers to query_range for node_exporter's counters of disks, one or several in a file."""
    drives: Drives = {}
    instances: set[str] = set()
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        answer, place = decoder.raw_decode(text, place)
        for series in answer["data"]["result"]:
            metric, values = series["metric"], series["values"]
            if metric.get("__name__") not in _COUNTERS:
                continue
            name = _COUNTERS[metric["__name__"]]
            instances.add(metric.get("instance", ""))
            seen = drives.setdefault(metric["device"], Seen())
            counts = [float(value) for _, value in values]
            # a counter that falls has begun again from zero
            grown = sum(b - a if b >= a else b for a, b in pairwise(counts))
            setattr(seen, name, (getattr(seen, name) or 0.0) + grown)
            seen.seconds = max(seen.seconds, float(values[-1][0]) - float(values[0][0]))
    if len(instances) > 1:
        raise InputError(f'{where}: {len(instances)} hosts; query one: instance="..."')
    if not drives:
        raise InputError(
            f"{where}: none of node_exporter's counters; query their raw values, not rate(): "
            '{__name__=~"node_disk_.*_total",device="nvme0n1"}'
        )
    return drives


def parse_smartctl(text: str, where: str) -> Drives:
    """Counters of an NVMe drive over its life, from smartctl -x --json."""
    report = json.loads(text)
    log = report.get("nvme_smart_health_information_log")
    if log is None:
        raise InputError(
            f"{where}: no health log of an NVMe drive: SATA drives have no common counters of "
            "requests; use iostat -x or `iojoule workload observe`"
        )
    seconds = 3600.0 * log["power_on_hours"]
    model = report.get("model_name", "drive")
    used = log.get("percentage_used")
    note = (
        f"{model}: the mean over {log['power_on_hours']} h of power, {used} % of its rated "
        "endurance used; its busy hours ask for more"
    )
    seen = Seen(
        seconds=seconds,
        reads=log["host_reads"],
        writes=log["host_writes"],
        read_bytes=512e3 * log["data_units_read"],
        write_bytes=512e3 * log["data_units_written"],
        busy_seconds=60.0 * log["controller_busy_time"],
        notes=[note],
    )
    return {report.get("device", {}).get("name", model).removeprefix("/dev/"): seen}


STATISTICS: dict[IoSource, Callable[[str, str], Drives]] = {
    IoSource.IOSTAT: parse_iostat,
    IoSource.SAR: parse_sar,
    IoSource.PG_STAT_IO: parse_pg_stat_io,
    IoSource.PROMETHEUS: parse_prometheus,
    IoSource.SMARTCTL: parse_smartctl,
}
"""Source -> from the text and its place to what was seen of each drive."""

_LOOKS_LIKE = {
    IoSource.IOSTAT: re.compile(r'^Device:?\s.*%util\s*$|\{\s*"sysstat"', re.MULTILINE),
    IoSource.SAR: re.compile(
        r"^\d\d:\d\d:\d\d( [AP]M)?\s+(DEV\s|.*\sDEV$)|^# hostname;interval;timestamp;DEV;",
        re.MULTILINE,
    ),
    IoSource.PG_STAT_IO: re.compile(r"^[^\n]*\bbackend_type\b[^\n]*\bcontext\b", re.MULTILINE),
    IoSource.PROMETHEUS: re.compile(r'"resultType"\s*:\s*"matrix"'),
    IoSource.SMARTCTL: re.compile(r'^\s*\{\s*"json_format_version"'),
}


def statistics_source(text: str) -> IoSource | None:
    """Which of the sources a text is of; None for none."""
    head = text[:20_000]
    return next((each for each, form in _LOOKS_LIKE.items() if form.search(head)), None)
