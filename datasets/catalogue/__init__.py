"""The catalogue of SSD models: what is published about each, with a source per fact.

One TOML file per model in `drives/`, named by its id. A fact is a published figure; a
power-state table says what a drive declares, which is not what it draws. Nothing here is
fitted: predictions need a device profile.

A declared cap is not a measured power. `max_power_watts` is what the drive's descriptor promises
never to exceed; what it draws is a fact of its own whose metric begins with `measured_`. The
Samsung 980 PRO declares 8.49 W in its first state and peaks at 6 W; it declares 0.04 W asleep and
draws 1.2 W.

Facts contradict each other only where physics or the meaning of the words rules them out: a mean
above a maximum, a link that cannot carry a rated rate, idle power above active power. Bounds ("up
to", "at most") are compared only with what lies on their other side. Power-state tables are kept
as drives declare them, so that only their interface and the order of their caps are checked.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from iojoule.datasets.errors import InputError, SchemaVersionError, UnknownDeviceError
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.links import LANE_BYTES_PER_SECOND, LINK_LANES, SATA_BYTES_PER_SECOND, Medium

Interface = Literal["nvme", "sata", "sas", "unknown"]
DriveClass = Literal["consumer", "datacentre", "industrial", "emulated", "unknown"]
Unit = Literal[
    "W",
    "J",
    "V",
    "A",
    "s",
    "bytes",
    "bytes/s",
    "IOPS",
    "1/d",
    "count",
    "fraction",
    "celsius",
    "rpm",
    "text",
    "MB/s",  # only where the published megabyte is ambiguous, so that converting would invent
]

Text = Annotated[StrictStr, Field(min_length=1, pattern=r"\S")]
Watts = Annotated[float, Field(ge=0, strict=True)]
Microseconds = Annotated[int, Field(ge=0, strict=True)]
Rank = Annotated[int, Field(ge=0, le=31, strict=True)]
"""Relative performance rank, 0 best; five bits in the descriptor (NVMe Base, Identify)."""


class Record(BaseModel):
    """Common rules: unknown keys, NaN and infinities are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Fact(Record):
    """One published or measured figure of a drive.

    Attributes:
        metric: What the figure is, in snake case. Figures measured by others than the
            vendor begin with `measured_`.
        value: A number in `unit`, or text where `unit` is "text".
        unit: SI unit (bytes stay bytes); the published spelling is in `note` if it was converted.
        source: Where the figure is published.
        note: Conditions, bounds ("up to") and contradictions.
    """

    metric: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
    value: StrictInt | StrictFloat | StrictStr
    unit: Unit
    source: Text
    note: Text | None = None

    @model_validator(mode="after")
    def _value_fits_unit(self) -> Self:
        if isinstance(self.value, str):
            if self.unit != "text":
                raise ValueError(f"value is text but unit is {self.unit}; write a bare number")
        elif self.unit == "text":
            raise ValueError("value is a number but unit is text; name the unit of the number")
        elif self.value < 0 and self.unit != "celsius":
            raise ValueError(f"value {self.value} {self.unit} is negative; no such quantity is")
        return self


class PowerState(Record):
    """One NVMe power-state descriptor, as the drive declares it.

    What drives declare is kept as it is, also where it cannot be true: active power of 0 or
    above the cap, equal caps in every state, ranks all 0, long latencies of operational states.

    Attributes:
        index: Number of the state, 0 to 31 (NVMe Base specification).
        max_power_watts: Declared cap; not a measured power.
        operational: Whether the drive serves I/O in this state.
        entry_latency_us: Declared time to enter, microseconds; absent where not published.
        exit_latency_us: Declared time to leave, microseconds; absent where not published.
        relative_read_throughput: Rank of the state, 0 best; the three others alike.
        idle_power_watts: Declared idle power.
        active_power_watts: Declared active power.
        firmware: Firmware that declares this table, where the source says so.
    """

    index: Annotated[int, Field(ge=0, le=31, strict=True)]
    max_power_watts: Watts
    operational: StrictBool
    entry_latency_us: Microseconds | None = None
    exit_latency_us: Microseconds | None = None
    relative_read_throughput: Rank | None = None
    relative_read_latency: Rank | None = None
    relative_write_throughput: Rank | None = None
    relative_write_latency: Rank | None = None
    idle_power_watts: Watts | None = None
    active_power_watts: Watts | None = None
    firmware: Text | None = None
    source: Text
    note: Text | None = None


