"""The requests of a run: recorded beside the power, stored as Parquet, summed up by layer.

    trace/requests.parquet   one row for each completed request, in order of completion

Columns: operation, flags (`rwbs` of the kernel), offset_bytes, size_bytes, merges, requeues, error,
and queued_ns, issued_ns, completed_ns by CLOCK_MONOTONIC; queued_ns is null where no event says it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from iojoule.datasets.schema import Section
from iojoule.measure.drive.block_device import SECTOR_BYTES, BlockDevice
from iojoule.measure.errors import CampaignError, HostStateError
from iojoule.measure.tracing.requests import (
    COMPLETE,
    EVENTS,
    GET,
    ISSUE,
    OPERATIONS,
    QUEUE,
    UNKNOWN,
    Assembly,
    Event,
    Request,
)
from iojoule.measure.tracing.ring_buffer import (
    Entries,
    EventFormat,
    Field,
    PageLayout,
    read_entries,
)
from iojoule.measure.tracing.tracefs import REMEDY, Collector, Instance, instance, mounted

Ints = NDArray[np.int64]

FOLDER, FILE_NAME = "trace", "requests.parquet"
_NEEDED = (QUEUE, GET, ISSUE, COMPLETE)
_PAGES_AT_ONCE = 512
_ROWS_AT_ONCE = 1 << 16

_TYPES: dict[str, pa.DataType] = {
    "operation": pa.string(),
    "flags": pa.string(),
    "offset_bytes": pa.int64(),
    "size_bytes": pa.int64(),
    "merges": pa.int32(),
    "requeues": pa.int32(),
    "error": pa.int32(),
    "queued_ns": pa.int64(),
    "issued_ns": pa.int64(),
    "completed_ns": pa.int64(),
}
SCHEMA = pa.schema(_TYPES)


class LayerLatency(Section):
    """Time in one layer, of the requests of which both ends are known."""

    mean_ns: float
    p50_ns: float
    p99_ns: float


class TraceSummary(Section):
    """Requests that were completed in a stretch of time; stored in the record of a run.

    Attributes:
        requests: Reads and writes; `bytes` their size. All else here is about them, too.
        flushes: Flushes that the drive got; `discards` likewise.
        merges: Bios and requests that were merged into them.
        requeues: How often the driver gave one back.
        queue_to_issue: Scheduling and waiting for the driver; None without requests.
        issue_to_complete: Driver and drive; None without requests.
        lost_events: What the kernel dropped of the whole trace; the counts are lower bounds then.
        unmatched: Completions of the whole trace whose issue was not seen.
    """

    requests: int
    bytes: int
    flushes: int
    discards: int
    merges: int
    requeues: int
    queue_to_issue: LayerLatency | None
    issue_to_complete: LayerLatency | None
    lost_events: int
    unmatched: int


@dataclass(frozen=True)
class BlockTrace:
    """Completed requests, arrays of shape (n,).

    Times as in the file, `UNKNOWN` = not known; `operation` is the code of its letter.
    """

    operation: Ints
    queued_ns: Ints
    issued_ns: Ints
    completed_ns: Ints
    size_bytes: Ints
    merges: Ints
    requeues: Ints
    lost_events: int
    unmatched: int

    def summary(self, begin_ns: int, end_ns: int) -> TraceSummary:
        """What was completed between two times by CLOCK_MONOTONIC."""
        during = (self.completed_ns >= begin_ns) & (self.completed_ns < end_ns)
        use = during & np.isin(self.operation, (ord("R"), ord("W")))
        queued, issued, completed = (
            values[use] for values in (self.queued_ns, self.issued_ns, self.completed_ns)
        )
        known = queued != UNKNOWN
        return TraceSummary(
            requests=int(use.sum()),
            bytes=int(self.size_bytes[use].sum()),
            flushes=int((during & (self.operation == ord("F"))).sum()),
            discards=int((during & (self.operation == ord("D"))).sum()),
            merges=int(self.merges[use].sum()),
            requeues=int(self.requeues[use].sum()),
            queue_to_issue=_latency(issued[known] - queued[known]),
            issue_to_complete=_latency(completed - issued),
            lost_events=self.lost_events,
            unmatched=self.unmatched,
        )


def _latency(times: Ints) -> LayerLatency | None:
    if not len(times):
        return None
    p50, p99 = np.percentile(times, (50, 99))
    return LayerLatency(mean_ns=float(times.mean()), p50_ns=float(p50), p99_ns=float(p99))


def device_number(device: BlockDevice) -> int:
    """The number by which block events name the device that serves a drive's requests.

    Raises:
        HostStateError: It is hidden, as a path of an NVMe drive with several controllers.
    """
    number = device.number
    if device.carrier != device.name:
        try:
            folder = device.sysfs / "class" / "block" / device.carrier
            number = (folder / "dev").read_text().strip()
        except OSError:
            raise HostStateError(
                f"{device.path}: its requests are counted by {device.carrier}, whose number the "
                "kernel does not state; start it with nvme_core.multipath=N, or leave --trace out"
            ) from None
    major, minor = map(int, number.split(":"))
    return major << 20 | minor


@contextmanager
def tracer(device: BlockDevice) -> Iterator[Tracer]:
    """What traces runs on a drive; the trace instance is removed at the end.

    Raises:
        HostStateError: Tracing is not allowed here, or the kernel lacks an event.
    """
    with mounted() as root, instance(root, EVENTS, device_number(device)) as source:
        missing = [name for name in _NEEDED if name not in source.formats]
        if missing:
            raise HostStateError(f"the kernel has no event {', '.join(missing)}; {REMEDY}")
        yield Tracer(source)


@dataclass(frozen=True)
class Tracer:
    """Traces one run after the other."""

    source: Instance

    @contextmanager
    def recording(self, run: Path) -> Iterator[None]:
        """Record while the body runs, into the folder of a run.

        Raises:
            HostStateError: Events could not be recorded.
        """
        collector = Collector(self.source, run / FOLDER)
        collector.start()
        try:
            yield
        except BaseException:
            with contextlib.suppress(HostStateError):
                for path in collector.stop():
                    path.unlink(missing_ok=True)
            raise
        collector.stop()

    def requests(self, run: Path) -> BlockTrace:
        """Put the requests together, store them and remove what was recorded.

        Raises:
            CampaignError: The file cannot be written.
        """
        return store(run / FOLDER, self.source.layout, self.source.formats)


def store(folder: Path, layout: PageLayout, formats: dict[str, EventFormat]) -> BlockTrace:
    """Turn the pages of every CPU in a folder into `requests.parquet` there.

    Raises:
        CampaignError: The file cannot be written.
    """
    pages = sorted(folder.glob("cpu*.pages"))
    assembly = Assembly()
    columns = _Columns()
    path = folder / FILE_NAME
    partial = path.with_name(f".{path.name}.part")
    lost = 0
    try:
        with pq.ParquetWriter(partial, SCHEMA, compression="zstd", compression_level=1) as writer:
            for events, dropped in ordered(pages, layout, formats):
                lost += dropped
                assembly.add(events)
                if len(assembly.done) >= _ROWS_AT_ONCE:
                    _write(writer, assembly.done, columns)
            _write(writer, assembly.done, columns)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CampaignError(
            f"{path}: cannot be written ({error.strerror}); make room and resume the campaign"
        ) from None
    for path_of_cpu in pages:
        path_of_cpu.unlink()
    return columns.trace(lost, assembly.unmatched)


@dataclass
class _Columns:
    """Columns for the summary, in parts of shape (7, n)."""

    parts: list[Ints] = field(default_factory=list)

    def trace(self, lost: int, unmatched: int) -> BlockTrace:
        empty = np.empty((7, 0), dtype=np.int64)
        columns: Ints = np.hstack([empty, *self.parts])
        operation, queued, issued, completed, sizes, merges, requeues = columns
        return BlockTrace(
            operation, queued, issued, completed, sizes, merges, requeues, lost, unmatched
        )


def _write(writer: pq.ParquetWriter, done: list[Request], stored: _Columns) -> None:
    """Write completed requests and forget them."""
    if not done:
        return
    known = [
        [ord(request.operation[:1] or "N") for request in done],
        [request.queued_ns for request in done],
        [request.issued_ns for request in done],
        [request.completed_ns for request in done],
        [SECTOR_BYTES * request.sectors for request in done],
        [request.merges for request in done],
        [request.requeues for request in done],
    ]
    numbers = np.array(known, dtype=np.int64)
    _, queued, issued, completed, sizes, merges, requeues = numbers
    stored.parts.append(numbers)
    columns = {
        "operation": [OPERATIONS.get(request.operation, "other") for request in done],
        "flags": [request.rwbs for request in done],
        "offset_bytes": [SECTOR_BYTES * request.sector for request in done],
        "size_bytes": sizes,
        "merges": merges.astype(np.int32),
        "requeues": requeues.astype(np.int32),
        "error": [request.error for request in done],
        "queued_ns": pa.array(queued, mask=queued == UNKNOWN),
        "issued_ns": issued,
        "completed_ns": completed,
    }
    writer.write_table(pa.table(columns, schema=SCHEMA))
    done.clear()


@dataclass
class _Cpu:
    """Events of one CPU that are not handed on yet."""

    blocks: Iterator[tuple[list[Event], int]]
    waiting: list[Event] = field(default_factory=list)
    ended: bool = False

    def fill(self) -> int:
        """Read a block where nothing waits; how many events the kernel had dropped."""
        lost = 0
        while not self.waiting and not self.ended:
            events, dropped = next(self.blocks, (None, 0))
            lost += dropped
            if events is None:
                self.ended = True
            else:
                self.waiting = events
        return lost

    def take(self, until_ns: int) -> list[Event]:
        """Events up to a time."""
        count = sum(1 for event in self.waiting if event.at_ns <= until_ns)
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


def ordered(
    pages: Sequence[Path], layout: PageLayout, formats: dict[str, EventFormat]
) -> Iterator[tuple[list[Event], int]]:
    """Events of all CPUs in order of time, in blocks, each with how many were lost."""
    cpus = [_Cpu(_blocks(path, layout, formats)) for path in pages]
    while True:
        lost = sum(cpu.fill() for cpu in cpus)
        going = [cpu for cpu in cpus if not cpu.ended]
        if not going:
            if lost:
                yield [], lost
            return
        until = min(cpu.waiting[-1].at_ns for cpu in going)
        events = [event for cpu in going for event in cpu.take(until)]
        yield sorted(events, key=lambda event: event.at_ns), lost


def _blocks(
    path: Path, layout: PageLayout, formats: dict[str, EventFormat]
) -> Iterator[tuple[list[Event], int]]:
    with path.open("rb") as file:
        while data := file.read(_PAGES_AT_ONCE * layout.size_bytes):
            entries = read_entries(data, layout)
            yield _events(entries, formats), entries.lost


def _events(entries: Entries, formats: dict[str, EventFormat]) -> list[Event]:
    """Entries as events, in the order of the CPU; other entries are left out."""
    if not len(entries.offsets):
        return []
    some = next(iter(formats.values()))
    kinds = entries.values(some.fields["common_type"], np.arange(len(entries.offsets)))
    by_row: list[tuple[int, Event]] = []
    for name, layout in formats.items():
        rows = np.flatnonzero(kinds == layout.number)
        if not len(rows):
            continue
        fields = layout.fields
        errors = np.zeros(len(rows), dtype=np.int64)
        if "error" in fields:
            errors = entries.signed(fields["error"], rows)
        columns = zip(
            rows.tolist(),
            entries.at_ns[rows].tolist(),
            _sectors(entries, fields["sector"], rows).tolist(),
            entries.values(fields["nr_sector"], rows).tolist(),
            entries.texts(fields["rwbs"], rows).tolist(),
            errors.tolist(),
            strict=True,
        )
        by_row += [
            (row, Event(name, at, sector, sectors, rwbs.decode("ascii", "replace"), error))
            for row, at, sector, sectors, rwbs, error in columns
        ]
    return [event for _, event in sorted(by_row, key=lambda pair: pair[0])]


def _sectors(entries: Entries, where: Field, rows: Ints) -> Ints:
    """First sectors; a flush is issued at sector 0 and completed at -1."""
    return np.maximum(entries.signed(where, rows), 0)
