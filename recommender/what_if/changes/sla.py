"""Another SLA, as a text or bound by bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from iojoule.recommender.sla_text import parse_sla
from iojoule.recommender.what_if.changes.kind import Kind
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.recommender.workload_fields import with_fields


def _apply(situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf) -> Situation:
    """A text replaces the whole SLA, and single bounds come on top of it."""
    workload = situation.workload
    for field in sorted(values):
        value = values[field]
        if field == "sla" and isinstance(value, str):
            value = parse_sla(value, workload.sla.confidence).model_dump(exclude_unset=True)
        workload = with_fields(workload, {field: value}, "change")
    return replace(situation, workload=workload)


SLA = Kind(("sla", "sla."), "what must hold: 'sla=p99 < 1 ms', sla.latency_p99_ns_max=1e6", _apply)
