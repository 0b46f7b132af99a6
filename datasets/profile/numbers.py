"""One number of a profile, with its standard deviation and where it comes from."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence, is_assumption


class Grounded(Section):
    """What has a source, and evidence that follows from it: an assumption is "assumed"."""

    evidence: Evidence
    source: str

    @model_validator(mode="before")
    @classmethod
    def _assumptions_say_so(cls, data: Any) -> Any:
        """Label assumptions as such, also those of profiles that named them something better."""
        if isinstance(data, dict) and is_assumption(str(data.get("source", ""))):
            return data | {"evidence": Evidence.ASSUMED}
        return data


class Parameter(Grounded):
    """One fitted or published number with its standard deviation and where it comes from."""

    name: str
    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
