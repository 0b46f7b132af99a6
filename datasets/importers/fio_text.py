"""What fio says in text: normal output, terse lines, and the line that describes a job beforehand.

Terse output (fio's HOWTO, "Terse output") is one line a job with semicolons; versions 2 to 5 differ
in the fields at the front, in trims (4 and 5) and in samples and IOPS (5). Latencies are
microseconds, rates KiB/s. It states no options, so what a job was asked to do comes from the line
that fio printed, from the file's name or from the caller (`unrecorded_setup`).

Normal output (HOWTO, "Interpreting the output") rounds rates to three or four digits; the number of
requests and the runtime, which are exact, give them again.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from iojoule.datasets.errors import DataQualityError

TERSE = re.compile(r"^(?:2;[^;\n]*;\d+;\d+;\d+;|[345];fio-[^;\n]*;[^;\n]*;\d+;\d+;)", re.MULTILINE)
"""How a terse line begins."""

_PERCENTILES = 20

_PRINTED = re.compile(
    r"^(?P<name>\S.*?): \(g=\d+\): rw=(?P<rw>\w+), bs=(?P<sizes>.+?), ioengine="
    r"(?P<ioengine>[^,\s]+), iodepth=(?P<iodepth>\d+)",
    re.MULTILINE,
)
_STARTED = re.compile(r"^Starting (\d+) (?:process|thread)", re.MULTILINE)
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def printed_options(text: str) -> dict[str, dict[str, str]]:
    """Options by the name of the job, as fio prints them before it runs; empty without any.

    A name that stands for several jobs with other options is left out.
    """
    jobs: dict[str, dict[str, str]] = {}
    ambiguous: set[str] = set()
    for match in _PRINTED.finditer(text):
        options = {name: match[name] for name in ("rw", "ioengine", "iodepth")}
        options |= _printed_sizes(match["sizes"])
        if jobs.setdefault(match["name"], options) != options:
            ambiguous.add(match["name"])
    started = _STARTED.search(text)
    if len(jobs) == 1 and started is not None:
        next(iter(jobs.values()))["numjobs"] = started[1]
    return {name: options for name, options in jobs.items() if name not in ambiguous}


def _printed_sizes(text: str) -> dict[str, str]:
    """`(R) 4096B-16.0KiB, (W) ...` and before version 3 `4K-16K/4K-16K/...`: of 1024 bytes."""
    ranges = [
        [_scaled(end, _BINARY) for end in ends]
        for ends in re.findall(r"([\d.]+[KMGT]?)i?B?-([\d.]+[KMGT]?)i?B?", text)
    ][:2]
    if any(low != high for low, high in ranges):
        return {"bsrange": ",".join(f"{low:.0f}-{high:.0f}" for low, high in ranges)}
    sizes = [f"{low:.0f}" for low, _ in ranges]
    return {"bs": ",".join(dict.fromkeys(sizes))}


def _scaled(text: str, powers: Mapping[str, int]) -> float:
    match = re.match(r"([\d.]+)([KMGT]?)", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(text)
    return float(match[1]) * powers[match[2].upper()]


NORMAL = re.compile(r"^(\S.*?): \(groupid=(\d+), jobs=(\d+)\): err= *(\d+)(.*)$", re.MULTILINE)
"""How the results of a job begin in normal output."""

_RATES = re.compile(
    r"^ +(read|write|trim|mixed) ?: (?:IOPS=([\d.]+[kM]?), BW=([\d.]+[KMGT]?)i?B/s.*/(\d+)msec\)"
    r"|io=.*, bw=([\d.]+[KMGT]?)B/s, iops=([\d.]+[kM]?), runt= *(\d+)msec)"
)
_TIMES = re.compile(r"^ +(slat|clat|lat) \((nsec|usec|msec|sec)\) ?:.*avg= *([\d.]+[kKMG]?)")
_PERCENTILES_OF = re.compile(r"^ +(clat|lat) percentiles \((nsec|usec|msec|sec)\):")
_PERCENTILE = re.compile(r"([\d.]+)th=\[ *([\d.]+[kKMG]?)\]")
_CPU = re.compile(r"^ +cpu +: usr=([\d.]+)%, sys=([\d.]+)%, ctx=(\d+)")
_ISSUED = re.compile(r"^ +issued.*: total=(?:r=(\d+)/w=(\d+)/d=(\d+)|(\d+),(\d+),(\d+))")
_DISK = re.compile(r"^ +(\S+): ios=(\d+)/(\d+),.*merge=(\d+)/(\d+)")
_NANOSECONDS = {"nsec": 1, "usec": 10**3, "msec": 10**6, "sec": 10**9}


def normal_documents(text: str, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Runs in normal output as the documents that fio's JSON would be, and their options.

    Raises:
        DataQualityError: The results of a job are cut off; names the job.
    """
    runs: list[list[str]] = [[]]
    reported = False
    for line in text.splitlines():
        if reported and _PRINTED.match(line):
            runs.append([])
            reported = False
        reported = reported or NORMAL.match(line) is not None
        runs[-1].append(line)
    return [_normal_run(lines, where) for lines in runs if any(map(NORMAL.match, lines))]


