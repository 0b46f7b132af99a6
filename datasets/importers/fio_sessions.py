"""Which runs of fio were made in one sitting: by folder, host, drive and time.

A session is one sitting with one drive and one host. The names of folders that say only what was
swept (`4k`, `randread`, `randrw75`, `qd32`, `numjobs-4`) do not part it, a pause of hours does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from iojoule.datasets.importers.fio_file import FioFile

PAUSE_SECONDS = 6 * 3600.0
"""A longer time without a run ends a sitting: the public sweeps pause for minutes, and a night
apart a drive has another temperature and another state."""

_SWEPT = re.compile(
    r"((rw|bs|qd|(io)?depth|(num)?jobs)[-_=]?)?(\d+[kmg]?i?b?|(rand)?(read|write|rw)\d*)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Origin:
    """Where a run comes from.

    Attributes:
        folder: Without what was swept; empty for a file named directly.
        host: Of a client/server run.
        drive: The drives by their nodes; empty where none is named.
        ended_seconds: When it ended, in Unix time; None = unknown.
    """

    folder: str
    host: str | None
    drive: str
    ended_seconds: float | None


def origin(file: FioFile, drives: frozenset[str]) -> Origin:
    """Where a run comes from."""
    return Origin(
        _folder(file.series or ""), file.host, "+".join(sorted(drives)), file.run.ended_seconds
    )


def _folder(series: str) -> str:
    parts = list(PurePath(series).parts)
    while len(parts) > 1 and _SWEPT.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts)


def sessions(origins: Sequence[Origin]) -> list[str | None]:
    """The name of the session of each run; None where nothing tells one from another."""
    hosts = {host: number for number, host in enumerate(dict.fromkeys(o.host for o in origins), 1)}
    groups: dict[tuple[str, str | None, str], list[int]] = {}
    for index, each in enumerate(origins):
        groups.setdefault((each.folder, each.host, each.drive), []).append(index)
    names: list[str | None] = [None] * len(origins)
    for (folder, host, drive), own in groups.items():
        place = [folder] if folder else []
        place += [f"host {hosts[host]}"] if host is not None else []
        place += [drive] if drive else []
        for day, sitting in _sittings(origins, own):
            for index in sitting:
                names[index] = " ".join([*place, *([day] if day else [])]) or None
    return names


def _sittings(origins: Sequence[Origin], own: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Runs of one place, apart where hours lie between them, with the day each sitting began."""
    dated = sorted((o, i) for i in own if (o := origins[i].ended_seconds) is not None)
    undated = [index for index in own if origins[index].ended_seconds is None]
    sittings: list[list[tuple[float, int]]] = []
    for moment, index in dated:
        if not sittings or moment - sittings[-1][-1][0] > PAUSE_SECONDS:
            sittings.append([])
        sittings[-1].append((moment, index))
    named: list[tuple[str, list[int]]] = [("", undated)] if undated else []
    days: set[str] = set()
    for sitting in sittings:
        began = datetime.fromtimestamp(sitting[0][0], UTC)
        day = f"{began:%Y-%m-%d}"
        day = f"{began:%Y-%m-%d %H:%M}" if day in days else day
        days.add(day)
        named.append((day, [index for _, index in sitting]))
    return named