_RISING_WATTS = ("standby_power", "idle_power", "operating_power")
"""Facts of a disk whose watts cannot fall from one to the next: what spins draws more than what
stands still, and what seeks more than what only spins."""

_OF_PCIE = ("pcie_generation", "pcie_lanes")


class Drive(Record):
    """Everything the catalogue knows of one drive model.

    Attributes:
        id: Name for the command line and of the file, a lower-case slug.
        model: Full name.
        aliases: Other spellings: identify strings, part numbers, names used in the data.
        medium: Flash and other memories without moving parts, or the platters of a hard disk.
        drive_class_source: What the class rests on.
        facts: In order of preference where one metric occurs more than once.
        power_states: Declared states; empty where no table is known.
    """

    id: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    model: Text
    aliases: tuple[Text, ...] = ()
    vendor: Text
    interface: Interface
    medium: Medium = "solid_state"
    drive_class: DriveClass
    drive_class_source: Text
    note: Text | None = None
    facts: tuple[Fact, ...] = ()
    power_states: tuple[PowerState, ...] = ()

    @field_validator("power_states")
    @classmethod
    def _one_row_per_state(cls, states: tuple[PowerState, ...]) -> tuple[PowerState, ...]:
        twice = [index for index, n in Counter(s.index for s in states).items() if n > 1]
        if twice:
            raise ValueError(f"index {twice[0]} occurs more than once; keep one row per state")
        return states

    @model_validator(mode="after")
    def _fits_its_interface(self) -> Self:
        """A drive that speaks no NVMe has no NVMe power states, and a disk no PCIe link."""
        if self.power_states and (self.medium == "disk" or self.interface in ("sata", "sas")):
            kind = "a hard disk" if self.medium == "disk" else f"attached by {self.interface}"
            raise ValueError(
                f"power_states: {self.model} is {kind}, which has no NVMe power states; state its "
                "standby, idle and link power as facts"
            )
        if self.medium != "disk":
            return self
        if self.interface == "nvme":
            raise ValueError(
                f"interface: {self.model} is a hard disk; disks are attached by sata or sas"
            )
        link = next(filter(None, map(self.fact, _OF_PCIE)), None)
        if link is not None:
            raise ValueError(f"facts: {self.model} is a hard disk, which has no {link.metric}")
        stated = [fact for fact in map(self.fact, _RISING_WATTS) if fact is not None]
        for lower, higher in pairwise(stated):
            if float(lower.value) > float(higher.value):
                raise ValueError(
                    f"facts: {lower.metric} {lower.value} W of {self.model} is above its "
                    f"{higher.metric} {higher.value} W; correct one of them"
                )
        return self

    def fact(self, metric: str) -> Fact | None:
        """Return the preferred fact of that metric, or None where nothing is known."""
        return next((fact for fact in self.facts if fact.metric == metric), None)

    @property
    def operational_states(self) -> tuple[PowerState, ...]:
        """The states in which the drive serves I/O, by index."""
        states = (state for state in self.power_states if state.operational)
        return tuple(sorted(states, key=lambda state: state.index))


IDLE = ("idle_power", "idle_power_typical", "idle_power_apst", "measured_idle_power_ps0")
"""Metrics of mean power without requests, W."""

ASLEEP = ("sleep_power", "slumber_power", "standby_power")
"""Metrics of power in a state that serves nothing, W."""

ACTIVE = (
    "active_power",
    "active_power_typical",
    "active_power_read",
    "active_power_write",
    "typical_read_power",
    "typical_write_power",
    "max_mean_active_write_power",
)
"""Metrics of mean power under load, W."""

CAPS = ("max_power", "max_power_ps0", "declared_ps0_max_power", "tdp")
"""Metrics of power that is never exceeded, W."""

_RATE_UNITS = {"bytes/s": 1.0, "MB/s": 1e6}
_IOPS_BYTES = 4096
_SLACK = 1.001
"""Rounding of published figures."""


def check_consistent(drive: Drive, where: str) -> None:
    """Refuse facts that contradict each other.

    Args:
        drive: As read.
        where: Names the file in the error.

    Raises:
        InputError: Names the first contradiction with the places of both facts and the remedy.
    """
    first = next(contradictions_of(drive), None)
    if first is not None:
        field, message = first
        raise InputError(f"{where}: {field}: {message}", field=field)