def _normal_run(lines: list[str], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    version = next((line for line in lines if line.startswith("fio-")), "fio (normal output)")
    document: dict[str, Any] = {"fio version": version.strip(), "jobs": [], "disk_util": []}
    options = printed_options("\n".join(lines))
    starts = [number for number, line in enumerate(lines) if NORMAL.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        job, issued, clones = _normal_job(lines[start:end], where)
        size = options.get(job["jobname"], {}).get("bs", "")
        for name in issued.keys() & job.keys():
            _count(job[name], issued[name], int(size) if size.isdigit() else None)
        document["jobs"].append(job)
        options.setdefault(job["jobname"], {})["numjobs"] = str(clones)
    alike = Counter(job["jobname"] for job in document["jobs"])
    for name in options.keys() & alike.keys():
        if alike[name] > 1:
            options[name]["numjobs"] = str(alike[name])
    if (ended := _ended(lines[starts[-1]])) is not None:
        document["timestamp"] = ended
    for line in lines[starts[-1] :]:
        if (disk := _DISK.match(line)) is not None:
            names = ("read_ios", "write_ios", "read_merges", "write_merges")
            counted = dict(zip(names, map(int, disk.groups()[1:]), strict=True))
            document["disk_util"].append({"name": disk[1], **counted})
    return document, options


def _normal_job(lines: list[str], where: str) -> tuple[dict[str, Any], dict[str, int], int]:
    """One job, its requests by direction, and for how many group_reporting lets it stand."""
    head = NORMAL.match(lines[0])
    if head is None:
        raise ValueError(lines[0])
    job: dict[str, Any] = {
        "jobname": head[1],
        "groupid": int(head[2]),
        "error": int(head[4]),
    }
    direction: dict[str, Any] = {}
    percentiles: dict[str, float] = {}
    unit, issued = 1, None
    for line in lines[1:]:
        if (match := _RATES.match(line)) is not None:
            direction = job[match[1]] = _normal_rates(match)
        elif (match := _PERCENTILES_OF.match(line)) is not None and direction:
            percentiles, unit = {}, _NANOSECONDS[match[2]]
            direction.setdefault(f"{match[1]}_ns", {})["percentile"] = percentiles
        elif line.lstrip().startswith("|"):
            for percent, value in _PERCENTILE.findall(line):
                percentiles[f"{float(percent):.6f}"] = _scaled(value, _DECIMAL) * unit
        elif (match := _TIMES.match(line)) is not None and direction:
            mean = _scaled(match[3], _DECIMAL) * _NANOSECONDS[match[2]]
            direction.setdefault(f"{match[1]}_ns", {})["mean"] = mean
        elif (match := _CPU.match(line)) is not None:
            job |= {"usr_cpu": float(match[1]), "sys_cpu": float(match[2]), "ctx": int(match[3])}
        elif (match := _ISSUED.match(line)) is not None:
            issued = [int(each) for each in match.groups() if each is not None]
            break
    if issued is None and not job["error"]:
        raise DataQualityError(
            f"{where}, job {head[1]!r}: the output is cut off; copy the file again, or run fio "
            "with --output-format=json+",
            field="cut off or damaged",
        )
    counts = dict(zip(("read", "write", "trim"), issued or (), strict=False))
    counts["mixed"] = sum(counts.values())
    return job, counts, int(head[3])


def _normal_rates(match: re.Match[str]) -> dict[str, Any]:
    _, iops, rate, runtime, old_rate, old_iops, old_runtime = match.groups()
    return {
        "iops": _scaled(iops or old_iops, _DECIMAL),
        "bw_bytes": _scaled(rate or old_rate, _BINARY),
        "runtime": int(runtime or old_runtime),
    }


_ROUNDED = 0.01
"""A rate of three digits is within 0.5 % of what was rounded."""


def _count(direction: dict[str, Any], requests: int, size: int | None) -> None:
    """Rates from exact counts, where they are those that were printed."""
    seconds, printed = direction["runtime"] / 1000, direction["iops"]
    direction["total_ios"] = requests
    exact = requests / seconds if seconds else 0.0
    if exact and abs(printed - exact) <= max(1.0, _ROUNDED * exact):
        direction["iops"] = exact
        if size and abs(direction["bw_bytes"] / (exact * size) - 1) <= _ROUNDED:
            direction["bw_bytes"] = exact * size


def _ended(text: str) -> int | None:
    """When a job ended, in the zone of the host, which is not recorded."""
    head = NORMAL.match(text)
    try:
        stated = (head[5] if head else "").rsplit("pid=", 1)[-1].partition(": ")[2]
        return timegm(time.strptime(stated.strip()))
    except ValueError:
        return None


def terse_document(text: str, where: str) -> dict[str, Any]:
    """Terse lines as the document that fio's JSON would be.

    Raises:
        DataQualityError: A line is cut off; names it.
    """
    jobs, version = [], "fio (terse version 2)"
    for number, line in enumerate(text.splitlines(), 1):
        if not TERSE.match(line):
            continue
        fields = iter(line.split(";"))
        form = int(next(fields))
        if form > 2:
            version = next(fields)
        try:
            jobs.append(_job(fields, form))
        except (ValueError, StopIteration, RuntimeError):
            raise DataQualityError(
                f"{where}, line {number}: the terse line is cut off or damaged; copy the file "
                "again, or run fio with --output-format=json+",
                field="cut off or damaged",
            ) from None
    return {"fio version": version, "jobs": jobs}


def _job(fields: Any, form: int) -> dict[str, Any]:
    job: dict[str, Any] = {
        "jobname": next(fields),
        "groupid": int(next(fields)),
        "error": int(next(fields)),
    }
    for name in ("read", "write", "trim") if form >= 4 else ("read", "write"):
        job[name] = _direction(fields, form)
    user, system = (next(fields) for _ in range(2))
    job |= {"usr_cpu": float(user.rstrip("%")), "sys_cpu": float(system.rstrip("%"))}
    job["ctx"] = int(next(fields))
    return job


def _direction(fields: Any, form: int) -> dict[str, Any]:
    kib, bandwidth, iops, runtime = (float(next(fields)) for _ in range(4))
    slat, clat = _latency(fields), _latency(fields)
    clat["percentile"] = dict(_percentile(next(fields)) for _ in range(_PERCENTILES))
    lat = _latency(fields)
    rest = list(islice(fields, 5 if form < 5 else 11))
    if len(rest) < (5 if form < 5 else 11):
        raise ValueError(rest)
    return {
        "io_kbytes": int(kib),
        "bw": bandwidth,
        "iops": iops,
        "runtime": int(runtime),
        "total_ios": round(iops * runtime / 1000),
        "slat": slat,
        "clat": clat,
        "lat": lat,
    }


def _latency(fields: Any) -> dict[str, Any]:
    _, _, mean, _ = (float(next(fields)) for _ in range(4))
    return {"mean": mean}


def _percentile(text: str) -> tuple[str, float]:
    percent, _, value = text.partition("%=")
    return f"{float(percent):.6f}", float(value)


SWEEP_FILE = re.compile(
    r"(?P<rw>rand(?:read|write|rw)|read|write|rw)(?P<mix>\d+)?-(?:iodepth-)?(?P<iodepth>\d+)"
    r"-(?:numjobs-)?(?P<numjobs>\d+)(?!\d)"
)
"""A file of bench-fio by its name: mode, queue depth and jobs."""


def named_options(name: str) -> Mapping[str, str]:
    """What the name of a file of bench-fio says; empty for another name."""
    match = SWEEP_FILE.match(name.rsplit("/", 1)[-1])
    if match is None:
        return {}
    options = {each: match[each] for each in ("rw", "iodepth", "numjobs")}
    return options if match["mix"] is None else options | {"rwmixread": match["mix"]}
