"""Any file that says what a workload does, by its first lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import tomlkit

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import (
    GAP_SECONDS,
    ONE_TIME,
    IoSource,
    IoSummary,
    parse_summary,
    short_or_pooled,
)
from iojoule.recommender.request import WorkloadProfile, lines_of, read_text
from iojoule.recommender.workloads.statistics import (
    STATISTICS,
    statistics_source,
    statistics_summary,
)
from iojoule.recommender.workloads.trace import (
    EVENT,
    Trace,
    parse_blkparse,
    parse_fio_iolog,
    parse_mqsim_trace,
    window_of,
)


class SourceKind(StrEnum):
    """What a file is."""

    FIO_JOB = "fio-job"
    FIO_IOLOG = "fio-iolog"
    BLKPARSE = "blkparse"
    MQSIM_TRACE = "mqsim-trace"
    IOSTAT = "iostat"
    SAR = "sar"
    PG_STAT_IO = "pg_stat_io"
    PROMETHEUS = "prometheus"
    SMARTCTL = "smartctl"
    OBSERVED = "observed"


_PARSERS: dict[SourceKind, Callable[[str, str], tuple[Trace, tuple[str, ...]]]] = {
    SourceKind.FIO_IOLOG: parse_fio_iolog,
    SourceKind.BLKPARSE: parse_blkparse,
    SourceKind.MQSIM_TRACE: parse_mqsim_trace,
}
_FIVE_NUMBERS = re.compile(r"\s*\d+(\s+\d+){4}\s*$")


def kind_of(text: str, path: Path) -> SourceKind:
    """What a file is, from its first line that is neither empty nor a comment.

    Raises:
        InputError: It is none of `SourceKind`.
    """
    if (counted := statistics_source(text)) is not None:
        return SourceKind(counted.value)
    for line in lines_of(text):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        if line.startswith("fio version"):
            return SourceKind.FIO_IOLOG
        if line.lstrip().startswith("{"):
            return SourceKind.OBSERVED
        if _FIVE_NUMBERS.match(line):
            return SourceKind.MQSIM_TRACE
        if EVENT.match(line):
            return SourceKind.BLKPARSE
        if line.lstrip().startswith("["):
            return SourceKind.FIO_JOB
        break
    raise InputError(
        f"{path}: is none of {', '.join(SourceKind)} as far as its first line tells; name what it "
        "is with --as"
    )


def summary_of(
    path: Path,
    text: str,
    kind: SourceKind,
    *,
    gap_seconds: float = GAP_SECONDS,
    drive: str | None = None,
) -> IoSummary:
    """What a trace, counters, or an observation that was stored say.

    Raises:
        InputError: A line that is none of its kind; names it.
    """
    counted = next((each for each in STATISTICS if each.value == kind.value), None)
    if counted is not None:
        return statistics_summary(counted, text, str(path), path.stem, drive)
    if drive is not None:
        raise InputError(f"{path}: a {kind} is of one drive: leave --drive out", field="drive")
    if kind is SourceKind.OBSERVED:
        return parse_summary(text, str(path))
    trace, notes = _PARSERS[kind](text, str(path))
    window = window_of(trace, gap_seconds)
    if trace.at_seconds is not None and window.seconds is None:
        notes = (*notes, ONE_TIME)
    return IoSummary(
        source=IoSource(kind.value),
        name=path.stem,
        windows=(window,),
        notes=(*notes, *short_or_pooled(window.seconds, 0)),
    )


@dataclass(frozen=True)
class SourceFile:
    """A file and what it is.

    Attributes:
        path: Where.
        text: All of it.
        kind: What it is.
    """

    path: Path
    text: str
    kind: SourceKind


def open_source(path: Path, kind: SourceKind | None = None) -> SourceFile:
    """Read a file and tell what it is, unless `kind` says so.

    Raises:
        InputError: It cannot be read, or is nothing known.
    """
    text = read_text(path)
    return SourceFile(path, text, kind or kind_of(text, path))


def as_data(profile: WorkloadProfile) -> dict[str, Any]:
    """What the profile states, as plain data; what it leaves open is left out."""
    data: dict[str, Any] = profile.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    return {"name": profile.name, **data}


def as_toml(profile: WorkloadProfile) -> str:
    """The profile as TOML."""
    data = as_data(profile)
    notes = data.pop("notes", [])
    document = tomlkit.document()
    document["name"] = data.pop("name")
    if notes:
        listed = tomlkit.array()
        listed.extend(notes)
        document["notes"] = listed.multiline(multiline=True)
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    for name, value in data.items():
        if name not in tables:
            document[name] = value
    for name, table in tables.items():
        if table:
            document[name] = table
    return tomlkit.dumps(document)


def as_json(profile: WorkloadProfile) -> str:
    """The profile as JSON."""
    return json.dumps(as_data(profile), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
