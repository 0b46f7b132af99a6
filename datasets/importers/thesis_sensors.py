"""The sensor files of energy-benchmark: what a window of one run says.

Each is a CSV with `time` in whole milliseconds since the recording began and one column per
quantity. A recording begins when the benchmark has been started and ends when it has exited.
Source: common/src/util.rs (sensor_reader) and sensors/*/src/lib.rs of
github.com/t348575/energy-benchmark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from iojoule.datasets.errors import DataQualityError
from iojoule.datasets.provenance import unreadable

DEVICE = "powersensor3.csv"
RAPL = "rapl.csv"
WALL = "netio-http.csv"
BLOCK = "diskstat.csv"
CPU = "sysinfo.csv"
FILES = (DEVICE, RAPL, WALL, BLOCK, CPU)

FEWEST_ROWS = 30
"""A mean of fewer readings is not quoted."""

_SECTOR_BYTES = 512
_LIKELY_DEVICE_WATTS = (-5.0, 200.0)
_LIKELY_PACKAGE_WATTS = (0.0, 2000.0)
_MOST_DROPPED = 0.05
_MILLISECOND = (0.9, 1.25)
"""Spacing of rows, in ms, that counts as a sample width of 1 ms."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """One sensor file.

    Attributes:
        path: The file.
        times_ms: Shape (n,), never decreasing.
        columns: Column -> values, shape (n,); NaN where a cell is no number.
    """

    path: Path
    times_ms: _Floats
    columns: dict[str, _Floats]

    def within(self, window: Window) -> Series:
        """The rows inside a window."""
        use = (self.times_ms >= window.begin_ms) & (self.times_ms <= window.end_ms)
        columns = {name: values[use] for name, values in self.columns.items()}
        return Series(self.path, self.times_ms[use], columns)

    def matching(self, pattern: str) -> list[str]:
        """Columns whose whole name matches."""
        return [name for name in self.columns if re.fullmatch(pattern, name)]


@dataclass(frozen=True)
class Window:
    """A part of a recording, in its milliseconds."""

    begin_ms: float
    end_ms: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ms - self.begin_ms) / 1000


def load(path: Path) -> Series | None:
    """Read a sensor file; None where there is none.

    Raises:
        DataQualityError: It is cut off or damaged.
        InputError: It cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from None
    again = "copy the file again, remove it to import without it, or leave the run out"
    if not content.endswith(b"\n"):
        line = content.count(b"\n") + 1
        raise DataQualityError(f"{path}, line {line}: the file is cut off there; {again}")
    header = content.partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
    if header[0] != "time" or len(set(header)) < max(len(header), 2):
        raise DataQualityError(
            f"{path}, line 1: {','.join(header)[:60]!r} is not what energy-benchmark writes (time "
            f"and other columns, once each); {again}"
        )
    try:
        table = pacsv.read_csv(
            io.BytesIO(content),
            convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(header, pa.float64())),
        )
    except pa.ArrowInvalid as error:
        raise DataQualityError(f"{path}: {error}; {again}") from None
    arrays = {name: table[name].to_numpy().astype(np.float64) for name in header}
    times = arrays.pop("time")
    bad = np.flatnonzero(np.isnan(times) | (np.diff(times, prepend=0.0) < 0))
    if bad.size:
        raise DataQualityError(
            f"{path}, line {int(bad[0]) + 2}: time {times[bad[0]]:g} ms is before that of the line "
            f"above; {again}"
        )
    return Series(path, times, arrays)


def measured_window(recorded_ms: float, ramp_ms: float, runtime_ms: float) -> Window | None:
    """The part of a recording that certainly lies within fio's measured time.

    fio starts at some moment after the recording and ends at some moment before its end. Whatever
    these are, from `recorded - runtime` to `ramp + runtime` it was measuring.

    Returns:
        None where the recording ended before fio can have, or start and end took so long that
        less than half of the measured time is certain.
    """
    if recorded_ms < ramp_ms + runtime_ms - max(0.01 * runtime_ms, 100.0):
        return None
    begin = max(ramp_ms, recorded_ms - runtime_ms)
    end = min(recorded_ms, ramp_ms + runtime_ms)
    return Window(begin, end) if end - begin >= 0.5 * runtime_ms else None


