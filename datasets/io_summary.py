"""What was seen of a workload's I/O: counts and histograms of one or more stretches of time.

Every source that sees requests or counters fills the same document, whether a trace or a live
drive, and stretches seen at different times add up. `schema_version` is 1. Times are seconds, sizes
bytes. Histograms have 16 bins an octave, so that a percentile read off one is within 2.2 % of the
value that was seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.input_file import json_of
from iojoule.datasets.schema import (
    Count,
    Fraction,
    NonNegative,
    Positive,
    Section,
    validation_error,
)

SCHEMA_VERSION = 1
BINS_PER_OCTAVE = 16
GAP_SECONDS = 0.01
"""Shortest time without a request that parts two bursts, by default. A drive does not come
to rest in pauses of 5 and 30 ms and does in 100 ms (000, 5.9 F13), so shorter ones save nothing."""

SHORT_SECONDS = 60.0
"""A shorter trace does not tell what a workload demands in the long run."""


class IoSource(StrEnum):
    """Where a summary comes from."""

    DISKSTATS = "diskstats"
    BLKPARSE = "blkparse"
    FIO_IOLOG = "fio-iolog"
    MQSIM_TRACE = "mqsim-trace"
    IOSTAT = "iostat"
    SAR = "sar"
    PG_STAT_IO = "pg_stat_io"
    PROMETHEUS = "prometheus"
    SMARTCTL = "smartctl"
    TRACE = "trace"


class LogHistogram(Section):
    """How often values fell into bins of a factor of 2 ** (1/16).

    Attributes:
        counts: Bin -> how many; bin i holds what is at least 2 ** (i/16) and less than
            2 ** ((i+1)/16).
        total: Sum of the values themselves.
    """

    counts: dict[int, Count] = Field(default_factory=dict)
    total: NonNegative = 0.0

    @classmethod
    def of(cls, values: ArrayLike) -> LogHistogram:
        """The histogram of positive values; others are left out."""
        positive = np.asarray(values, dtype=float)
        positive = positive[positive > 0]
        bins = np.floor(np.log2(positive) * BINS_PER_OCTAVE).astype(int)
        counts = {
            int(each): int(n) for each, n in zip(*np.unique(bins, return_counts=True), strict=True)
        }
        return cls(counts=counts, total=float(positive.sum()))

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> float | None:
        """The nearest-rank percentile, as the geometric middle of its bin; None without values."""
        rank, seen = max(1, math.ceil(percent / 100 * self.count)), 0
        for each, number in sorted(self.counts.items()):
            seen += number
            if seen >= rank:
                return float(2 ** ((each + 0.5) / BINS_PER_OCTAVE))
        return None

    def __add__(self, other: LogHistogram) -> LogHistogram:
        """Both together."""
        counts = Counter(self.counts) + Counter(other.counts)
        return LogHistogram(counts=dict(sorted(counts.items())), total=self.total + other.total)


class IoWindow(Section):
    """What was seen in one stretch of time. None is what the source does not tell.

    Attributes:
        began_unix_seconds: When it began.
        seconds: How long it was.
        reads: Read requests.
        writes: Write requests that brought data.
        read_bytes: Read.
        write_bytes: Written.
        flushes: Flushes of the volatile write cache.
        forced_writes: Writes with forced unit access.
        discards: Requests to discard.
        merged: Requests that the host joined with others before the drive saw them.
        busy_seconds: Time with at least one request in flight.
        in_flight: Requests in flight -> seconds.
        gap_floor_seconds: Shortest gap that counts as one.
        gaps: Times without a request between two bursts, in seconds.
        unsure_gaps: Further gaps, at whose edge a reading came too late to know their length.
        bursts: Bytes between two gaps.
        read_sizes: Bytes of a read -> how many; of those only whose size is known exactly.
        write_sizes: Likewise.
        sequential_share: Share of reads and writes that begin where another one ended.
        span_bytes: Distance from the lowest to the highest byte that was touched.
        touched_bytes: Different blocks of 4 KiB that were touched, in bytes.
        resolution_seconds: How exactly times are known; 0 from a trace.
    """

    began_unix_seconds: NonNegative | None = None
    seconds: Positive | None = None
    reads: Count = 0
    writes: Count = 0
    read_bytes: Count = 0
    write_bytes: Count = 0
    flushes: Count | None = None
    forced_writes: Count | None = None
    discards: Count | None = None
    merged: Count | None = None
    busy_seconds: NonNegative | None = None
    in_flight: dict[int, NonNegative] = Field(default_factory=dict)
    gap_floor_seconds: Positive = GAP_SECONDS
    gaps: LogHistogram | None = None
    unsure_gaps: Count = 0
    bursts: LogHistogram | None = None
    read_sizes: dict[int, Count] = Field(default_factory=dict)
    write_sizes: dict[int, Count] = Field(default_factory=dict)
    sequential_share: Fraction | None = None
    span_bytes: Count | None = None
    touched_bytes: Count | None = None
    resolution_seconds: NonNegative | None = None

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def mean_in_flight(self) -> float | None:
        """Mean number of requests in flight while there were any."""
        seconds = sum(time for level, time in self.in_flight.items() if level > 0)
        if seconds <= 0:
            return None
        return sum(level * time for level, time in self.in_flight.items()) / seconds

    @property
    def latency_mean_seconds(self) -> float | None:
        """Mean time from arrival to end, by Little's law; None without requests in flight."""
        waited = sum(level * time for level, time in self.in_flight.items())
        return waited / self.requests if waited and self.requests else None


