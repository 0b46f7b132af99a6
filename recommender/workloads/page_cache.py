"""What of a buffered job reaches the drive: the kernel's page cache stands between.

Reads: a share of them is found in memory, and those in a row are fetched ahead of the reader, in
larger requests. Writes end in memory; the flusher writes them later, merged where they lie in a
row, and once where a page was written several times. Sizes and times are Linux' defaults
(Documentation/admin-guide/sysctl/vm.rst, Documentation/ABI/stable/sysfs-block).

That reads found in memory "can even double the actual throughput" is finding F14 of the thesis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio_options import JobSetup
from iojoule.datasets.importers.units import parse_bytes, parse_fio_size
from iojoule.model.evaluate.host_work import FLUSH_DEPTH, MERGED_BYTES

PAGE_BYTES = 4096
READ_AHEAD_BYTES = 128 * 1024
"""Unless `read_ahead_kb` was set (VM_READAHEAD_PAGES)."""

READ_AHEAD_DEPTH = 2
"""The window that is read, and the next one, which is asked for once the reader enters it."""

DIRTY_SECONDS = 30.0
"""How long a page may stay dirty: vm.dirty_expire_centisecs."""

DIRTY_SHARE = 0.1
"""Of the memory, from which on the flusher does not wait: vm.dirty_background_ratio."""


@dataclass(frozen=True)
class PageCache:
    """Memory that keeps pages of the job's files.

    Attributes:
        memory_bytes: How much of it; above 0.
        read_ahead_bytes: What is fetched at a time for a reader in sequence; in requests of at
            most `MERGED_BYTES`.
    """

    memory_bytes: float
    read_ahead_bytes: int = READ_AHEAD_BYTES

    def __post_init__(self) -> None:
        if self.memory_bytes < PAGE_BYTES:
            raise InputError(
                f"page cache: {self.memory_bytes:g} bytes hold no page of {PAGE_BYTES}; say how "
                "much memory keeps the job's files",
                field="page_cache",
            )
        if self.read_ahead_bytes < PAGE_BYTES:
            raise InputError(
                f"read ahead: {self.read_ahead_bytes} bytes are less than a page of {PAGE_BYTES}; "
                "say what read_ahead_kb states",
                field="read_ahead",
            )


def page_cache(memory: str | None, read_ahead: str | None) -> PageCache | None:
    """The cache that two sizes state, such as 16GiB; None where none is stated.

    Raises:
        InputError: Not a size, or one that cannot be; or only the second is stated.
    """
    if memory is None:
        if read_ahead is not None:
            raise InputError(
                f"read ahead: {read_ahead} counts only with a page cache; state its size too",
                field="read_ahead",
            )
        return None
    sizes = []
    for name, text in (("page_cache", memory), ("read_ahead", read_ahead)):
        number = READ_AHEAD_BYTES if text is None else parse_bytes(text)
        if not number:
            raise InputError(f"{name}: {text} is not a size; write for instance 16GiB", field=name)
        sizes.append(number)
    return PageCache(*sizes)


@dataclass(frozen=True)
class _Stream:
    """Requests to the drive.

    Attributes:
        each: How many for each request of the job.
        request_bytes: Bytes of one.
        depth: In flight for each clone of the job, or for all of them where they are `flushed`.
        pattern: Their order.
        writes: Whether they write.
        flush_every: After how many of them the job flushes; None where it does not.
        flushed: Whether the one flusher of the kernel makes them.
    """

    each: float
    request_bytes: int
    depth: int
    pattern: str
    writes: bool = False
    flush_every: int | None = None
    flushed: bool = False

    @property
    def bytes_each(self) -> float:
        return self.each * self.request_bytes


def reaches_drive(
    setup: JobSetup, options: Mapping[str, str], cache: PageCache, place: str
) -> JobSetup:
    """The requests of a buffered job as the drive sees them.

    Args:
        setup: The job as fio understands it, with the mean of its sizes.
        options: All options of the job: the size of its files, and whether it repeats.
        cache: The memory.
        place: File and job, for messages.

    Raises:
        InputError: The job states no size, nothing reaches the drive, or the rate of writes that
            repeat in memory is not stated; names the option.
    """
    fields = dict(setup.fields)
    files_bytes = _files_bytes(setup, options, place)
    read_share = {"read": 1.0, "write": 0.0}.get(
        fields["operation"], fields.get("read_fraction", 0.5)
    )
    repeats = _repeats(setup, options)
    found = _found(fields, files_bytes, cache) * repeats
    through = (
        f"through a page cache of {_size(cache.memory_bytes)}, of {_size(files_bytes)} of files"
    )
    notes = [f"{through}; what copies within memory draw is not counted"]
    reads = _reads(fields, read_share, found, cache)
    if read_share:
        once = (
            "" if repeats else ": the job reads each block once (no time_based, loops, norandommap)"
        )
        notes.append(f"reads found in memory: {found:.0%}{once}")
    writes = None
    if read_share < 1:
        writes, kept = _writes(setup, 1.0 - read_share, files_bytes, cache, place)
        if kept < 1:
            notes.append(f"writes that reach the drive, for pages are written again: {kept:.0%}")
        partial = fields["request_bytes"] % PAGE_BYTES and fields["pattern"] == "random"
        if partial and found < 1:
            fill = _Stream((1.0 - read_share) * (1.0 - found), PAGE_BYTES, 1, "random")
            reads = fill if reads is None else _joined(reads, fill)
            notes.append("writes of parts of a page read the page first, where it is not in memory")
    streams = [stream for stream in (reads, writes) if stream is not None and stream.each > 0]
    if not streams:
        raise InputError(
            f"{place}: nothing reaches the drive: {_size(cache.memory_bytes)} of page cache hold "
            f"all {_size(files_bytes)} that are read; no setting of the drive matters for it, let "
            "it sleep",
            field="size",
        )
    notes.append("its requests are " + " and ".join(map(_described, streams)))
    clones = setup.numjobs if any(not stream.flushed for stream in streams) else 1
    return replace(
        setup,
        fields=_fields(fields, streams, setup.numjobs, clones) | {"working_set_bytes": files_bytes},
        numjobs=clones,
        notes=(*(note for note in setup.notes if "direct=0" not in note), *notes),
    )


def _files_bytes(setup: JobSetup, options: Mapping[str, str], place: str) -> float:
    """Of all clones; a file that has a name is one for all of them."""
    size = parse_fio_size(options.get("size", ""))
    if not size:
        raise InputError(
            f"{place}: what the page cache answers depends on how much is read and written; state "
            "size= in bytes",
            field="size",
        )
    return float(size) * (1 if options.get("filename") else setup.numjobs)


def _repeats(setup: JobSetup, options: Mapping[str, str]) -> float:
    """Share of the reads of blocks that were read before, once it goes on for long.

    A job reads a block once, unless it repeats or others read the same file in an order of theirs.
    """

    def on(name: str) -> bool:
        return options.get(name, "0") not in ("0", "false")

    random = setup.fields["pattern"] == "random"
    again = on("time_based") or (random and on("norandommap"))
    if again or int(parse_fio_size(options.get("loops", "1")) or 1) > 1:
        return 1.0
    return 1.0 - 1.0 / setup.numjobs if random and options.get("filename") else 0.0


def _found(fields: Mapping[str, Any], files_bytes: float, cache: PageCache) -> float:
    """Share of what was read before that memory still holds.

    Blocks at random are found as often as they are kept; one by one around a file larger than the
    memory, each was dropped just before.
    """
    if fields["pattern"] == "random":
        return min(1.0, cache.memory_bytes / files_bytes)
    return float(files_bytes <= cache.memory_bytes)


def _reads(
    fields: Mapping[str, Any], share: float, found: float, cache: PageCache
) -> _Stream | None:
    missed = share * (1.0 - found)
    if missed == 0.0:
        return None
    asked = int(fields["request_bytes"])
    if fields["pattern"] == "sequential":
        size = cache.read_ahead_bytes if asked < cache.read_ahead_bytes else _pages(asked)
        size = min(size, MERGED_BYTES)
        return _Stream(missed * asked / size, size, READ_AHEAD_DEPTH, "sequential")
    size = min(_pages(asked), MERGED_BYTES)
    pieces = math.ceil(_pages(asked) / size)
    # libaio waits where it submits, and so does posixaio's one thread a file
    depth = int(fields["queue_depth"]) if fields["engine"] == "io_uring" else 1
    return _Stream(missed * pieces, size, depth * pieces, "random")


def _writes(
    setup: JobSetup, share: float, files_bytes: float, cache: PageCache, place: str
) -> tuple[_Stream, float]:
    """What the flusher, or each flush, writes; and which share of the writes is left of them."""
    fields = setup.fields
    asked, pattern = int(fields["request_bytes"]), str(fields["pattern"])
    every = 1 if fields.get("force_unit_access") else fields.get("flush_every_writes")
    if every:
        in_a_row = pattern == "sequential"
        moved = _pages(asked * every) if in_a_row else _pages(asked) * every
        size = min(_pages(asked * every if in_a_row else asked), MERGED_BYTES)
        number = math.ceil(moved / size)
        depth = min(number, FLUSH_DEPTH)
        return _Stream(share * number / every, size, depth, pattern, True, number), 1.0
    moved = asked if pattern == "sequential" else _pages(asked)
    written = _written(setup, share, moved / files_bytes, cache.memory_bytes / files_bytes, place)
    # in a row, or as far as neighbours happen to be dirty as well
    dirty = min(1.0, written) if pattern == "sequential" else -math.expm1(-written)
    merged = pattern == "sequential" or dirty == 1.0
    run = MERGED_BYTES
    if not merged:
        run = min(round(moved / (1.0 - dirty) / PAGE_BYTES) * PAGE_BYTES, MERGED_BYTES)
    kept = dirty / written
    return _Stream(share * kept * moved / run, run, FLUSH_DEPTH, pattern, True, flushed=True), kept


def _written(setup: JobSetup, share: float, block: float, memory: float, place: str) -> float:
    """How often the files are written over, in the mean, before the flusher comes.

    It comes after `DIRTY_SECONDS`, or once `DIRTY_SHARE` of the memory is dirty. Of N blocks N (1 -
    exp(-x)) are dirty after x N writes at random.

    Args:
        setup: The job, whose rate counts.
        share: Of its requests, those that write.
        block: What a write makes dirty, as a share of the files.
        memory: Of the cache, as a share of the files.
        place: For messages.
    """
    limit = DIRTY_SHARE * memory
    until_full = math.inf
    if limit < 1.0:
        until_full = limit if setup.fields["pattern"] == "sequential" else -math.log1p(-limit)
    rate = setup.fields.get("demand_operations_per_second")
    if rate is None and "demand_bytes_per_second" in setup.fields:
        rate = setup.fields["demand_bytes_per_second"] / setup.fields["request_bytes"]
    if rate is not None:
        return min(until_full, float(rate) * share * setup.numjobs * DIRTY_SECONDS * block)
    if math.isinf(until_full):
        raise InputError(
            f"{place}: all that is written fits into memory and is written again there; state "
            "rate= or rate_iops=, for it says how often",
            field="rate",
        )
    return until_full


def _joined(first: _Stream, second: _Stream) -> _Stream:
    """Two streams as one: requests and bytes a second are kept."""
    each = first.each + second.each
    size = (first.bytes_each + second.bytes_each) / each
    return _Stream(
        each=each,
        request_bytes=max(512, round(size / 512) * 512),
        depth=first.depth + second.depth,
        pattern=first.pattern if first.pattern == second.pattern else "random",
        flush_every=first.flush_every or second.flush_every,
    )


def _fields(
    fields: dict[str, Any], streams: list[_Stream], jobs: int, clones: int
) -> dict[str, Any]:
    """The job's fields with the drive's requests in place of its own, for each of the clones."""
    one = functools.reduce(_joined, streams)
    read_share = sum(stream.each for stream in streams if not stream.writes) / one.each
    mixed = 0.0 < read_share < 1.0
    rate = fields.pop("demand_operations_per_second", None)
    moved = fields.pop("demand_bytes_per_second", None)
    if rate is None and moved is not None:
        rate = moved / fields["request_bytes"]
    if rate is not None:
        through = rate * sum(stream.bytes_each for stream in streams)
        fields["demand_bytes_per_second"] = through * jobs / clones
    if think := fields.get("think_time_ns"):
        fields["think_time_ns"] = think / one.each
    if one.pattern == "sequential" and read_share == 1.0:
        fields["useful_request_bytes"] = min(int(fields["request_bytes"]), one.request_bytes)
        fields["request_bytes_coalescible"] = MERGED_BYTES
    in_flight = sum(stream.depth * (1 if stream.flushed else jobs) for stream in streams)
    depth = math.ceil(in_flight / clones)
    # what the kernel reads ahead and flushes does not wait for each request, as psync would
    engine = "libaio" if depth > 1 and fields["engine"] != "io_uring" else fields["engine"]
    changed = {
        "operation": "mixed" if mixed else "read" if read_share else "write",
        "read_fraction": read_share,
        "mix_dispatch": "interleaved" if mixed else None,
        "pattern": one.pattern,
        "request_bytes": one.request_bytes,
        "queue_depth": depth,
        "engine": engine,
        "flush_every_writes": one.flush_every,
        "force_unit_access": None,
    }
    return {name: value for name, value in (fields | changed).items() if value is not None}


def _pages(size: float) -> int:
    """Bytes of the pages that so many bytes cover."""
    return math.ceil(size / PAGE_BYTES) * PAGE_BYTES


def _size(size: float) -> str:
    unit, name = (1 << 30, "GiB") if size >= 1 << 30 else (1 << 20, "MiB")
    return f"{size / unit:.3g} {name}"


def _described(stream: _Stream) -> str:
    return f"{stream.request_bytes / 1024:g} KiB, {stream.pattern}, {stream.depth} in flight"
