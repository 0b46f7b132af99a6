"""One number of a profile, with its standard deviation and where it comes from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence


class Parameter(Section):
    """One fitted or published number with its standard deviation and where it comes from."""

    name: str
    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    evidence: Evidence
    source: str
