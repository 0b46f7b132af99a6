"""Figures that belong to no drive: power limits of form factors, reference ratings of states."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field, StrictStr

from iojoule.datasets.catalogue.drive import Record, Text
from iojoule.datasets.catalogue.reading import parse_record


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
