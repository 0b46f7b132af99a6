"""The log of a power meter that ran beside fio, on a clock of its own: watts of each run.

A log is a CSV file with a column `time` and columns that bear the names of powers of the schema.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError
from iojoule.datasets.provenance import unreadable

POWERS = (
    "device_power_watts",
    "cpu_power_watts",
    "dram_power_watts",
    "system_power_watts",
)

FEWEST = 30
"""A mean of fewer readings is not quoted, as of the slow sensors that are read live."""

LARGEST_GAP = 0.05
"""Share of a run that may pass between two readings."""

LEFT_OUT_SECONDS, LEFT_OUT_SHARE = 0.25, 0.05
"""What is left out at both ends of a run: fio writes its time of ending a moment later."""


@dataclass(frozen=True)
class PowerLog:
    """What a meter logged.

    Attributes:
        path: The file.
        seconds: Unix time of each reading, by the clock of fio's host; rising.
        watts: Power of the schema -> its readings.
    """

    path: Path
    seconds: NDArray[np.float64]
    watts: dict[str, NDArray[np.float64]]

    def during(self, begin: float, end: float) -> dict[str, float]:
        """Mean power between two times; empty where readings are too few or too far apart."""
        trimmed = max(LEFT_OUT_SECONDS, LEFT_OUT_SHARE * (end - begin))
        begin, end = begin + trimmed, end - trimmed
        first, last = np.searchsorted(self.seconds, (begin, end))
        times = self.seconds[first:last]
        if len(times) < FEWEST:
            return {}
        gaps = np.diff(times, prepend=begin, append=end)
        if gaps.max() > LARGEST_GAP * (end - begin):
            return {}
        span = times[-1] - times[0]
        return {
            name: float(np.trapezoid(values[first:last], times) / span)
            for name, values in self.watts.items()
        }


def between(begin: float, end: float) -> str:
    """Two Unix times in words."""
    first, last = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in (begin, end))
    return f"{first} to {last} UTC"


def parse_power_log(text: str) -> PowerLog:
    """Read the log that `FILE.csv[,clock=SECONDS]` names.

    `clock` is how far the clock of the meter is ahead of that of fio's host. Times are Unix seconds
    or ISO 8601, without a zone in UTC.

    Raises:
        InputError: The file, a column or a cell is not what it must be; names line and column.
    """
    file, _, ahead = text.partition(",clock=")
    try:
        offset = float(ahead or 0.0)
    except ValueError:
        offset = np.nan
    if not np.isfinite(offset):
        raise InputError(
            f"power: {text!r}: write FILE.csv, or FILE.csv,clock=SECONDS where the meter's clock "
            "is ahead of that of fio's host by so much",
            field="power",
        )
    path = Path(file)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            names = [name.strip() for name in next(reader, [])]
            powers = _powers(path, names)
            table = np.array(list(_rows(path, reader, names, powers)), dtype=np.float64)
    except OSError as error:
        raise unreadable(path, error) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: not a CSV file of text", field="power") from None
    if len(table) < FEWEST:
        raise InputError(f"{path}: {len(table)} readings are too few", field="power")
    if (np.diff(table[:, 0]) <= 0).any():
        line = int(np.argmax(np.diff(table[:, 0]) <= 0)) + 3
        raise InputError(f"{path}, line {line}: time does not rise", field="power")
    watts = {name: table[:, column] for column, name in enumerate(powers, 1)}
    return PowerLog(path, table[:, 0] - offset, watts)


def _powers(path: Path, names: list[str]) -> list[str]:
    """The powers of the schema among the columns of a log."""
    powers = [name for name in names if name in POWERS]
    if "time" not in names or not powers:
        raise InputError(
            f"{path}: a log of power needs a column 'time' and one of {', '.join(POWERS)}; its "
            f"columns are {', '.join(names) or 'none'}: rename them",
            field="power",
        )
    return powers


def _rows(
    path: Path, lines: Iterator[list[str]], names: list[str], powers: list[str]
) -> Iterator[list[float]]:
    """Time and powers of each line."""
    columns = [names.index(name) for name in ("time", *powers)]
    for number, cells in enumerate(lines, 2):
        if not cells:
            continue
        try:
            first, *rest = (cells[column].strip() for column in columns)
            row = [_seconds(first), *map(float, rest)]
        except (IndexError, ValueError):
            row = [np.nan]
        if not np.isfinite(row).all():
            raise InputError(
                f"{path}, line {number}: needs a time (Unix seconds or ISO 8601) and numbers in "
                f"{', '.join(powers)}",
                field="power",
            )
        yield row


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        stated = datetime.fromisoformat(text)
    return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