def contradictions_of(drive: Drive) -> Iterator[tuple[str, str]]:
    """Each contradiction as the place of one of its facts, and what is wrong with the remedy."""
    yield from _interface(drive)
    yield from _link(drive)
    yield from _watts(drive)
    yield from _writes(drive)
    yield from _depths(drive)
    yield from _temperatures(drive)


def _interface(drive: Drive) -> Iterator[tuple[str, str]]:
    if drive.interface in ("sata", "sas") and drive.power_states:
        yield (
            "power_states",
            (
                f"a {drive.interface.upper()} drive has no NVMe power states; remove them, or "
                "correct interface"
            ),
        )
    for index, fact in _of(drive, ("pcie_generation",)):
        if drive.interface in ("sata", "sas"):
            yield (
                _place(index),
                (
                    f"a {drive.interface.upper()} drive has no PCIe generation; remove the fact, "
                    "or correct interface"
                ),
            )
        elif int(float(fact.value)) not in LANE_BYTES_PER_SECOND:
            known = ", ".join(map(str, LANE_BYTES_PER_SECOND))
            yield (
                _place(index),
                f"PCIe generation {fact.value} is not known; write one of {known}",
            )


def _link(drive: Drive) -> Iterator[tuple[str, str]]:
    """Rated figures above what the link moves, whatever the drive behind it can do."""
    generation = next(_of(drive, ("pcie_generation",)), None)
    lanes = next(_of(drive, ("pcie_lanes",)), None)
    if drive.interface == "sata":
        link, name = SATA_BYTES_PER_SECOND, "SATA at 6 Gbit/s"
    elif generation is None or int(float(generation[1].value)) not in LANE_BYTES_PER_SECOND:
        return
    else:
        number = int(float(generation[1].value))
        count = LINK_LANES if lanes is None else int(float(lanes[1].value))
        link, name = LANE_BYTES_PER_SECOND[number] * count, f"PCIe {number}.0 x{count}"
    for index, fact in enumerate(drive.facts):
        rate = _rate(fact)
        if rate is not None and rate > _SLACK * link:
            yield (
                _place(index),
                (
                    f"{fact.metric} of {_shown(fact)} is {rate / 1e9:.4g} GB/s, but {name} carries "
                    f"{link / 1e9:.4g} GB/s at most; correct the figure, or the link"
                ),
            )


def _watts(drive: Drive) -> Iterator[tuple[str, str]]:
    caps = [
        _PowerCap(f"facts[{index}]", fact.metric, float(fact.value))
        for index, fact in _of(drive, CAPS)
    ]
    states = drive.operational_states
    if states and states[0].index == 0:
        place = next(i for i, state in enumerate(drive.power_states) if state.index == 0)
        caps.append(
            _PowerCap(f"power_states[{place}]", "max_power_watts", states[0].max_power_watts)
        )
    for metrics, others, what in (
        (IDLE, ACTIVE, "idle power above active power"),
        (ASLEEP, IDLE, "sleep power above idle power"),
        (ASLEEP, ACTIVE, "sleep power above active power"),
    ):
        yield from _above(drive, metrics, others, what)
    for index, fact in _of(drive, (*IDLE, *ACTIVE)):
        for cap in caps:
            if float(fact.value) > _SLACK * cap.watts:
                yield (
                    _place(index),
                    (
                        f"{fact.metric} of {_shown(fact)} is above {cap.place}, {cap.name} of "
                        f"{cap.watts:g} W, which is never exceeded; correct one of them"
                    ),
                )


class _PowerCap:
    """A declared maximum with its place."""

    def __init__(self, place: str, name: str, watts: float) -> None:
        self.place, self.name, self.watts = place, name, watts


def _writes(drive: Drive) -> Iterator[tuple[str, str]]:
    """A steady rate is what is left of the burst rate."""
    for name in ("sequential_write_throughput", "random_write_4k_iops", "random_write_iops"):
        burst = [f"{name}_burst", f"{name}_max"]
        if drive.drive_class != "datacentre":  # whose sheets rate writes as steady
            burst.append(name)
        yield from _above(drive, (f"{name}_steady",), burst, "steady rate above the burst rate")


def _depths(drive: Drive) -> Iterator[tuple[str, str]]:
    """One request at a time is not faster than many."""
    for name in ("read", "write"):
        many = tuple(f"random_{name}_4k_iops{end}" for end in ("_max", "_burst", ""))
        single = (f"random_{name}_4k_qd1_iops",)
        # a steady rate of many may lie below the burst rate of one
        if name == "write" and drive.drive_class == "datacentre":
            many = many[:2]
        yield from _above(drive, single, many, "rate at depth 1 above the highest rate")


