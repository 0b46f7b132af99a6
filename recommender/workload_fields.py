"""A workload profile with some of its fields replaced by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.workload import WorkloadProfile, parse_workload


def with_fields(
    workload: WorkloadProfile, changes: Mapping[str, Any], where: str
) -> WorkloadProfile:
    """The same question with fields replaced.

    Args:
        workload: The question.
        changes: Dotted field -> value, such as `sla.latency_p99_ns_max`.
        where: Names their origin in messages.

    Raises:
        InputError: A change is not what it must be; names the field.
    """
    if not changes:
        return workload
    data = workload.model_dump(exclude_unset=True)
    for dotted, value in changes.items():
        *sections, name = dotted.split(".")
        place = data
        for section in sections:
            inner = place.setdefault(section, {})
            if inner is None:
                inner = place[section] = {}
            if not isinstance(inner, dict):
                raise InputError(f"{where}: {dotted}: {section} has no fields", field=dotted)
            place = inner
        place[name] = value
    return parse_workload(data, where)
