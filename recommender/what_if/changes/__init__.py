"""Every kind of change, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.changes.demand import DEMAND, GROWTH
from iojoule.recommender.what_if.changes.drive import DRIVE
from iojoule.recommender.what_if.changes.drives import DRIVES
from iojoule.recommender.what_if.changes.geometry import GEOMETRY, PRESET
from iojoule.recommender.what_if.changes.kind import Kind
from iojoule.recommender.what_if.changes.power_cap import CAP
from iojoule.recommender.what_if.changes.price import PRICE
from iojoule.recommender.what_if.changes.sla import SLA
from iojoule.recommender.what_if.changes.work import FIELD, MIX, SIZE
from iojoule.recommender.what_if.situation import ProfileOf, Situation
from iojoule.sim.formats.building import did_you_mean

KINDS: tuple[Kind, ...] = (
    DRIVE, PRESET, GEOMETRY, FIELD, MIX, SIZE, DEMAND, GROWTH, SLA, DRIVES, PRICE, CAP,
)  # fmt: skip
"""What is changed later sees what was changed before: growth is that of the changed demand."""


def kind_of(field: str) -> Kind:
    """The kind of change that a field names.

    Raises:
        InputError: There is none; names the closest.
    """
    for kind in KINDS:
        if kind.takes(field):
            return kind
    names = [name for kind in KINDS for name in kind.names]
    raise InputError(f"{field}: nothing of that name can be changed; {did_you_mean(field, names)}",
                     field=field)  # fmt: skip


def changed(situation: Situation, changes: Mapping[str, Any], profile_of: ProfileOf) -> Situation:
    """The situation with changes, the same in whatever order they are stated.

    Args:
        situation: To begin with.
        changes: Field -> new value.
        profile_of: Finds other drives.

    Raises:
        InputError: There is no such field, or it cannot have the value.
    """
    of_kind: dict[int, dict[str, Any]] = {}
    for field, value in changes.items():
        of_kind.setdefault(KINDS.index(kind_of(field)), {})[field] = value
    for place in sorted(of_kind):
        situation = KINDS[place].apply(situation, of_kind[place], profile_of)
    return situation