def _temperatures(drive: Drive) -> Iterator[tuple[str, str]]:
    yield from _above(
        drive,
        ("operating_temperature_min",),
        ("operating_temperature_max",),
        "least operating temperature above the highest",
    )


def _above(
    drive: Drive, lower: Sequence[str], upper: Sequence[str], what: str
) -> Iterator[tuple[str, str]]:
    """Facts of `lower` that are above one of `upper`."""
    for index, fact in _of(drive, lower):
        for other, bound in _of(drive, upper):
            if float(fact.value) > _SLACK * float(bound.value):
                yield (
                    _place(index),
                    (
                        f"{what}: {fact.metric} of {_shown(fact)}, but {bound.metric} of "
                        f"{_shown(bound)} (facts[{other}]); correct one of them"
                    ),
                )


def _of(drive: Drive, metrics: Sequence[str]) -> Iterator[tuple[int, Fact]]:
    """Facts of those metrics that are numbers, with their places."""
    for index, fact in enumerate(drive.facts):
        if fact.metric in metrics and not isinstance(fact.value, str):
            yield index, fact


def _rate(fact: Fact) -> float | None:
    """Bytes a second that a rated figure moves; None for other figures and measured ones."""
    if isinstance(fact.value, str) or fact.metric.startswith(("measured_", "linear_cost_")):
        return None
    if fact.unit in _RATE_UNITS and "throughput" in fact.metric:
        return float(fact.value) * _RATE_UNITS[fact.unit]
    if fact.unit == "IOPS" and "_4k_" in fact.metric:
        return float(fact.value) * _IOPS_BYTES
    return None


def _shown(fact: Fact) -> str:
    return f"{float(fact.value):g} {fact.unit}"


def _place(index: int) -> str:
    return f"facts[{index}].value"


SCHEMA_VERSION = 1
"""Version of the TOML form; a reader refuses anything newer."""

RecordT = TypeVar("RecordT", bound=Record)

# pydantic puts the tried member of a union at the end of a location
_UNION_TAGS = {"int", "float", "str"}
_ITEMS: dict[str, type[Record]] = {"facts": Fact, "power_states": PowerState}


def load_drive_file(path: str | Path) -> Drive:
    """Read one SSD model from a TOML file, shipped or the user's own.

    Raises:
        InputError: The file is missing or unreadable, not TOML, or a field is not what it must
            be; the message names file, field and remedy.
        SchemaVersionError: The file was written for a newer version of iojoule.
    """
    path = Path(path)
    try:
        text = read_input_text(path)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text; save it as a UTF-8 TOML file") from error
    return parse_record(text, str(path), Drive)


