"""Demand classes for a fleet file from the volumes of a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import tomlkit

from iojoule.datasets.io_summary import IoWindow, short_or_pooled
from iojoule.datasets.traces.volumes import Survey, Volume
from iojoule.recommender.workloads.from_summary import from_summary

MOSTLY = 0.9
"""Share of requests from which on a volume reads, or writes, mostly."""

_SIZES = ((16 << 10, "small"), (128 << 10, "medium"))
_KEPT = ("operation", "read_fraction", "pattern", "useful_request_bytes")


def class_of(window: IoWindow) -> str:
    """Which class a volume belongs to: what it does mostly, and its mean request."""
    reads = window.reads / window.requests
    does = "read" if reads >= MOSTLY else "write" if reads <= 1 - MOSTLY else "mixed"
    mean = window.bytes / window.requests
    return f"{does}-{next((name for limit, name in _SIZES if mean <= limit), 'large')}"


def demand_classes(survey: Survey) -> str:
    """The `[[class]]` tables of a fleet file: demand is that of the busiest hour.

    Volumes of one class share its tables; the class's demand is the most that they move together in
    an hour, and what the whole trace moves on average stands beside it in a comment.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name, volume in survey.volumes.items():
        groups[class_of(survey.window(volume))].append(name)
    document = tomlkit.document()
    document.add(tomlkit.comment(f"Demand classes of a trace of the format {survey.form}:"))
    document.add(tomlkit.comment("add SLA bounds, and drives that hold the classes."))
    for note in short_or_pooled(survey.seconds, 0):
        document.add(tomlkit.comment(note))
    tables = tomlkit.aot()
    for name, members in sorted(groups.items()):
        tables.append(_table(survey, f"{survey.form}-{name}", members))
    document["class"] = tables
    return tomlkit.dumps(document)


def _table(survey: Survey, name: str, members: list[str]) -> tomlkit.items.Table:
    volumes = [survey.volumes[member] for member in members]
    first = survey.summary(members[0])
    windows = tuple(survey.window(volume) for volume in volumes)
    profile = from_summary(first.model_copy(update={"windows": windows, "notes": ()}))
    stated: Mapping[str, Any] = profile.workload.model_dump(mode="json", exclude_none=True)
    seconds = survey.seconds or 0.0
    total = sum(window.bytes for window in windows)
    mean = total / seconds if seconds else 0.0
    table = tomlkit.table()
    table["name"] = name
    demand = tomlkit.item(float(f"{max(_busiest(volumes, seconds), 1.0):.6g}"))
    demand.comment(
        f"the busiest hour of {len(members)} volume{'s' * (len(members) > 1)}; mean {mean:.3g}"
    )
    table["demand_bytes_per_second"] = demand
    inner = tomlkit.table(is_super_table=True)
    workload = tomlkit.table()
    for field in _KEPT:
        if field in stated:
            workload[field] = stated[field]
    inner["workload"] = workload
    table["workload"] = inner
    return table


def _busiest(volumes: list[Volume], seconds: float) -> float:
    """Most bytes a second of an hour; the first counts for its own length if it is not over.

    A later one that is not over counts for at least ten minutes: less tells no hour.
    """
    together: dict[int, int] = defaultdict(int)
    for volume in volumes:
        for hour, moved in volume.hours.items():
            together[hour] += moved
    rates = []
    for hour, moved in together.items():
        watched = seconds - 3600.0 * hour
        rates.append(moved / min(3600.0, max(watched, 600.0 if hour else 1e-3)))
    return max(rates)
