"""A published or assumed number of a recipe."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence

Positive = Annotated[float, Field(gt=0)]


class Sourced(Section):
    """A number from outside: where it stands, and which published findings it is.

    `facts` names the findings (`fact_id`) that a number was taken from, so that a profile can be
    rebuilt without one of them (`iojoule validate findings`).
    """

    source: str
    facts: list[str] = Field(default_factory=list)


class Figure(Sourced):
    """A published or assumed number: value, standard deviation, unit, source."""

    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    evidence: Evidence = Evidence.PUBLISHED
