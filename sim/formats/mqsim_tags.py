"""The tags of MQSim's input files: their fields in the models, their text, their parameter sets.

Spelling is that of the stock files ("Busrt", "Metadat", "Relay"); other spellings are aliases.
MQSim reads "333MT" as 333, lets -1 wrap around and takes every boolean but "false" for true; all of
that is an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, get_origin

from pydantic import BaseModel

from iojoule.sim.device import PLANE_ALLOCATIONS, DeviceConfig
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import did_you_mean, refusal
from iojoule.sim.formats.xml_tree import Element
from iojoule.sim.parameter import Kind, Mqsim, ParameterSet, tagged_fields
from iojoule.sim.workload import FlowConfig


@dataclass(frozen=True)
class Tag:
    """One tag: the field it sets, how it is read, and for words which there are.

    `item` is the position in a field that holds several values.
    """

    name: str
    field: str
    kind: Kind
    words: type[StrEnum] | None = None
    item: int | None = None


@dataclass(frozen=True)
class FixedTag:
    """A tag that sets no field: `value` is written, any of `known` (None: anything) is read.

    Something else is worth a warning with this `remark`; where there is none, it ends MQSim.
    """

    name: str
    value: str
    known: tuple[str, ...] | None = None
    remark: str = ""


DEVICE_ROOT, WORKLOAD_ROOT, SCENARIO = (
    "Execution_Parameter_Set",
    "MQSim_IO_Scenarios",
    "IO_Scenario",
)
RESPONSE_LOG, RESPONSE_LOG_PERIOD = (
    "Enable_ResponseTime_Logging",
    "ResponseTime_Logging_Period_Length",
)

AnyTag = Tag | FixedTag


_KINDS = {int: Kind.UNSIGNED, float: Kind.DECIMAL, bool: Kind.BOOLEAN, tuple: Kind.IDS}


def _tags(model: type[BaseModel], *inside: ParameterSet) -> tuple[Tag, ...]:
    """The tags that the fields of a model declare for these sets."""
    return tuple(
        tag
        for name, kind, mark in tagged_fields(model)
        if mark.inside in inside
        for tag in _tags_of(name, kind, mark)
    )


def _tags_of(field: str, kind: Any, mark: Mqsim) -> Iterator[Tag]:
    for item, each in enumerate(mark.items):
        yield Tag(mark.name.format(each), field, Kind.UNSIGNED, item=item)
    if not mark.items:
        plain = get_origin(kind) or kind
        words = kind if isinstance(kind, type) and issubclass(kind, StrEnum) else None
        yield Tag(mark.name, field, mark.kind or _KINDS.get(plain, Kind.WORD), words)


HOST_TAGS: tuple[AnyTag, ...] = (
    *_tags(DeviceConfig, ParameterSet.HOST),
    FixedTag(
        RESPONSE_LOG,
        "false",
        ("false",),
        "no log of response times is written; percentiles and time series say what it would",
    ),
    FixedTag(RESPONSE_LOG_PERIOD, "400000"),
)

_SEED, _PRECONDITIONING, *_OTHERS = _tags(DeviceConfig, ParameterSet.DEVICE)

DEVICE_TAGS: tuple[AnyTag, ...] = (  # in the order of the stock files
    _SEED,
    _PRECONDITIONING,
    FixedTag("Memory_Type", "FLASH", ("FLASH",)),
    *_OTHERS,
    FixedTag("Flash_Comm_Protocol", "NVDDR2", ("NVDDR2",)),
)

FLASH_TAGS: tuple[AnyTag, ...] = _tags(DeviceConfig, ParameterSet.FLASH)

SYNTHETIC_TAGS: tuple[AnyTag, ...] = _tags(FlowConfig, ParameterSet.FLOW, ParameterSet.SYNTHETIC)

TRACE_TAGS: tuple[AnyTag, ...] = (
    *_tags(FlowConfig, ParameterSet.FLOW, ParameterSet.TRACE),
    FixedTag(
        "Time_Unit",
        "NANOSECOND",
        ("NANOSECOND",),
        "MQSim takes the times of a trace for nanoseconds whatever this says, and so does iojoule; "
        "convert the trace and write NANOSECOND",
    ),
)

QUIET_TAGS = frozenset({"Intensity"})
"""Stand in MQSim's own files although it does not read them."""

ALIASES = {
    # MQSim itself, its README and its forks write these
    "Prefered_suspend_erase_time_for_read": "Preferred_suspend_erase_time_for_read",
    "Prefered_suspend_erase_time_for_write": "Preferred_suspend_erase_time_for_write",
    "Prefered_suspend_write_time_for_read": "Preferred_suspend_write_time_for_read",
    "Data_Cache_DRAM_Data_Burst_Size": "Data_Cache_DRAM_Data_Busrt_Size",
    "Replay_Count": "Relay_Count",
    "Page_Metadata_Capacity": "Page_Metadat_Capacity",
    "ExecParameterSet": DEVICE_ROOT,
    "HostParameterSet": ParameterSet.HOST,
    "DeviceParameterSet": ParameterSet.DEVICE,
    "FlashParameterSet": ParameterSet.FLASH,
    "SyntheticFlowParamSet": ParameterSet.SYNTHETIC,
    "SyntheticFlowParameterSet": ParameterSet.SYNTHETIC,
    "TraceFlowParamSet": ParameterSet.TRACE,
    "TraceFlowParameterSet": ParameterSet.TRACE,
}
"""Spellings of other programs -> the stock one (Sungup/MQSim: sets without underscores)."""

