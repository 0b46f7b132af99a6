"""Other work: the mix of reads and writes, the size of requests, any field of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.changes.kind import Kind, one_by_one, whole
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload_fields import with_fields


def _mix(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{field}: {value!r} must be a share of reads, 0 to 1", field=field)
    alone = {1.0: "read", 0.0: "write"}.get(float(value))
    changed = {
        "workload.operation": alone or "mixed",
        "workload.read_fraction": None if alone else float(value),
    }
    return replace(situation, workload=with_fields(situation.workload, changed, field))


def _size(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    """What the application asks for at a time; requests of today that were as large follow."""
    useful, today = whole(field, value), situation.workload.current.request_bytes
    before = situation.workload.workload.useful_request_bytes
    changed: dict[str, Any] = {"workload.useful_request_bytes": useful}
    if today is not None and (today == before or today < useful):
        changed["current.request_bytes"] = useful
    return replace(situation, workload=with_fields(situation.workload, changed, field))


def _fields(situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf) -> Situation:
    return replace(situation, workload=with_fields(situation.workload, values, "change"))


MIX = Kind(("mix",), "share of reads: mix=0.5", one_by_one(_mix))
SIZE = Kind(("size",), "useful bytes of a request: size=16384", one_by_one(_size))
FIELD = Kind(
    ("workload.", "current.", "free.", "state.", "concurrency_max", "scope", "objective"),
    "a field of the workload profile: workload.pattern=sequential",
    _fields,
)
