"""The papers' findings as a frozen list: what each states, and how it is judged.

A finding is asked where a model of a drive, its CPU and its system could answer it, and out of
scope with a reason where none could, or where its own note says that it is wrong.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from functools import cache
from importlib import resources
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.schema import Section, validation_error

Scalar = bool | int | float | str
Columns = dict[str, Scalar | list[Scalar]]
Point = dict[str, Scalar]


class Form(StrEnum):
    """What is published: one quantity, a ratio or difference of two, or a ranking."""

    VALUE = "value"
    RATIO = "ratio"
    DIFFERENCE = "difference"
    ORDER = "order"


class Judged(StrEnum):
    """How the published figure is meant."""

    VALUE = "value"
    RANGE = "range"
    UP_TO = "up to"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    ORDER = "order"


class Direction(StrEnum):
    """Which way an effect goes; `level` for figures that are no effect."""

    UP = "up"
    DOWN = "down"
    SAME = "same"
    NOT_UP = "not up"
    NOT_DOWN = "not down"
    LEVEL = "level"
    ORDER = "order"


class _Entry(Section):
    """What every row has, asked or not."""

    fact_id: Annotated[str, Field(pattern=r"^\d{3}-\d{3}$")]
    section: str
    finding: str = ""
    class_: str = Field(alias="class")


class OutOfScope(_Entry):
    """A row that no model of an SSD, its CPU and its system could answer."""

    status: Literal["out of scope"]
    reason: Annotated[str, Field(min_length=8)]


class Asked(_Entry):
    """A row that is judged.

    `configuration` holds columns under the field names of the schema; a list stands for each of
    its values in turn. `against` holds what differs in what it is compared with, one table for
    each alternative; `against_quantity` and `against_device` what else differs.

    Attributes:
        device: Catalogue ids; several stand for each in turn.
        quantity: What is asked, by the name of a prediction or of a derived quantity.
        scope: Whose watts count in an efficiency.
        published: The figure, in `unit`; `published_high` closes a range.
        over: How the settings that the finding leaves open are taken together.
        multiply_by: Factor on the prediction, where a figure covers so many seconds.
        bundle: Rows of one bundle state the same twice and are left out together.
        assumption: What the paper leaves open and is assumed here.
        ranked: Settings of a ranking, highest first.
    """

    status: Literal["asked"]
    device: Annotated[list[str], Field(min_length=1)]
    quantity: str
    scope: Literal["device", "device_cpu", "system"] | None = None
    form: Form
    published: float | None = None
    published_high: float | None = None
    unit: str = "1"
    judged: Judged
    over: Literal["mean", "max", "min"]
    direction: Direction
    multiply_by: float = 1.0
    host: str | None = None
    bundle: str | None = None
    assumption: str | None = None
    configuration: Columns
    against: list[Columns] = Field(default_factory=list)
    against_quantity: str | None = None
    against_device: list[str] = Field(default_factory=list)
    ranked: list[Point] = Field(default_factory=list)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.form is Form.ORDER:
            if len(self.ranked) < 2 or self.published is not None:
                raise ValueError(f"{self.fact_id}: a ranking has settings and no figure")
        elif self.published is None or self.ranked:
            raise ValueError(f"{self.fact_id}: a figure is missing, or it is a ranking")
        if (self.form in (Form.RATIO, Form.DIFFERENCE)) != bool(self.against):
            raise ValueError(f"{self.fact_id}: form {self.form} and `against` do not go together")
        if (self.judged is Judged.RANGE) != (self.published_high is not None):
            raise ValueError(f"{self.fact_id}: a range, and only a range, has two ends")
        return self

    def settings(self) -> list[Point]:
        """Every setting that the finding speaks of, with its device."""
        return [
            {"device": device, **point}
            for device in self.device
            for point in _each(self.configuration)
        ]

    def pairs(self) -> list[tuple[Point, Point]]:
        """Every setting beside what it is compared with."""
        return [
            (point, {**point, **other, "device": device})
            for point in self.settings()
            for alternative in self.against
            for other in _each(alternative)
            for device in (self.against_device or [str(point["device"])])
        ]

    def rankings(self) -> list[list[Point]]:
        """The settings of the ranking, highest first, for each setting left open."""
        return [[{**point, **ranked} for ranked in self.ranked] for point in self.settings()]


Finding = Annotated[Asked | OutOfScope, Field(discriminator="status")]


class Paper(Section):
    """The rows of one paper."""

    schema_version: Literal[1]
    paper: str
    citation: str
    findings: list[Finding]


def _each(columns: Columns) -> list[Point]:
    values: list[list[Any]] = [v if isinstance(v, list) else [v] for v in columns.values()]
    return [dict(zip(columns, combination, strict=True)) for combination in product(*values)]


def parse_paper(text: str, where: str) -> Paper:
    """Read one paper's findings from TOML.

    Raises:
        InputError: Not TOML or not a list of findings; names file and field.
    """
    try:
        return Paper.model_validate(toml_of(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    except ValidationError as error:
        raise validation_error(error, where) from None


@cache
def frozen_papers() -> tuple[Paper, ...]:
    """The frozen list, one paper after the other."""
    folder = resources.files("iojoule.datasets").joinpath("findings")
    return tuple(
        parse_paper(entry.read_text("utf-8"), entry.name)
        for entry in sorted(folder.iterdir(), key=lambda path: path.name)
        if entry.name.endswith(".toml")
    )
