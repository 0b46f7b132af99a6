"""Traces as one stream of batches: volumes picked and merged, time scaled, addresses sampled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.traces.formats import TraceFormat, format_named, format_of
from iojoule.datasets.traces.stream import (
    BLOCK_BYTES,
    WINDOW_ROWS,
    Report,
    Rows,
    TraceFile,
    head_of,
    joined,
    sort_by_time,
)

SAMPLED_BYTES = 1 << 20
"""Sampling keeps or drops whole regions of this size."""

LONGEST_NS = 10**18
"""Longest time that is simulated: 31 years."""

RANGE_BYTES = 1 << 20
"""Address ranges of merged volumes begin at multiples of this."""

_LISTED = 12


class Batch(NamedTuple):
    """Requests in order of arrival; every array has shape (n,).

    `arrival_ns` counts from the trace's first request; `volume` is a number of `volumes`.
    """

    arrival_ns: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    is_write: NDArray[np.bool_]
    volume: NDArray[np.uint32]

    def pick(self, which: Any) -> Batch:
        """The requests of a mask, an index array or a slice."""
        columns: list[Any] = [column[which] for column in self]
        return Batch(*columns)


@dataclass(frozen=True)
class Selection:
    """Which requests, and how.

    Attributes:
        volumes: Their names; empty: all.
        start_seconds: From then on, counted from the trace's first request.
        seconds: For so long; None: to the end.
        speed: Time runs so many times faster.
        sample: Share of the 1 MiB regions of the address space that is kept, chosen by a hash.
        time_unit: Of the file's times, where it is not the format's.
        ranges: Volume -> where its address range begins on the drive; None: addresses stay.
        capacity_bytes: Of the drive; a request beyond it is refused, or folded back with `wrap`.
        wrap: See there.
    """

    volumes: tuple[str, ...] = ()
    start_seconds: float = 0.0
    seconds: float | None = None
    speed: float = 1.0
    sample: float = 1.0
    time_unit: str | None = None
    ranges: Mapping[str, int] | None = None
    capacity_bytes: int | None = None
    wrap: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.sample <= 1:
            raise InputError(f"--sample {self.sample}: is a share above 0 and up to 1")
        if not 0 < self.speed < np.inf:
            raise InputError(f"--speed {self.speed}: is a factor above 0")
        if not 0 <= self.start_seconds < 1e9 or not 0 < (self.seconds or 1) < 1e9:
            raise InputError("--start and --seconds: are seconds, not negative, below 10^9")


@dataclass
class Sampled:
    """How much of the load the sample holds."""

    requests: int = 0
    requests_kept: int = 0
    bytes: int = 0
    kept_bytes: int = 0

    def note(self, share: float) -> str:
        """What the sample means for the results."""
        share_kept = self.requests_kept / max(1, self.requests)
        moved = self.kept_bytes / max(1, self.bytes)
        return (
            f"a sample of {share:.3g} of the address space by hash: it holds {share_kept:.3g} of "
            f"the requests and {moved:.3g} of the bytes; rates, and watts above idle, are those of "
            "that load, queueing is less than under all of it, and a hot region that is in or out "
            "shifts all of them"
        )


def trace_format(paths: Sequence[Path], name: str | None) -> TraceFormat:
    """The format by name, or the only one that the first file fits.

    Raises:
        InputError: No or several formats fit.
    """
    if not paths:
        raise InputError("name at least one file of a trace")
    return format_named(name) if name else format_of(head_of(paths[0]), str(paths[0]))


@dataclass
class TraceReader:
    """Reads files of one format as one trace, in bounded memory; each `batches()` reads anew.

    Attributes:
        paths: The files; they may overlap in time.
        form: Their format.
        selection: Which requests.
        block_bytes: Read at a time; the result does not depend on it.
        report: What was odd, complete once all batches are read.
        sampled: What the sample holds, likewise.
        volumes: Names, in the order they were met.
        began_unix_seconds: When the selected time began, where the clock is of the calendar.
        unmet: Volumes that were asked for and not met before the end of `Selection.seconds`.
        observed_seconds: How long the trace tells of its volumes, once it is read: to the end of
            `Selection.seconds`, or the last request of any volume and one mean gap or step of the
            clock; None where all have one time.
    """

    paths: Sequence[Path]
    form: TraceFormat
    selection: Selection = field(default_factory=Selection)
    block_bytes: int = BLOCK_BYTES
    report: Report = field(default_factory=Report)
    sampled: Sampled = field(default_factory=Sampled)
    volumes: list[str] = field(default_factory=list)
    unmet: tuple[str, ...] = ()
    began_unix_seconds: float | None = None
    observed_seconds: float | None = None
    _seen: int = 0
    _last_ns: int = 0

    def on_drive(self, capacity_bytes: int) -> TraceReader:
        """The same for a drive of this size, beyond which nothing may reach."""
        selection = replace(self.selection, capacity_bytes=capacity_bytes)
        return TraceReader(self.paths, self.form, selection, self.block_bytes)

    def batches(self) -> Iterator[Batch]:
        """The requests.

        Raises:
            InputError: A file, a row or the selection is not what it must be.
        """
        self.report, self.sampled = Report(), Sampled()
        self.volumes, self.began_unix_seconds, self.observed_seconds = [], None, None
        self._seen = self._last_ns = 0
        self.unmet = ()
        origin: int | None = None
        given = past = False
        files = [self._file(number, self.report) for number in range(len(self.paths))]
        for rows in self._merged(files):
            if origin is None:
                origin = int(rows.arrival_ns[0])
                if self.form.wall_clock:
                    self.began_unix_seconds = origin / 1e9 + self.selection.start_seconds
            batch, past = self._selected(rows, origin, files)
            if batch is not None:
                given = True
                yield batch
            if past:
                break
        missing = [name for name in self.selection.volumes if name not in self.volumes]
        if not given or (missing and not past):
            raise self._nothing(missing)
        self.unmet = tuple(missing)
        if past and self.selection.seconds is not None:
            self.observed_seconds = self.selection.seconds / self.selection.speed
        elif self._seen > 1 and self._last_ns > 0:
            last = self._last_ns / 1e9
            beyond = max(last / (self._seen - 1), self.form.resolution_seconds)
            self.observed_seconds = (last + beyond) / self.selection.speed

    def _file(self, number: int, report: Report) -> TraceFile:
        return TraceFile(
            self.paths[number],
            self.form,
            number,
            report,
            unit=self.selection.time_unit,
            block_bytes=self.block_bytes,
        )

    def _ordered(self, file: TraceFile) -> Iterator[Rows]:
        """A file's rows in order, with volumes by the reader's numbers."""
        numbers = np.empty(0, dtype=np.uint32)
        checked = False
        for rows in in_order(file.rows(), self.report, file.place):
            if not checked:
                file.check_times(rows.arrival_ns)
                checked = True
            if len(file.volumes) > len(numbers):
                numbers = np.array([self._number(file, v) for v in file.volumes], dtype=np.uint32)
            yield rows._replace(volume=numbers[rows.volume])

    def _number(self, file: TraceFile, name: str) -> int:
        if len(self.paths) > 1 and not self.form.shared_names:
            name = f"{file.path.name}:{name}"
        if name not in self._numbers:
            self._numbers[name] = len(self.volumes)
            self.volumes.append(name)
        return self._numbers[name]

    def _merged(self, files: list[TraceFile]) -> Iterator[Rows]:
        """All files by time; a file is open only while its time has come."""
        self._numbers: dict[str, int] = {}
        if len(files) == 1:
            yield from self._ordered(files[0])
            return
        waiting = sorted(
            (first, number)
            for number in range(len(files))
            if (first := self._first_arrival(number)) is not None
        )
        streams: dict[int, Iterator[Rows]] = {}
        held: dict[int, Rows] = {}
        while waiting or held:
            if not held:
                _, number = waiting.pop(0)
                _advance(streams, held, number, self._ordered(files[number]))
                continue
            until = min(int(rows.arrival_ns[-1]) for rows in held.values())
            if waiting and waiting[0][0] <= until:
                _, number = waiting.pop(0)
                _advance(streams, held, number, self._ordered(files[number]))
                continue
            parts = []
            for number in sorted(held):
                rows = held[number]
                cut = int(np.searchsorted(rows.arrival_ns, until, side="right"))
                parts.append(rows.pick(slice(0, cut)))
                if cut == rows.total:
                    _advance(streams, held, number, streams[number])
                else:
                    held[number] = rows.pick(slice(cut, None))
            yield sort_by_time(joined(parts))

    def _first_arrival(self, number: int) -> int | None:
        """Of a file's first window of rows; None where it has no request."""
        for rows in in_order(self._file(number, Report()).rows(), Report(), str):
            return int(rows.arrival_ns[0])
        return None

    def _selected(
        self, rows: Rows, origin: int, files: list[TraceFile]
    ) -> tuple[Batch | None, bool]:
        """What of the rows is asked for, and whether the asked time is over."""
        selection = self.selection
        arrival = rows.arrival_ns - origin
        start = round(selection.start_seconds * 1e9)
        end = None if selection.seconds is None else start + round(selection.seconds * 1e9)
        past = end is not None and bool(arrival[-1] >= end)
        keep = np.ones(rows.total, dtype=bool)
        if start or end is not None:
            keep &= (arrival >= start) & (arrival < (end if end is not None else 1 << 62))
        if keep.any():
            self._seen += int(keep.sum())
            self._last_ns = int(arrival[keep][-1]) - start
        if selection.volumes:
            keep &= np.isin(self.volumes, selection.volumes)[rows.volume]
        if selection.sample < 1:
            keep = self._sample(rows, keep)
        if not keep.all():
            rows, arrival = rows.pick(keep), arrival[keep]
        if rows.total == 0:
            return None, past
        arrival -= start
        if selection.speed != 1:
            with np.errstate(over="ignore"):
                scaled = np.rint(arrival / selection.speed)
            if scaled.max() > LONGEST_NS:
                raise InputError(
                    f"--speed {selection.speed:g}: at this speed the trace ends after more than 31 "
                    "years; name a larger one",
                    field="speed",
                )
            arrival = scaled.astype(np.int64)
        offset = self._placed(rows, files)
        return Batch(arrival, offset, rows.size_bytes, rows.is_write, rows.volume), past

    def _sample(self, rows: Rows, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        names = np.array([_hash_of(name) for name in self.volumes], dtype=np.uint64)
        region = (rows.offset_bytes // SAMPLED_BYTES).astype(np.uint64)
        chosen = mixed(region ^ names[rows.volume]) < np.uint64(self.selection.sample * 2.0**64)
        both = keep & chosen
        self.sampled.requests += int(keep.sum())
        self.sampled.requests_kept += int(both.sum())
        self.sampled.bytes += int(rows.size_bytes[keep].sum())
        self.sampled.kept_bytes += int(rows.size_bytes[both].sum())
        return both

    def _placed(self, rows: Rows, files: list[TraceFile]) -> NDArray[np.int64]:
        """Addresses on the drive."""
        selection = self.selection
        offset = rows.offset_bytes
        if selection.ranges is not None:
            bases = np.array(
                [selection.ranges.get(name, 0) for name in self.volumes], dtype=np.int64
            )
            offset = offset + bases[rows.volume]
        if selection.capacity_bytes is None:
            return offset
        beyond = np.flatnonzero(offset + rows.size_bytes > selection.capacity_bytes)
        if len(beyond) == 0:
            return offset
        first = beyond[0]
        place = files[int(rows.file[first])].place(int(rows.line[first]))
        if not selection.wrap:
            raise InputError(
                f"{place}: the request ends at byte {offset[first] + rows.size_bytes[first]}, "
                f"beyond the drive's {selection.capacity_bytes}; take a larger drive, pick volumes "
                "with --volume, or fold addresses back with --wrap"
            )
        self.report.add("wrapped", len(beyond), place)
        # one address stays one place, whatever the size of its requests; the end is not split
        folded = offset[beyond] % selection.capacity_bytes
        offset = offset.copy()
        offset[beyond] = np.where(
            folded + rows.size_bytes[beyond] > selection.capacity_bytes, 0, folded
        )
        return offset

    def _nothing(self, missing: Sequence[str]) -> InputError:
        where = ", ".join(map(str, self.paths[:3]))
        if missing and self.volumes:
            more = (
                "" if len(self.volumes) <= _LISTED else f" and {len(self.volumes) - _LISTED} more"
            )
            return InputError(
                f"--volume {missing[0]}: {where} has {', '.join(self.volumes[:_LISTED])}{more}"
                f"{close_names(missing[0], self.volumes)}"
            )
        if self.report.rows:
            return InputError(f"{where}: no request is left of {self.report.rows}; ask for more")
        notes = "; ".join(self.report.notes())
        return InputError(f"{where}: holds no request" + (f": {notes}" if notes else ""))

    def notes(self) -> tuple[str, ...]:
        """What is to be known of the requests, once they are read."""
        selection = self.selection
        result = [*self.form.notes, *self.report.notes()]
        result += [f"--volume {name}: has no request in the time asked for" for name in self.unmet]
        if selection.sample < 1:
            result.append(self.sampled.note(selection.sample))
        if selection.speed != 1:
            result.append(f"time runs {selection.speed:g} times faster than in the trace")
        if self.form.resolution_seconds:
            result.append(
                f"the trace's clock steps by {self.form.resolution_seconds:g} s: bursts, gaps and "
                "queueing within a step are unknown"
            )
        return tuple(result)


def _advance(
    streams: dict[int, Iterator[Rows]], held: dict[int, Rows], number: int, stream: Iterator[Rows]
) -> None:
    streams[number] = stream
    rows = next(stream, None)
    if rows is None:
        held.pop(number, None)
        del streams[number]
    else:
        held[number] = rows


def in_order(chunks: Iterator[Rows], report: Report, place: Callable[[int], str]) -> Iterator[Rows]:
    """Rows by time as far as a window of `WINDOW_ROWS` reaches; ties keep their order.

    A row that comes later still takes the time of the row before it, and is counted.
    """
    held: Rows | None = None
    floor = -(1 << 63)
    for window in _windows(chunks):
        result = sort_by_time(window)
        if held is not None:
            if result.arrival_ns[0] >= held.arrival_ns[-1]:
                result, held = held, result
            else:
                both = sort_by_time(joined([held, window]))
                cut = both.total - WINDOW_ROWS
                result, held = both.pick(slice(0, cut)), both.pick(slice(cut, None))
                if cut <= 0:
                    held = both
                    continue
        else:
            held = result
            continue
        result = _not_before(result, floor, report, place)
        floor = int(result.arrival_ns[-1])
        yield result
    if held is not None:
        yield _not_before(held, floor, report, place)


def _not_before(rows: Rows, floor: int, report: Report, place: Callable[[int], str]) -> Rows:
    if rows.arrival_ns[0] >= floor:
        return rows
    late = rows.arrival_ns < floor
    report.add("late", int(late.sum()), place(int(rows.line[late].min())))
    return rows._replace(arrival_ns=np.maximum(rows.arrival_ns, floor))


def _windows(chunks: Iterator[Rows]) -> Iterator[Rows]:
    """The same rows in chunks of `WINDOW_ROWS`, but for the last."""
    parts: list[Rows] = []
    count = 0
    for chunk in chunks:
        if chunk.total == 0:
            continue
        parts.append(chunk)
        count += chunk.total
        while count >= WINDOW_ROWS:
            whole = joined(parts)
            yield whole.pick(slice(0, WINDOW_ROWS))
            parts, count = [whole.pick(slice(WINDOW_ROWS, None))], count - WINDOW_ROWS
    if count:
        yield joined(parts)


def _hash_of(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-mixed bits of whole numbers (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return result


def ranges_of(ends: Mapping[str, int]) -> dict[str, int]:
    """Where each volume's address range begins, one after the other, from where each ends."""
    result: dict[str, int] = {}
    base = 0
    for name, end in ends.items():
        result[name] = base
        base += -(-end // RANGE_BYTES) * RANGE_BYTES
    return result