def device_power(series: Series, notes: list[str]) -> dict[str, float]:
    """Mean and, of a sample width of 1 ms, 99th percentile of the drive's rails together.

    `Total` is what the instrument adds up over all its pairs, connected to the drive or not; the
    rails that are named are added instead.
    """
    rails = [name for name in series.columns if name != "Total"] or ["Total"]
    watts = np.sum([series.columns[name] for name in rails], axis=0)
    watts, times = _likely(series, watts, _LIKELY_DEVICE_WATTS, "device power", notes)
    if not watts.size:
        return {}
    mean = float(watts.mean())
    if mean < 0:
        notes.append(f"device power is left out: its mean is {mean:.3g} W, so the zero is off")
        return {}
    if rails != ["Total"] and "Total" in series.columns:
        total = float(np.nanmean(series.columns["Total"]))
        if abs(total - mean) > max(0.02 * mean, 0.05):
            notes.append(
                f"the instrument's Total is {total:.3g} W, {' + '.join(rails)} is {mean:.3g} W: "
                "the named rails are taken for the drive"
            )
    found = {"device_power_watts": mean}
    width = float(np.diff(times).mean())
    if _MILLISECOND[0] <= width <= _MILLISECOND[1]:
        found["device_power_p99_watts"] = max(float(np.percentile(watts, 99)), 0.0)
    else:
        notes.append(f"device_power_p99_watts is left out: samples are {width:.2f} ms apart, not 1")
    return found


def rapl_power(series: Series, notes: list[str]) -> dict[str, float]:
    """Mean watts of the packages and of DRAM.

    The tool subtracts two readings 1 ms apart: a counter that wrapped between them is an absurdly
    large number, which is left out with its row.
    """
    found: dict[str, float] = {}
    for field, pattern in (("cpu_power_watts", r"package-\d+"), ("dram_power_watts", r"dram-\d+")):
        names = series.matching(pattern)
        if not names:
            continue
        parts = [series.columns[name] for name in names]
        low, high = _LIKELY_PACKAGE_WATTS
        wild = np.logical_or.reduce([(part < low) | (part > high) for part in parts])
        watts = np.where(wild, np.nan, np.sum(parts, axis=0))
        watts, _ = _likely(series, watts, (low, high * len(names)), field, notes)
        if watts.size:
            found[field] = float(watts.mean())
    if found.get("dram_power_watts", 0.0) > 0.6 * found.get("cpu_power_watts", np.inf):
        notes.append(
            f"dram_power_watts is left out: {found['dram_power_watts']:.3g} W beside "
            f"{found['cpu_power_watts']:.3g} W of the packages is a core's and not DRAM's"
        )
        del found["dram_power_watts"]
    return found


def wall_power(series: Series, notes: list[str]) -> dict[str, float]:
    """Mean watts at the wall; the tool's versions name the columns differently."""
    names = series.matching(r"load-.+") or series.matching("load")
    outputs = series.matching(r"output\d+_load")
    if not names and outputs and "total_load" in series.columns:
        total, parts = series.columns["total_load"], [series.columns[name] for name in outputs]
        if total.size and abs(np.nanmean(total) - np.nanmean(np.sum(parts, axis=0))) > max(
            0.02 * float(np.nanmean(total)), 1.0
        ):
            notes.append(
                "system_power_watts is left out: total_load is not output1_load + output2_load, "
                "and the file does not say which of them is the host"
            )
            return {}
        names = ["total_load"]
    if not names:
        notes.append(f"system_power_watts is left out: no load in {', '.join(series.columns)}")
        return {}
    everything = np.array(list(series.columns.values()))
    fresh = (
        1 + int((np.diff(everything, axis=1) != 0).any(axis=0).sum()) if len(series.times_ms) else 0
    )
    if fresh < FEWEST_ROWS:
        notes.append(
            f"system_power_watts is left out: {fresh} new readings, a mean needs {FEWEST_ROWS}"
        )
        return {}
    watts = np.sum([series.columns[name] for name in names], axis=0)
    return {"system_power_watts": float(np.nanmean(watts))}