WORD_ALIASES = {"EQUAL_SIZE_PARTITIONING": "EQUAL_PARTITIONING"}
"""Words that MQSim writes itself but does not read."""


MAX_IDS_CHARACTERS = 1000
"""MQSim copies a list of ids into a buffer of that size."""

_UNSIGNED = re.compile(r"[0-9]{1,20}")
_SIGNED = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER = 64

Value = int | float | bool | str | tuple[int, ...]


def read_value(tag: Tag, text: str, place: str, tell: Tell) -> Value:
    """The value that a tag's text says.

    Raises:
        RefusedError: It says none; the message names place and remedy.
    """
    match tag.kind:
        case Kind.UNSIGNED | Kind.SIGNED:
            return _integer(tag, text, place)
        case Kind.DECIMAL:
            return _decimal(text, place, tag.field)
        case Kind.BOOLEAN:
            return _boolean(text, place, tag.field)
        case Kind.IDS:
            return _ids(text, place, tag.field)
        case Kind.PATH:
            return text.strip()
        case Kind.SCHEME:
            return _scheme(text, place, tag.field)
        case Kind.WORD:
            assert tag.words is not None
            known = [word.value.upper() for word in tag.words]
            return _word_in(text, known, place, tag.field, tell).lower()


def write_value(value: object) -> str:
    """The text that a tag takes for a value."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(str(each) for each in value)
        case StrEnum():
            return value.value.upper()
        case _:
            return str(value)


def check_fixed(tag: FixedTag, text: str, place: str, tell: Tell) -> None:
    """Check a tag that sets nothing.

    Raises:
        RefusedError: It says what ends MQSim.
    """
    if tag.known is None or text.upper() in {known.upper() for known in tag.known}:
        return
    if not tag.remark:
        only = ", ".join(tag.known)
        raise refusal("unknown_word", place, f"is {_short(text)}, but MQSim knows only {only}")
    tell(
        Finding(
            f"{tag.name.lower()}_ignored",
            Severity.WARNING,
            "",
            f"is {_short(text)}: {tag.remark}",
            place,
        )
    )


def _integer(tag: Tag, text: str, place: str) -> int:
    said, pattern = text.strip(), _SIGNED if tag.kind is Kind.SIGNED else _UNSIGNED
    if pattern.fullmatch(said):
        return int(said)
    negative = tag.kind is Kind.UNSIGNED and re.fullmatch(r"-[0-9]+", said)
    why = "it cannot be negative, and MQSim would wrap it around" if negative else _junk(said)
    raise refusal(
        "not_a_number", place, f"is {_short(said)}, but must be a whole number ({why})", tag.field
    )


def _junk(said: str) -> str:
    digits = re.match(r"[0-9]+", said)
    if digits:
        return f"MQSim would read {digits[0][:20]} and drop the rest; write the bare number"
    return "MQSim stops there; write the number without unit"


def _decimal(text: str, place: str, field: str) -> float:
    said = text.strip()
    if len(said) > _LONGEST_NUMBER or not _DECIMAL.fullmatch(said):
        raise refusal(
            "not_a_number", place, f"is {_short(said)}, but must be a number ({_junk(said)})", field
        )
    return float(said)


def _boolean(text: str, place: str, field: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise refusal(
        "not_a_boolean",
        place,
        f"is {_short(text)}, but must be true or false without blanks; MQSim would take it for "
        "true",
        field,
    )


def _ids(text: str, place: str, field: str) -> tuple[int, ...]:
    if len(text) >= MAX_IDS_CHARACTERS:
        raise refusal(
            "list_too_long",
            place,
            f"has {len(text)} characters, but MQSim reads up to {MAX_IDS_CHARACTERS - 1}; name "
            "fewer ids",
            field,
        )
    said = [part.strip() for part in text.split(",")]
    if not all(_UNSIGNED.fullmatch(part) for part in said):
        raise refusal(
            "not_a_number",
            place,
            f"is {_short(text)}, but must be whole numbers parted by commas, such as 0,1,2,3",
            field,
        )
    return tuple(int(part) for part in said)


def _scheme(text: str, place: str, field: str) -> str:
    if text.upper() in PLANE_ALLOCATIONS:
        return text.upper()
    raise refusal(
        "unknown_word",
        place,
        f"is {_short(text)}, but must order the letters C (channel), W (way), D (die) and P "
        "(plane), such as CWDP",
        field,
    )


def _word_in(text: str, known: list[str], place: str, field: str, tell: Tell) -> str:
    """The word in capitals, one of `known`."""
    word = text.upper()
    stock = WORD_ALIASES.get(word)
    if stock in known:
        tell(
            Finding(
                "word_renamed",
                Severity.WARNING,
                field,
                f"is {text}, which MQSim writes but does not read; taken for {stock}, write that",
                place,
            )
        )
        return str(stock)
    if word not in known:
        if word == "MIXED_STREAMING_RANDOM":
            raise refusal(
                "mixed_streaming",
                place,
                "is MIXED_STREAMING_RANDOM, which MQSim documents but does not have; use two "
                "flows, one STREAMING and one RANDOM_UNIFORM",
                field,
            )
        blanks = " (without blanks around it)" if word.strip() in known else ""
        raise refusal(
            "unknown_word",
            place,
            f"is {_short(text)}, which is not known; {did_you_mean(word, known)}{blanks}",
            field,
        )
    if word != text:
        said = f"is {_short(text)}; MQSim's own files write {_short(word)}"
        tell(Finding("word_case", Severity.NOTE, field, said, place))
    return word


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."


@dataclass
class ReadSet:
    """What a set says: field -> value and place (an item of an array: `field[item]`)."""

    values: dict[str, Value] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    missing: list[AnyTag] = field(default_factory=list)


def key_of(tag: Tag) -> str:
    """The field, or `field[item]` of a field that holds several values."""
    return tag.field if tag.item is None else f"{tag.field}[{tag.item}]"


def stock_name(tag: str) -> str:
    """The spelling of MQSim's own files."""
    return ALIASES.get(tag, tag)


