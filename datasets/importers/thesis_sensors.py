"""The sensor files of energy-benchmark: what a window of one run says.

Each is a CSV with `time` in whole milliseconds since the recording began and one column per
quantity. A recording begins when the benchmark has been started and ends when it has exited.
Source: common/src/util.rs (sensor_reader) and sensors/*/src/lib.rs of
github.com/t348575/energy-benchmark.
"""

from __future__ import annotations

import math
import re
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

_CLIPPED_SHARE, _CLIPPED_LEVELS = 0.05, 30
"""Assumption: a sensor is clipped where this share of its readings is exactly the greatest one
although it distinguishes at least so many levels."""

_HEADER_BYTES, _TAIL_BYTES = 64 * 1024, 64 * 1024
_BLOCK_BYTES = 4 * 1024 * 1024

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recording:
    """One sensor file that was looked at, but not read.

    Attributes:
        path: The file.
        columns: Its columns, `time` first.
        last_ms: Time of its last reading; 0 where it has none.
    """

    path: Path
    columns: tuple[str, ...]
    last_ms: float

    def within(self, window: Window) -> Series:
        """The readings inside a window.

        The file is read block by block, so that memory is taken by the window only; a run of hours
        has millions of rows.

        Raises:
            DataQualityError: A line is damaged, or time runs backwards.
        """
        inside: dict[str, list[_Floats]] = {name: [] for name in self.columns}
        low = np.full(len(self.columns), math.inf)
        high = -low
        before, rows = 0.0, 0
        try:
            for batch in self._batches():
                block = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
                times = block[0]
                bad = np.flatnonzero(np.isnan(times) | (np.diff(times, prepend=before) < 0))
                if bad.size:
                    raise DataQualityError(
                        f"{self.path}, line {rows + int(bad[0]) + 2}: time {times[bad[0]]:g} ms is "
                        f"before that of the line above; {_AGAIN}"
                    )
                low = np.fmin(low, [np.fmin.reduce(values, initial=math.inf) for values in block])
                high = np.fmax(
                    high, [np.fmax.reduce(values, initial=-math.inf) for values in block]
                )
                use = (times >= window.begin_ms) & (times <= window.end_ms)
                for name, values in zip(self.columns, block, strict=True):
                    inside[name].append(values[use])
                before, rows = (float(times[-1]) if times.size else before), rows + times.size
        except pa.ArrowInvalid as error:
            raise DataQualityError(f"{self.path}: {error}; {_AGAIN}") from None
        # popped, so that each column's blocks are freed before the next one is put together
        whole = {name: np.concatenate(inside.pop(name) or [np.empty(0)]) for name in self.columns}
        constant = low == high
        return Series(
            whole.pop("time"),
            whole,
            frozenset(name for name, same in zip(self.columns, constant, strict=True) if same),
        )

    def _batches(self) -> pacsv.CSVStreamingReader | list[pa.RecordBatch]:
        if not self.last_ms:
            return []
        return pacsv.open_csv(
            self.path,
            read_options=pacsv.ReadOptions(block_size=_BLOCK_BYTES),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pa.float64())
            ),
        )


@dataclass(frozen=True)
class Series:
    """The readings of one sensor inside a window.

    Attributes:
        times_ms: Shape (n,), never decreasing.
        columns: Column -> values, shape (n,); NaN where a cell is no number.
        constant: Columns that have one value in the whole recording, start and end included.
    """

    times_ms: _Floats
    columns: dict[str, _Floats]
    constant: frozenset[str]

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


_AGAIN = "copy the file again, remove it to import without it, or leave the run out"


