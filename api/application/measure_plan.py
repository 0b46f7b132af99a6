"""Plans of `iojoule measure` for configurations that an answer names."""

from __future__ import annotations

from typing import Any

import tomlkit

from iojoule.api.application.adaptive_campaign import at_demand
from iojoule.datasets.schema import Configuration
from iojoule.measure.campaign.plan import KNOBS
from iojoule.measure.point import Point
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.response import MeasureNext


def sweep_of(name: str, configuration: Configuration, question: WorkloadProfile) -> dict[str, Any]:
    """A sweep of one point: the question's workload, at its demand, with a configuration."""
    point = at_demand(Point(question.workload, configuration), question)
    fields: dict[str, Any] = {}
    for section in (point.workload, point.configuration):
        fields |= section.model_dump(mode="json", exclude_none=True)
    knobs = {key: value for key, value in fields.items() if key in KNOBS}
    if "request_bytes_mix" in knobs:
        knobs.pop("request_bytes", None)
    return {"name": name, **knobs}


def next_plan(found: MeasureNext, question: WorkloadProfile) -> str:
    """What to measure next as a plan file."""
    sweeps = [
        sweep_of(f"{place}-{one.role}", one.configuration, question)
        for place, one in enumerate(found.runs, start=1)
    ]
    plan = {
        "schema_version": 1,
        "name": "next",
        "title": f"{question.name}: what makes the saving surer",
        "repeats": found.repeats,
        "sweep": sweeps,
    }
    return tomlkit.dumps(plan)