class IoSummary(Section):
    """The document: stretches of one workload from one source.

    Attributes:
        schema_version: Of this form.
        source: What was read.
        name: How the workload is called.
        scheduler: The host's block-layer scheduler, where known.
        windows: At least one; in the order they were seen.
        notes: What the source could not tell.
    """

    schema_version: Literal[1] = 1
    source: IoSource
    name: str
    scheduler: str | None = None
    windows: tuple[IoWindow, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len({window.gap_floor_seconds for window in self.windows}) > 1:
            raise ValueError(
                "windows: differ in gap_floor_seconds, so their bursts do not add up; observe "
                "again with one --gap-seconds"
            )
        return self

    def pooled(self, windows: Iterable[IoWindow] | None = None) -> IoWindow:
        """All windows, or those given, as one; what one of them does not tell is not told."""
        return _pooled(self.windows if windows is None else tuple(windows))


ONE_TIME = "all requests have one time, so no demand is known; take a longer trace"


def short_or_pooled(seconds: float | None, volumes: int) -> list[str]:
    """What to know of a demand from a short trace, or from several volumes taken together."""
    notes = []
    if seconds is not None and seconds < SHORT_SECONDS:
        notes.append(
            f"the trace lasts {seconds:.3g} s: its rates, arrivals and working set are those of so "
            "short a time and not of a workload; take a longer trace"
        )
    if volumes > 1:
        notes.append(
            f"{volumes} volumes are taken together: demand and working set are those of one drive "
            "that holds them all, and rewrites and sequential runs are within each volume"
        )
    return notes


_SUMS = (
    "seconds",
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "flushes",
    "forced_writes",
    "discards",
    "merged",
    "busy_seconds",
    "gaps",
    "bursts",
    "unsure_gaps",
)
_COUNTERS = ("in_flight", "read_sizes", "write_sizes")
_LARGEST = ("span_bytes", "touched_bytes", "resolution_seconds")


def _pooled(windows: tuple[IoWindow, ...]) -> IoWindow:
    first, *others = windows
    if not others:
        return first
    fields: dict[str, object] = {"gap_floor_seconds": first.gap_floor_seconds}
    for name in _SUMS:
        total = getattr(first, name)
        for other in others:
            value = getattr(other, name)
            total = None if total is None or value is None else total + value
        fields[name] = total
    for name in _COUNTERS:
        together: Counter[int] = Counter()
        for other in windows:
            together.update(getattr(other, name))
        fields[name] = dict(sorted(together.items()))
    for name in _LARGEST:
        values = [getattr(other, name) for other in windows]
        fields[name] = None if None in values else max(values)
    fields["began_unix_seconds"] = first.began_unix_seconds
    fields["sequential_share"] = _weighted_share(windows)
    return IoWindow.model_validate(fields)


def _weighted_share(windows: tuple[IoWindow, ...]) -> float | None:
    requests = sum(window.requests for window in windows)
    if requests == 0 or any(
        window.sequential_share is None for window in windows if window.requests
    ):
        return None
    return sum((window.sequential_share or 0.0) * window.requests for window in windows) / requests


def parse_summary(text: str, where: str) -> IoSummary:
    """Read the document.

    Raises:
        InputError: It is damaged, or another document; the message names `where`.
        SchemaVersionError: It was written by a newer version.
    """
    try:
        data = json_of(text)
    except ValueError as error:
        raise InputError(f"{where}: not a complete JSON document: {error}") from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{where}: schema version {version} is newer than {SCHEMA_VERSION}; upgrade iojoule"
        )
    try:
        return IoSummary.model_validate(data)
    except ValidationError as error:
        raise validation_error(error, where) from None


def write_summary(summary: IoSummary, path: Path) -> None:
    """Write the document atomically.

    Raises:
        InputError: The place cannot be written.
    """
    with output_file(path):
        write_text_atomically(path, summary.model_dump_json(indent=1) + "\n")
