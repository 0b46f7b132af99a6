"""Traces for the command line: their volumes, profiles of them, and classes for a fleet."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import GAP_SECONDS, IoSummary
from iojoule.datasets.traces.read import Selection, TraceReader, ranges_of, trace_format
from iojoule.datasets.traces.volumes import Survey, survey

MERGED = "merged"
_LISTED = 8


def reader_of(paths: Sequence[Path], form: str | None, selection: Selection) -> TraceReader:
    """A reader of the files.

    Raises:
        InputError: The format is not certain, or there is no such format or file.
    """
    return TraceReader(tuple(paths), trace_format(paths, form), selection)


def placed(reader: TraceReader, seen: Survey) -> TraceReader:
    """The same, with an address range of its own for each volume that was seen."""
    ranges = ranges_of({name: volume.end_bytes for name, volume in seen.volumes.items()})
    selection = replace(reader.selection, ranges=ranges)
    return TraceReader(reader.paths, reader.form, selection, reader.block_bytes)


def merged(reader: TraceReader, seen: Survey, gap_seconds: float = GAP_SECONDS) -> Survey:
    """All volumes as one; the trace is read again with their address ranges."""
    return survey(placed(reader, seen), gap_seconds, merge=True)


def merged_summary(pooled: Survey, volumes: int) -> IoSummary:
    """The document of merged volumes."""
    return pooled.summary(MERGED, pooled_from=volumes)


def only_volume(seen: Survey) -> str:
    """The one volume of a trace.

    Raises:
        InputError: It has several.
    """
    names = list(seen.volumes)
    if len(names) == 1:
        return names[0]
    more = "" if len(names) <= _LISTED else f" and {len(names) - _LISTED} more"
    raise InputError(
        f"the trace has {len(names)} volumes ({', '.join(names[:_LISTED])}{more}): choose one with "
        "--volume, take them together with --merge, or write each with --each"
    )


def file_names(volumes: Iterable[str]) -> dict[str, str]:
    """Names of volumes as those of files, each of its own."""
    found: dict[str, str] = {}
    for volume in volumes:
        plain = re.sub(r"[^A-Za-z0-9_.,-]", "_", volume).lstrip(".") or "_"
        taken = found.values()
        names = itertools.chain([plain], (f"{plain}-{n}" for n in itertools.count(2)))
        found[volume] = next(name for name in names if name not in taken)
    return found


def volume_records(seen: Survey) -> list[dict[str, Any]]:
    """One record for each volume, the busiest first."""
    records = []
    for name, volume in seen.volumes.items():
        window = seen.window(volume)
        seconds = window.seconds
        records.append(
            {
                "volume": name,
                "requests": volume.requests,
                "read_fraction": window.reads / volume.requests,
                "requests_per_second": volume.requests / seconds if seconds else None,
                "requests_in_busiest_second": volume.per_second,
                "bytes_per_second": window.bytes / seconds if seconds else None,
                "request_bytes": window.bytes / volume.requests,
                "touched_bytes": window.touched_bytes,
                "end_bytes": volume.end_bytes,
                "sequential_share": window.sequential_share,
            }
        )
    return sorted(records, key=lambda each: -int(each["requests"] or 0))
