"""Another drive on the same host: the profile of another model, or of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions
from iojoule.recommender.what_if.changes.kind import Kind, one_by_one
from iojoule.recommender.what_if.situation import ProfileOf, Situation


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    if not isinstance(value, str):
        raise InputError(f"{field}: {value!r} must name a drive or a profile's file", field=field)
    # Firmware, link, wear are of the drive that goes; the host stays, and what is asked about.
    stated = situation.conditions
    kept = AskedConditions(host_id=stated.host_id, interval_for=stated.interval_for)
    return replace(situation, profile=profile_of(value), conditions=kept)


DRIVE = Kind(("drive",), "another drive or profile file: drive=samsung-860-pro", one_by_one(_apply))
