"""Every kind of change, in the order in which they are made."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import AskedConditions
from iojoule.recommender.factors import stated_factors
from iojoule.recommender.request import Scope, WorkloadProfile, with_fields
from iojoule.recommender.sla import POWER_MAXIMA, parse_sla
from iojoule.recommender.what_if.situation import HOUR_SECONDS, PowerCap, ProfileOf, Situation
from iojoule.recommender.workloads.sizes import shares_of, stands_for
from iojoule.sim.formats.building import did_you_mean
from iojoule.sim.modified_drive import FRIENDLY, SHORT

Apply = Callable[[Situation, Mapping[str, Any], ProfileOf], Situation]
"""Takes a situation, the fields of its kind with their new values, and what finds profiles."""

ApplyOne = Callable[[Situation, str, Any, ProfileOf], Situation]
"""Likewise one field and its value."""


def one_by_one(apply: ApplyOne) -> Apply:
    """Makes the changes of a kind in the order of their names."""

    def apply_all(
        situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf
    ) -> Situation:
        for field in sorted(values):
            situation = apply(situation, field, values[field], profile_of)
        return situation

    return apply_all


@dataclass(frozen=True)
class Kind:
    """One kind of change.

    Attributes:
        names: What it is called: a field, or where it ends in a dot the beginning of one.
        says: What it changes, with an example of a value.
        apply: Changes the situation; raises InputError with the field where it cannot.
        simulated: Whether an answer needs the simulator.
    """

    names: tuple[str, ...]
    says: str
    apply: Apply
    simulated: bool = False

    def takes(self, field: str) -> bool:
        """Whether a field is of this kind."""
        return any(
            field.startswith(name) if name.endswith(".") else field == name for name in self.names
        )


def number(field: str, value: Any, *, least: float = 0.0) -> float:
    """The value as a number.

    Raises:
        InputError: It is none, or not above `least`.
    """
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not least < value <= sys.float_info.max:
        raise InputError(f"{field}: {value!r} must be a number above {least:g}", field=field)
    return float(value)


def whole(field: str, value: Any) -> int:
    """The value as a whole number from 1 on.

    Raises:
        InputError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        raise InputError(f"{field}: {value!r} must be a whole number", field=field)
    if value < 1:
        raise InputError(f"{field}: {value!r} must be 1 or more", field=field)
    return int(value)


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


def _apply(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    if not isinstance(value, str):
        raise InputError(f"{field}: {value!r} must name a drive or a profile's file", field=field)
    # Firmware, link, wear are of the drive that goes; the host stays, and what is asked about.
    stated = situation.conditions
    kept = AskedConditions(host_id=stated.host_id, interval_for=stated.interval_for)
    return replace(situation, profile=profile_of(value), conditions=kept)


DRIVE = Kind(("drive",), "another drive or profile file: drive=samsung-860-pro", one_by_one(_apply))


def _apply_drives(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    return replace(situation, drives=whole(field, value))


DRIVES = Kind(("drives",), "how many drives share the load: drives=2", one_by_one(_apply_drives))


PREFIX = "geometry."


def _preset(situation: Situation, field: str, value: Any, profile_of: ProfileOf) -> Situation:
    if not isinstance(value, str):
        raise InputError(f"{field}: {value!r} must name a simulated drive", field=field)
    return replace(situation, preset=value)


def _apply_geometry(
    situation: Situation, field: str, value: Any, profile_of: ProfileOf
) -> Situation:
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
    one_by_one(_apply_geometry),
    simulated=True,
)


_WHILE = re.compile(r"\s+for\s+([0-9.]+)\s*(s|min|h)\s*$")
_SECONDS = {"s": 1.0, "min": 60.0, "h": HOUR_SECONDS}
_WATTS = re.compile(r"\s*([0-9.]+)\s*W\s*")


def _apply_power_cap(
    situation: Situation, field: str, value: Any, profile_of: ProfileOf
) -> Situation:
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
    one_by_one(_apply_power_cap),
)


def _apply_price(
    situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf
) -> Situation:
    known = situation.workload.factors
    stated: dict[str, Any] = {}
    for field, value in sorted(values.items()):
        if field != "price":
            stated[field] = value
        elif isinstance(value, str):
            stated |= {f"factors.{name}": one for name, one in stated_factors(value).items()}
        elif known.currency is None:
            raise InputError(
                f"price: {value!r} has no currency; write it as 0.30EUR/kWh", field="price"
            )
        else:
            stated["factors.electricity_price_per_kwh"] = number("price", value)
    return replace(situation, workload=with_fields(situation.workload, stated, "change"))


PRICE = Kind(
    ("price", "factors."),
    "price of electricity, or another factor: price=0.30EUR/kWh, factors.drive_price=120",
    _apply_price,
)


def _apply_sla(situation: Situation, values: Mapping[str, Any], profile_of: ProfileOf) -> Situation:
    """A text replaces the whole SLA, and single bounds come on top of it."""
    workload = situation.workload
    for field in sorted(values):
        value = values[field]
        if field == "sla" and isinstance(value, str):
            value = parse_sla(value, workload.sla.confidence).model_dump(exclude_unset=True)
        workload = with_fields(workload, {field: value}, "change")
    return replace(situation, workload=workload)


SLA = Kind(
    ("sla", "sla."), "what must hold: 'sla=p99 < 1 ms', sla.latency_p99_ns_max=1e6", _apply_sla
)


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
    mix = situation.workload.workload.request_bytes_mix
    if mix is not None and not stands_for(shares_of(mix), useful):
        changed["workload.request_bytes_mix"] = None  # it has the mean of before
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


KINDS: tuple[Kind, ...] = (
    DRIVE,
    PRESET,
    GEOMETRY,
    FIELD,
    MIX,
    SIZE,
    DEMAND,
    GROWTH,
    SLA,
    DRIVES,
    PRICE,
    CAP,
)
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
    raise InputError(
        f"{field}: nothing of that name can be changed; {did_you_mean(field, names)}", field=field
    )


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
