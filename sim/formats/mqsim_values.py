"""The text of MQSim's tags to values and back.

MQSim itself is lenient in a way that hides mistakes: it reads "333MT" as 333, lets -1 wrap around
and takes every boolean but "false" for true. All of that is an error here.
"""

from __future__ import annotations

import re
from enum import StrEnum

from iojoule.sim.device import PLANE_ALLOCATIONS
from iojoule.sim.findings import Finding, Severity, Tell
from iojoule.sim.formats.building import did_you_mean, refusal
from iojoule.sim.formats.mqsim_tags import WORD_ALIASES, FixedTag, Kind, Tag

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
            f"{tag.name.lower()}_ignored", Severity.WARNING, "",
            f"is {_short(text)}: {tag.remark}", place,
        )
    )  # fmt: skip


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
        "not_a_boolean", place,
        f"is {_short(text)}, but must be true or false without blanks; MQSim would take it for "
        "true", field,
    )  # fmt: skip


def _ids(text: str, place: str, field: str) -> tuple[int, ...]:
    if len(text) >= MAX_IDS_CHARACTERS:
        raise refusal(
            "list_too_long", place,
            f"has {len(text)} characters, but MQSim reads up to {MAX_IDS_CHARACTERS - 1}; name "
            "fewer ids", field,
        )  # fmt: skip
    said = [part.strip() for part in text.split(",")]
    if not all(_UNSIGNED.fullmatch(part) for part in said):
        raise refusal(
            "not_a_number", place,
            f"is {_short(text)}, but must be whole numbers parted by commas, such as 0,1,2,3",
            field,
        )  # fmt: skip
    return tuple(int(part) for part in said)


def _scheme(text: str, place: str, field: str) -> str:
    if text.upper() in PLANE_ALLOCATIONS:
        return text.upper()
    raise refusal(
        "unknown_word", place,
        f"is {_short(text)}, but must order the letters C (channel), W (way), D (die) and P "
        "(plane), such as CWDP", field,
    )  # fmt: skip


def _word_in(text: str, known: list[str], place: str, field: str, tell: Tell) -> str:
    """The word in capitals, one of `known`."""
    word = text.upper()
    stock = WORD_ALIASES.get(word)
    if stock in known:
        tell(Finding("word_renamed", Severity.WARNING, field,
                     f"is {text}, which MQSim writes but does not read; taken for {stock}, write "
                     "that", place))  # fmt: skip
        return str(stock)
    if word not in known:
        if word == "MIXED_STREAMING_RANDOM":
            raise refusal(
                "mixed_streaming", place,
                "is MIXED_STREAMING_RANDOM, which MQSim documents but does not have; use two "
                "flows, one STREAMING and one RANDOM_UNIFORM", field,
            )  # fmt: skip
        blanks = " (without blanks around it)" if word.strip() in known else ""
        raise refusal(
            "unknown_word", place,
            f"is {_short(text)}, which is not known; {did_you_mean(word, known)}{blanks}", field,
        )  # fmt: skip
    if word != text:
        said = f"is {_short(text)}; MQSim's own files write {_short(word)}"
        tell(Finding("word_case", Severity.NOTE, field, said, place))
    return word


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."
