"""The same drive built otherwise: channels, dies, flash, cache, link, whatever is simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.changes.kind import Kind, one_by_one
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.sim.formats.building import did_you_mean
from iojoule.sim.modified_drive import FRIENDLY, SHORT

PREFIX = "geometry."


def _preset(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    if not isinstance(value, str):
        raise InputError(f"{field}: {value!r} must name a simulated drive", field=field)
    return replace(situation, preset=value)


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    name = field.removeprefix(PREFIX)
    if not name:
        raise InputError(f"{field}: names no field; {did_you_mean(name, [*FRIENDLY])}", field=field)
    if isinstance(value, list):
        value = tuple(value)
    kept = tuple(one for one in situation.geometry if one[0] != name)
    return replace(situation, geometry=(*kept, (name, value)))


PRESET = Kind(
    ("preset",),
    "the simulated drive that stands for this one: preset=my-drive.toml",
    one_by_one(_preset),
)
GEOMETRY = Kind(
    (PREFIX,),
    f"the drive built otherwise: geometry.channels=4 ({SHORT})",
    one_by_one(_apply),
    simulated=True,
)
