"""Another number of drives, which share the load evenly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iojoule.recommender.what_if.changes.kind import Kind, one_by_one, whole
from iojoule.recommender.what_if.situation import ProfileOf, Situation


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    return replace(situation, drives=whole(field, value))


DRIVES = Kind(("drives",), "how many drives share the load: drives=2", one_by_one(_apply))