def look_at(path: Path) -> Recording | None:
    """Read the first and the last line of a sensor file; None where there is none.

    Raises:
        DataQualityError: It is empty, cut off or damaged.
        InputError: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(_HEADER_BYTES)
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL_BYTES))
            end = stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from None
    if not end.endswith(b"\n"):
        with path.open("rb") as stream:
            line = sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK_BYTES), b""))
        raise DataQualityError(f"{path}, line {line + 1}: empty or cut off there; {_AGAIN}")
    header = start.partition(b"\n")[0].decode("utf-8", "replace").strip().split(",")
    if header[0] != "time" or len(set(header)) < max(len(header), 2):
        raise DataQualityError(
            f"{path}, line 1: {','.join(header)[:60]!r} is not what energy-benchmark writes (time "
            f"and other columns, once each); {_AGAIN}"
        )
    last = end.rstrip(b"\n").rpartition(b"\n")[2].partition(b",")[0]
    try:
        last_ms = 0.0 if last == b"time" else float(last)
    except ValueError:
        last_ms = math.nan
    if not math.isfinite(last_ms):
        raise DataQualityError(f"{path}, last line: no time in it; {_AGAIN}")
    return Recording(path, tuple(header), last_ms)


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
    rails that are named are added instead. Readings above the rating of the drive stay, which the
    tool drops: they are spikes of the drive.
    """
    rails, watts = _drive_watts(series)
    if series.constant.issuperset(rails) and watts.size:
        notes.append(
            f"device power is left out: the sensor is stuck, every reading of the recording is "
            f"{watts[0]:.4g} W, start and end of the run included"
        )
        return {}
    watts, times = _likely(series, watts, _LIKELY_DEVICE_WATTS, "device power", notes)
    if not watts.size:
        return {}
    clipped = float((watts == watts.max()).mean())
    if clipped >= _CLIPPED_SHARE and np.unique(watts).size >= _CLIPPED_LEVELS:
        notes.append(
            f"device power is left out: the sensor is clipped, {clipped:.0%} of the readings are "
            f"exactly the greatest, {watts.max():.4g} W"
        )
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
    fields = {"device_power_watts": mean}
    width = float(np.diff(times).mean())
    if _MILLISECOND[0] <= width <= _MILLISECOND[1]:
        fields["device_power_p99_watts"] = max(float(np.percentile(watts, 99)), 0.0)
    else:
        notes.append(f"device_power_p99_watts is left out: samples are {width:.2f} ms apart, not 1")
    return fields


def readings_above(series: Series, watts: float) -> int:
    """How many readings of the drive's power lie above so many watts."""
    return int((_drive_watts(series)[1] > watts).sum())


def _drive_watts(series: Series) -> tuple[list[str], _Floats]:
    """The rails of the drive and their sum; added one by one, which needs no table of them all."""
    rails = [name for name in series.columns if name != "Total"] or ["Total"]
    watts = series.columns[rails[0]].copy()
    for name in rails[1:]:
        watts += series.columns[name]
    return rails, watts


def rapl_power(series: Series, notes: list[str]) -> dict[str, float]:
    """Mean watts of the packages and of DRAM; `Total`, which is their sum, is not used.

    The tool subtracts two readings 1 ms apart: a counter that wrapped between them is an absurdly
    large number, which is left out with its row.
    """
    fields: dict[str, float] = {}
    for field, pattern in (("cpu_power_watts", r"package-\d+"), ("dram_power_watts", r"dram-\d+")):
        names = series.matching(pattern)
        if not names:
            if field == "cpu_power_watts":
                notes.append(
                    f"cpu_power_watts is left out: no package in {', '.join(series.columns)}"
                )
            continue
        if field == "cpu_power_watts" and series.constant.issuperset(names):
            notes.append("cpu_power_watts is left out: its counter is stuck at one power")
            continue
        parts = [series.columns[name] for name in names]
        low, high = _LIKELY_PACKAGE_WATTS
        wild = np.logical_or.reduce([(part < low) | (part > high) for part in parts])
        watts = np.where(wild, np.nan, np.sum(parts, axis=0))
        watts, _ = _likely(series, watts, (low, high * len(names)), field, notes)
        if watts.size:
            fields[field] = float(watts.mean())
    if fields.get("dram_power_watts", 0.0) > 0.6 * fields.get("cpu_power_watts", np.inf):
        notes.append(
            f"dram_power_watts is left out: {fields['dram_power_watts']:.3g} W beside "
            f"{fields['cpu_power_watts']:.3g} W of the packages is a core's and not DRAM's"
        )
        del fields["dram_power_watts"]
    return fields


def wall_power(series: Series, notes: list[str]) -> dict[str, float]:
    """Mean watts at the wall: the sum of every load, of all distribution units.

    The tool's versions name the columns differently: `load-ALIAS-OUTPUT`, before them `load`, and
    before that a total beside two outputs.
    """
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
    watts = watts[np.isfinite(watts)]
    mean = float(watts.mean()) if watts.size >= FEWEST_ROWS else 0.0
    if mean <= 0:
        notes.append(
            f"system_power_watts is left out: {watts.size} readings are numbers, their mean is "
            f"{mean:.3g} W"
        )
        return {}
    return {"system_power_watts": mean}


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


def frequency_in_force(series: Series, limit_hertz: float) -> list[str]:
    """A note where a core ran above the limit that was set (by more than 2 %), else nothing."""
    names = series.matching(r"cpu-\d+-freq")
    if not names or not len(series.times_ms):
        return []
    highest = max(float(np.nanmean(series.columns[name])) for name in names) * 1e6
    if highest <= 1.02 * limit_hertz:
        return []
    average, limit = highest / 1e9, limit_hertz / 1e9
    return [f"a core ran at {average:.2f} GHz on average, above the limit of {limit:.2f} GHz"]


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
