"""Workload profiles of well-known benchmarks, each with where its figures come from."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from iojoule.datasets.catalogue import parse_toml
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Section, validation_error
from iojoule.recommender.request import Loop, WorkloadProfile

FOLDER = Path(__file__).with_name("preset_files")


class Preset(Section):
    """One benchmark as a workload profile. It has no configuration of today: nobody runs it yet.

    Attributes:
        describes: What it is, in a line.
        loop: Whether its rate is a demand (open) or it goes as fast as the drive (closed).
        sources: Where each figure comes from.
        profile: The question it asks.
    """

    describes: str
    loop: Literal[Loop.OPEN, Loop.CLOSED]
    sources: Annotated[tuple[str, ...], Field(min_length=1)]
    profile: WorkloadProfile

    @model_validator(mode="after")
    def _loop_is_that_of_the_profile(self) -> Self:
        if (self.loop is Loop.CLOSED) != self.profile.as_fast_as_possible:
            raise ValueError("loop: open needs a demand, and closed has none")
        return self

    @model_validator(mode="after")
    def _has_no_today(self) -> Self:
        if self.profile.has_current:
            raise ValueError("profile.current: a preset runs nowhere today; leave it out")
        return self

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.profile.name


@cache
def presets() -> tuple[Preset, ...]:
    """Every preset that ships, by name."""
    found = [_read(path) for path in FOLDER.glob("*.toml")]
    return tuple(sorted(found, key=lambda one: one.name))


def _read(path: Path) -> Preset:
    try:
        return Preset.model_validate(parse_toml(path.read_text(encoding="utf-8"), str(path)))
    except ValidationError as error:
        raise validation_error(error, str(path)) from None


def find_preset(name: str) -> WorkloadProfile:
    """The workload profile of a preset, with its sources among the notes.

    Raises:
        InputError: There is none of that name; names the closest ones.
    """
    listed = {one.name: one for one in presets()}
    if name not in listed:
        near = get_close_matches(name, listed) or list(listed)
        raise InputError(
            f"there is no preset {name}; there are {', '.join(near)} (a file ends in .toml, .json "
            "or .fio)"
        )
    found = listed[name]
    sources = tuple(f"source: {one}" for one in found.sources)
    return found.profile.model_copy(update={"notes": found.profile.notes + sources})


def _of_preset(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return find_preset(value)
    except InputError as error:
        raise ValueError(error.message) from None


ProfileOrPreset = Annotated[
    WorkloadProfile,
    BeforeValidator(_of_preset, json_schema_input_type=WorkloadProfile | str),
    Field(description="The workload profile, or the name of a preset such as ycsb-a."),
]
"""Of a request: a workload profile, or the name of one that ships."""
