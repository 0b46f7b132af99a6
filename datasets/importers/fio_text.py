"""What fio says in text: terse lines, and the line that describes each job before it runs.

Terse output (fio's HOWTO, "Terse output") is one line a job with semicolons; versions 2 to 5 differ
in the fields at the front, in trims (4 and 5) and in samples and IOPS (5). Latencies are
microseconds, rates KiB/s. It states no options, so what a job was asked to do comes from the line
that fio printed, from the file's name or from the caller (`unrecorded_setup`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from iojoule.datasets.errors import DataQualityError

TERSE = re.compile(r"^(?:2;[^;\n]*;\d+;\d+;\d+;|[345];fio-[^;\n]*;[^;\n]*;\d+;\d+;)", re.MULTILINE)
"""How a terse line begins."""

_PERCENTILES = 20

_PRINTED = re.compile(
    r"^(?P<name>\S.*?): \(g=\d+\): rw=(?P<rw>\w+), bs=(?:\(R\) )?(?P<low>[\w.]+)-(?P<high>[\w.]+)"
    r"(?P<rest>.*?), ioengine=(?P<ioengine>[^,\s]+), iodepth=(?P<iodepth>\d+)",
    re.MULTILINE,
)
_STARTED = re.compile(r"^Starting (\d+) (?:process|thread)", re.MULTILINE)


def printed_options(text: str) -> dict[str, dict[str, str]]:
    """Options by the name of the job, as fio prints them before it runs; empty without any."""
    jobs: dict[str, dict[str, str]] = {}
    for match in _PRINTED.finditer(text):
        sizes = {match["low"], match["high"], *re.findall(r"\b\d[\w.]*", match["rest"])}
        options = {name: match[name] for name in ("rw", "ioengine", "iodepth")}
        options |= {"bs": match["low"]} if len(sizes) == 1 else {"bsrange": "-".join(sorted(sizes))}
        jobs[match["name"]] = options
    started = _STARTED.search(text)
    if len(jobs) == 1 and started is not None:
        next(iter(jobs.values()))["numjobs"] = started[1]
    return jobs


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
    r"(?P<rw>rand(?:read|write|rw)|read|write|rw)(?P<mix>\d+)?-(?P<iodepth>\d+)-(?P<numjobs>\d+)\b"
)
"""A file of bench-fio by its name: mode, queue depth and jobs."""


def named_options(name: str) -> Mapping[str, str]:
    """What the name of a file of bench-fio says; empty for another name."""
    match = SWEEP_FILE.match(name.rsplit("/", 1)[-1])
    if match is None:
        return {}
    options = {each: match[each] for each in ("rw", "iodepth", "numjobs")}
    return options if match["mix"] is None else options | {"rwmixread": match["mix"]}
