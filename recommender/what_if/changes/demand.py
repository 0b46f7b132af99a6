"""More, less or other work: growth, and the demand itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.changes.kind import Kind, number, one_by_one
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload import WorkloadProfile
from iojoule.recommender.workload_fields import with_fields

BYTES, OPERATIONS = "demand_bytes_per_second", "demand_operations_per_second"


def scaled(workload: WorkloadProfile, factor: float) -> WorkloadProfile:
    """The same question with so many times the demand; what asks for no rate stays as it is."""
    stated = workload.workload
    found = {
        f"workload.{name}": rate * factor
        for name in (BYTES, OPERATIONS)
        if (rate := getattr(stated, name)) is not None
    }
    return workload if factor == 1.0 else with_fields(workload, found, "growth")


def _growth(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    factor = number(field, value)
    if situation.workload.as_fast_as_possible:
        raise InputError(
            f"{field}: the workload runs as fast as possible, so that nothing grows; state a "
            f"demand ({BYTES})",
            field=field,
        )
    return replace(situation, workload=scaled(situation.workload, factor))


def _demand(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    stated = situation.workload.workload
    of_operations = field.endswith("iops")
    named, other = (OPERATIONS, BYTES) if of_operations else (BYTES, OPERATIONS)
    changed: dict[str, Any] = {f"workload.{named}": number(field, value)}
    if getattr(stated, other) is not None:
        changed[f"workload.{other}"] = None
    return replace(situation, workload=with_fields(situation.workload, changed, field))


DEMAND = Kind(
    ("demand", "demand_iops"),
    "useful bytes, or operations, a second: demand=500e6, demand_iops=60000",
    one_by_one(_demand),
)
GROWTH = Kind(("growth",), "times the demand: growth=1.5", one_by_one(_growth))