def block_layer(series: Series, bytes_per_second: float, notes: list[str]) -> dict[str, float]:
    """Commands and merges a second, from the kernel's counters.

    What the tool calls `bytes_read` and `bytes_write` are sectors of 512 B since boot.
    """
    needed = ("read_ios", "write_ios", "read_merges", "write_merges", "bytes_read", "bytes_write")
    if len(series.times_ms) < 2 or any(name not in series.columns for name in needed):
        return {}
    seconds = (series.times_ms[-1] - series.times_ms[0]) / 1000
    come = {name: series.columns[name][-1] - series.columns[name][0] for name in needed}
    if seconds <= 0 or not all(np.isfinite(value) and value >= 0 for value in come.values()):
        notes.append("the block layer's counters run backwards; left out")
        return {}
    rate = (come["bytes_read"] + come["bytes_write"]) * _SECTOR_BYTES / seconds
    if not come["read_ios"] + come["write_ios"]:
        return {}  # a drive that the kernel does not drive, such as under SPDK
    if abs(rate / bytes_per_second - 1) > 0.1:
        notes.append(
            f"the drive moved {rate / 1e6:.4g} MB/s, fio {bytes_per_second / 1e6:.4g} MB/s: a "
            "cache, a file system or another program took part"
        )
    return {
        "device_commands_per_second": float(come["read_ios"] + come["write_ios"]) / seconds,
        "merged_requests_per_second": float(come["read_merges"] + come["write_merges"]) / seconds,
    }


def frequency_in_force(series: Series, limit_hertz: float) -> str | None:
    """A complaint where a core ran above the limit that was set (by more than 2 %)."""
    names = series.matching(r"cpu-\d+-freq")
    if not names or not len(series.times_ms):
        return None
    highest = max(float(np.nanmean(series.columns[name])) for name in names) * 1e6
    if highest <= 1.02 * limit_hertz:
        return None
    return (
        f"a core ran at {highest / 1e9:.2f} GHz on average, above the limit of "
        f"{limit_hertz / 1e9:.2f} GHz"
    )


def _likely(
    series: Series, watts: _Floats, limits: tuple[float, float], what: str, notes: list[str]
) -> tuple[_Floats, _Floats]:
    """Readings that can be and their times; none where too many cannot, or there are too few."""
    use = np.isfinite(watts) & (watts >= limits[0]) & (watts <= limits[1])
    dropped = int(watts.size - use.sum())
    none = np.empty(0), np.empty(0)
    if watts.size < FEWEST_ROWS:
        notes.append(f"{what} is left out: {watts.size} readings, a mean needs {FEWEST_ROWS}")
        return none
    if dropped > _MOST_DROPPED * watts.size:
        notes.append(f"{what} is left out: {dropped} of {watts.size} readings cannot be true")
        return none
    if dropped:
        notes.append(
            f"{what}: {dropped} of {watts.size} readings cannot be true (a counter that wrapped, "
            "no new data) and were left out"
        )
    times = series.times_ms[use]
    steps = np.diff(times)
    usual = max(float(np.median(steps)), 1.0)
    silent = float(steps[steps > 5 * usual].sum()) / float(times[-1] - times[0])
    if silent > _MOST_DROPPED:
        notes.append(f"{what}: nothing was recorded during {silent:.0%} of the time")
    return watts[use], times


def recorded_ms(series: Sequence[Series]) -> float:
    """How long the recording lasted: until the last reading of any sensor."""
    return max((float(one.times_ms[-1]) for one in series if len(one.times_ms)), default=0.0)
