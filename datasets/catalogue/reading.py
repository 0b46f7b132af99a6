"""Reads TOML files of the catalogue; its errors name the file, the field and the remedy."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from iojoule.datasets.catalogue.drive import Drive, Fact, PowerState, Record
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.toml_text import toml_of

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
        text = path.read_text(encoding="utf-8")
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
            said = f"unknown key; {_allowed(str(location[-1]), location, kind)}"
        case "missing":
            said = "is missing; add it"
        case "tuple_type":
            said = f"must be a list: {location[-1]} = [...] or [[{location[-1]}]] tables"
        case _ if location != list(fault["loc"]):
            said = f"must be a number or text, but is {fault['input']!r}; correct it"
        case "value_error":
            said = str(fault["ctx"]["error"]) if "ctx" in fault else fault["msg"]
        case _:
            said = f"{fault['msg']}, but is {fault['input']!r}; correct it"
            said = said[0].lower() + said[1:]
    places = {_dotted([p for p in f["loc"] if p not in _UNION_TAGS]) for f in faults} - {field}
    more = f" (further faulty fields: {len(places)})" if places else ""
    return f"{field or 'the file'}: {said}{more}", field


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
