"""A power cap for a while: watts, or a text such as `device power <= 6 W for 1 h`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.recommender.sla import POWER_MAXIMA
from iojoule.recommender.sla_text import parse_sla
from iojoule.recommender.what_if.changes.kind import Kind, number, one_by_one
from iojoule.recommender.what_if.situation import HOUR_SECONDS, PowerCap, ProfileOf, Situation
from iojoule.recommender.workload import Scope

_WHILE = re.compile(r"\s+for\s+([0-9.]+)\s*(s|min|h)\s*$")
_SECONDS = {"s": 1.0, "min": 60.0, "h": HOUR_SECONDS}
_WATTS = re.compile(r"\s*([0-9.]+)\s*W\s*")


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    cap = read(field, value) if isinstance(value, str) else PowerCap(watts=number(field, value))
    return replace(situation, cap=cap)


def read(field: str, text: str) -> PowerCap:
    """The cap that a text says.

    Raises:
        InputError: It says none; the message shows how to write it.
    """
    last = _WHILE.search(text)
    said = text if last is None else text[: last.start()]
    seconds = HOUR_SECONDS if last is None else float(last[1]) * _SECONDS[last[2]]
    plain = _WATTS.fullmatch(said)
    if plain is not None:
        return PowerCap(watts=number(field, float(plain[1])), seconds=seconds)
    bounds = parse_sla(said).bounds()
    name, *more = bounds
    if more or name not in POWER_MAXIMA or name.startswith("cpu_"):
        raise InputError(
            f"{field}: {text!r}: write a cap as in '6 W for 1 h' or 'device power <= 6 W for 1 h'",
            field=field,
        )
    scope = Scope(name.removesuffix("_power_watts_max"))
    return PowerCap(watts=bounds[name], seconds=seconds, scope=scope)


CAP = Kind(
    ("cap",),
    "a power cap for a while: cap=6, 'cap=device power <= 6 W for 1 h'",
    one_by_one(_apply),
)
