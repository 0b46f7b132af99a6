"""Builds a model out of what a file says; faults name the file, the tag or key, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from iojoule.sim.findings import Finding, RefusedError, Severity

ModelT = TypeVar("ModelT", bound=BaseModel)

MOST_NAMED = 12
"""Of what may stand somewhere, errors name no more than these."""

Places = Mapping[str, str]
"""Field -> where it stands: file, line and tag, or file and key. "" is the whole."""


def refusal(name: str, place: str, message: str, field: str = "") -> RefusedError:
    """The error of that name at that place."""
    return RefusedError.of(Finding(name, Severity.ERROR, field, message, place))


def did_you_mean(word: str, known: list[str]) -> str:
    """Name what was probably meant, else everything that may stand there."""
    upper = {each.upper(): each for each in known}
    close = get_close_matches(word.upper(), list(upper), n=1)
    if close:
        return f"did you mean {upper[close[0]]}?"
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return f"write one of {', '.join(known[:MOST_NAMED])}{more}"


def place_in(places: Places, field: str) -> str:
    """Where a field stands, or the nearest that contains it."""
    while field and field not in places:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return places.get(field, "")


def build(model: type[ModelT], values: Mapping[str, Any], places: Places) -> ModelT:
    """The model with these values (field -> value).

    Raises:
        RefusedError: A value is not what it must be.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = error.errors(include_url=False)
        # a misspelt key is also a missing one: name the spelling first
        fault = min(faults, key=lambda each: each["type"] != "extra_forbidden")
        field = dotted(fault["loc"])
        message = _said(fault, model)
        raise refusal(_name(fault), place_in(places, field), message, field) from None


def dotted(location: tuple[int | str, ...]) -> str:
    """Spell ("flows", 2, "seed") as flows[2].seed; entries count from 0."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).lstrip(".")


def _name(fault: ErrorDetails) -> str:
    return {"extra_forbidden": "unknown_key", "enum": "unknown_word", "missing": "missing"}.get(
        fault["type"], "out_of_range" if fault["type"] == "value_error" else "wrong_type"
    )


def _said(fault: ErrorDetails, model: type[BaseModel]) -> str:
    match fault["type"]:
        case "extra_forbidden":
            return f"no such key; {did_you_mean(str(fault['loc'][-1]), _keys(fault, model))}"
        case "missing":
            return "is missing; add it"
        case "value_error":
            return str(fault.get("ctx", {}).get("error", fault["msg"]))
        case _:
            said = fault["msg"].removeprefix("Input ").lower()
            return f"is {_shown(fault['input'])}, but {said}; correct it"


def _keys(fault: ErrorDetails, model: type[BaseModel]) -> list[str]:
    """Keys that may stand beside the unknown one."""
    owner: Any = model
    for part in fault["loc"][:-1]:
        if isinstance(part, str):
            owner = _inner(owner.model_fields[part].annotation)
    return list(owner.model_fields)


def _inner(annotation: Any) -> Any:
    """The model inside an annotation such as `tuple[Model, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        inner = _inner(argument)
        if inner is not None:
            return inner
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