def parse_record(text: str, where: str, kind: type[RecordT]) -> RecordT:
    """Parse and check a TOML document; `where` names it in errors (raises as above)."""
    content = parse_toml(text, where)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        message, field = _explain(error, kind)
        raise InputError(f"{where}: {message}", field=field) from error


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML and take its `schema_version` off (raises as `load_drive_file`)."""
    try:
        content = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: is not valid TOML: {error}; correct that place") from error
    version = content.pop("schema_version", None)
    if type(version) is not int or version < 1:
        raise InputError(
            f"{where}: schema_version is {'missing' if version is None else repr(version)}; "
            f"write schema_version = {SCHEMA_VERSION} at the top",
            field="schema_version",
        )
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{where}: schema_version {version} is newer than {SCHEMA_VERSION}, the newest this "
            "iojoule reads; update iojoule",
            field="schema_version",
        )
    return content


def _explain(error: ValidationError, kind: type[Record]) -> tuple[str, str]:
    """Say the first fault in words, and how many more there are."""
    # a misspelt key is also a missing one: name the spelling first
    faults = sorted(error.errors(include_url=False), key=lambda f: f["type"] != "extra_forbidden")
    fault = faults[0]
    location = list(fault["loc"])
    if location and location[-1] in _UNION_TAGS:
        location.pop()
    field = _dotted(location)
    match fault["type"]:
        case "extra_forbidden":
            message = f"unknown key; {_allowed(str(location[-1]), location, kind)}"
        case "missing":
            message = "is missing; add it"
        case "tuple_type":
            message = f"must be a list: {location[-1]} = [...] or [[{location[-1]}]] tables"
        case _ if location != list(fault["loc"]):
            message = f"must be a number or text, but is {fault['input']!r}; correct it"
        case "value_error":
            message = str(fault["ctx"]["error"]) if "ctx" in fault else fault["msg"]
        case _:
            message = f"{fault['msg']}, but is {fault['input']!r}; correct it"
            message = message[0].lower() + message[1:]
    further = {_dotted([p for p in f["loc"] if p not in _UNION_TAGS]) for f in faults} - {field}
    more = f" (further faulty fields: {len(further)})" if further else ""
    return f"{field or 'the file'}: {message}{more}", field


def _dotted(location: list[Any]) -> str:
    """Spell ("facts", 2, "unit") as facts[2].unit; entries count from 0."""
    parts = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)
    return "".join(parts).lstrip(".")


def _allowed(key: str, location: list[Any], kind: type[Record]) -> str:
    """Name the key that was probably meant, else every key that may stand there."""
    owner = _ITEMS.get(str(location[0]), kind) if len(location) > 1 else kind
    known = list(owner.model_fields)
    close = get_close_matches(key, known, n=1)
    return f"did you mean {close[0]}?" if close else f"remove it, or use one of {', '.join(known)}"


class Reference(Record):
    """One such figure.

    Attributes:
        subject: The form factor or the table it belongs to.
        metric: What the figure is, in snake case.
        value: In watts.
        source: Where it is published.
    """

    subject: Text
    kind: Literal["form_factor", "power_state_rating"]
    metric: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
    value: Annotated[float, Field(ge=0, strict=True)]
    unit: Literal["W"]
    source: Text


class _References(Record):
    references: tuple[Reference, ...]


@cache
def load_references() -> tuple[Reference, ...]:
    """Return the figures in the order of the file (read once per process)."""
    file = files("iojoule.datasets.catalogue") / "references.toml"
    text = file.read_text(encoding="utf-8")
    return parse_record(text, "catalogue/references.toml", _References).references


class Catalogue:
    """SSD models by id, in alphabetical order."""

    def __init__(self, drives: Iterable[Drive]) -> None:
        self._drives = {drive.id: drive for drive in sorted(drives, key=lambda drive: drive.id)}
        self._ids_by_key = {
            _key(name): drive.id
            for drive in self._drives.values()
            for name in (drive.id, drive.model, *drive.aliases)
        }

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, in order."""
        return tuple(self._drives)

    def __len__(self) -> int:
        return len(self._drives)

    def __iter__(self) -> Iterator[Drive]:
        return iter(self._drives.values())

    def get(self, name: str) -> Drive:
        """Return the model of that id, name or alias; case and punctuation do not matter.

        Raises:
            UnknownDeviceError: No such model; the message names the closest ids.
        """
        id_ = self._ids_by_key.get(_key(name))
        if id_ is None:
            raise UnknownDeviceError(
                f"no SSD model is called {name!r}; the closest are "
                f"{', '.join(self.closest(name))}; `iojoule devices list` shows all"
            )
        return self._drives[id_]

    def closest(self, name: str) -> tuple[str, ...]:
        """Return up to three ids whose id, model or alias is most like `name`."""
        wanted = _key(name)
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(wanted)
        best: dict[str, float] = {}
        for known, id_ in self._ids_by_key.items():
            matcher.set_seq1(known)
            # a name that contains what was typed beats one that merely shares letters
            score = matcher.ratio() + (1 if wanted and wanted in known else 0)
            best[id_] = max(score, best.get(id_, 0))
        return tuple(sorted(best, key=lambda id_: (-best[id_], id_))[:3])


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue that ships with iojoule (read once per process, about 30 ms)."""
    folder = files("iojoule.datasets.catalogue") / "drives"
    return Catalogue(
        parse_record(entry.read_text(encoding="utf-8"), f"catalogue/drives/{entry.name}", Drive)
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def _key(name: str) -> str:
    """Fold case and drop everything but letters and digits."""
    return "".join(character for character in name.casefold() if character.isalnum())


def catalogued(name: str) -> Drive | None:
    """The catalogue's drive of that id, model or alias; None where there is none."""
    try:
        return load_catalogue().get(name)
    except UnknownDeviceError:
        return None


def slug(name: str) -> str:
    """An id made of a model's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "drive"
