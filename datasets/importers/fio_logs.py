"""fio's logs over time (write_bw_log, write_iops_log, write_lat_log) as the run they were kept of.

A line is `msec, value, direction, block size`; with `log_avg_msec`, which bench-fio sets, the value
is a mean over the interval that ends then: KiB/s, IOPS, or a latency (HOWTO, "Log File Formats").
Each job has a log of its own, `RUN_KIND.JOB.log`. Logs say neither options nor percentiles, so they
are read only where no result of their run is.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_text import named_options

LOG_OF_RESULT = "log over time of a run that is read"
"""The reason of a log that is skipped."""

_LOG = re.compile(r"(?P<run>.+)_(?P<kind>bw|iops|lat|clat|slat)(?:\.\d+)?\.log")
_LINE = re.compile(rb"\d+, *\d+, *[012], *\d+")
_DIRECTIONS = {"0": "read", "1": "write"}
_SINGLE_REQUESTS_BELOW_MS = 10.0


def log_of(path: Path) -> tuple[str, str] | None:
    """The run and the kind of a log; None where the file is none."""
    match = _LOG.fullmatch(path.name)
    if match is None:
        return None
    try:
        with path.open("rb") as stream:
            return (match["run"], match["kind"]) if _LINE.match(stream.readline(200)) else None
    except OSError:
        return None


@dataclass
class _Series:
    """Values of one direction in one log, each over the milliseconds before it."""

    ends_ms: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def mean(self) -> float:
        """Over time."""
        lasting = [b - a for a, b in zip([0.0, *self.ends_ms], self.ends_ms, strict=False)]
        total = sum(lasting)
        parts = zip(self.values, lasting, strict=True)
        return sum(value * each for value, each in parts) / total if total else 0.0

    def at(self, ends_ms: Sequence[float]) -> list[float]:
        """The values of the intervals in which others end."""
        last = len(self.values) - 1
        return [self.values[min(bisect_left(self.ends_ms, end), last)] for end in ends_ms]


def document_of_logs(run: str, logs: Sequence[tuple[str, Path]]) -> dict[str, Any]:
    """What the logs of one run say, as the document that fio's JSON would be.

    Args:
        run: The name before the kind.
        logs: Kind and file of each.

    Raises:
        InputError: Rates are missing, or the values are those of single requests.
    """
    where = str(logs[0][1].parent / run)
    series: dict[tuple[str, str], list[_Series]] = {}
    for kind, path in logs:
        for direction, each in _read(path).items():
            series.setdefault((kind, direction), []).append(each)
    job: dict[str, Any] = {"jobname": run}
    for direction in _DIRECTIONS.values():
        rates, moved = series.get(("iops", direction)), series.get(("bw", direction))
        if not rates and not moved:
            continue
        if not rates or not moved:
            raise InputError(
                f"{where}: logs of one rate only; both bandwidth and IOPS are needed to know the "
                "size of the requests: keep fio's result (--output-format=json+)",
                field="logs of one rate only",
            )
        _require_intervals(where, rates)
        iops, runtime = sum(each.mean() for each in rates), max(each.ends_ms[-1] for each in rates)
        job[direction] = {
            "iops": iops,
            "bw_bytes": 1024 * sum(each.mean() for each in moved),
            "runtime": round(runtime),
            "total_ios": round(iops * runtime / 1000),
            "lat_ns": {"mean": _latency_ns(run, series, direction, iops)},
        }
    return {"fio version": "fio (logs)", "jobs": [job]}


def _read(path: Path) -> dict[str, _Series]:
    listed: dict[str, _Series] = {}
    with path.open(newline="", errors="replace") as stream:
        for row in csv.reader(stream, skipinitialspace=True):
            if len(row) < 4 or row[2] not in _DIRECTIONS:
                continue
            try:
                end, value = float(row[0]), float(row[1])
            except ValueError:
                continue  # the last line of a run that was stopped
            each = listed.setdefault(_DIRECTIONS[row[2]], _Series())
            each.ends_ms.append(end)
            each.values.append(value)
    return listed


def _require_intervals(where: str, rates: Sequence[_Series]) -> None:
    lasting = [each.ends_ms[-1] / len(each.ends_ms) for each in rates]
    if min(lasting) < _SINGLE_REQUESTS_BELOW_MS:
        raise InputError(
            f"{where}: logs of single requests, whose values are no rates; write them with "
            "log_avg_msec=1000, or keep fio's result (--output-format=json+)",
            field="logs of single requests",
        )


def _latency_ns(
    run: str, series: dict[tuple[str, str], list[_Series]], direction: str, iops: float
) -> float:
    """Mean over the requests of all jobs, 0 where it is not known.

    fio counts in ns since version 3 and in us before; the depth in the run's name tells which.
    """
    logs, rates = series.get(("lat", direction), []), series["iops", direction]
    options = named_options(run)
    if not options or len(logs) != len(rates) or not iops:
        return 0.0
    requests = [rate.at(log.ends_ms) for log, rate in zip(logs, rates, strict=True)]
    weighted = [
        _Series(log.ends_ms, [a * b for a, b in zip(log.values, each, strict=True)]).mean()
        for log, each in zip(logs, requests, strict=True)
    ]
    made = [_Series(log.ends_ms, each).mean() for log, each in zip(logs, requests, strict=True)]
    mean = sum(weighted) / sum(made) if any(made) else 0.0
    expected = int(options["iodepth"]) * int(options["numjobs"])
    fits = [unit for unit in (1, 1000) if 0.3 < iops * mean * unit * 1e-9 / expected < 3]
    return mean * fits[0] if len(fits) == 1 else 0.0