def place_of(file: str, element: Element) -> str:
    """File, line and tag, as errors name them."""
    return f"{file}, line {element.line}, {element.tag}"


def only_set(parent: Element, name: str, file: str, tell: Tell) -> Element | None:
    """The one child set of that (stock) name; the last where there are several, as in MQSim."""
    found = [child for child in parent.children if stock_name(child.tag) == name]
    for child in found:
        tell_alias(child, file, tell)
    for child in found[:-1]:
        tell(_twice(file, child))
    return found[-1] if found else None


def tell_alias(element: Element, file: str, tell: Tell) -> None:
    """Say that a tag is not spelled as in MQSim's own files, if so."""
    stock = stock_name(element.tag)
    if stock != element.tag:
        tell(
            Finding(
                "tag_renamed",
                Severity.WARNING,
                "",
                f"is read as {stock}, its name in MQSim, which ignores this one; rename it",
                place_of(file, element),
            )
        )


def read_set(
    element: Element, tags: Sequence[AnyTag], file: str, tell: Tell, sets: Sequence[str] = ()
) -> ReadSet:
    """Read every tag of a set; `sets` are the sets that may stand inside it.

    Raises:
        RefusedError: A value cannot be read.
    """
    found = _elements(element, tags, file, tell, sets)
    read = ReadSet()
    for tag in tags:
        child = found.get(tag.name)
        if child is None:
            read.missing.append(tag)
            continue
        place = place_of(file, child)
        if child.children:
            raise refusal("not_a_value", place, "holds other tags; write its value alone")
        if isinstance(tag, FixedTag):
            check_fixed(tag, child.text, place, tell)
            continue
        read.places[key_of(tag)] = place
        read.values[key_of(tag)] = read_value(tag, child.text, place, tell)
    return read


def _elements(
    element: Element, tags: Sequence[AnyTag], file: str, tell: Tell, sets: Sequence[str]
) -> dict[str, Element]:
    """Stock name -> the element that counts: the stock spelling, and of several the last."""
    known = {tag.name for tag in tags}
    found: dict[str, Element] = {}
    if element.text.strip() or element.has_attributes:
        tell(
            Finding(
                "text_ignored",
                Severity.WARNING,
                "",
                "has text or attributes of its own, which are ignored; write values as tags",
                place_of(file, element),
            )
        )
    # stable: aliases first, so that the stock spelling has the last word
    for child in sorted(element.children, key=lambda child: child.tag in known):
        name = stock_name(child.tag)
        if name in sets:
            continue
        if name not in known:
            _tell_unknown(child, known, file, tell)
            continue
        tell_alias(child, file, tell)
        if name in found:
            tell(_twice(file, found[name]))
        found[name] = child
    return found


def _twice(file: str, element: Element) -> Finding:
    return Finding(
        "tag_twice",
        Severity.WARNING,
        "",
        "stands more than once; the last one holds, as in MQSim; keep one",
        place_of(file, element),
    )


def _tell_unknown(element: Element, known: set[str], file: str, tell: Tell) -> None:
    place = place_of(file, element)
    if element.tag in QUIET_TAGS:
        tell(
            Finding(
                "tag_without_effect",
                Severity.NOTE,
                "",
                "has no effect, neither here nor in MQSim",
                place,
            )
        )
        return
    meant = did_you_mean(element.tag, sorted(known))
    meant = meant if meant.startswith("did you mean") else "remove it"
    tell(
        Finding(
            "tag_unknown",
            Severity.WARNING,
            "",
            f"is not a tag of MQSim and is ignored; {meant}",
            place,
        )
    )
