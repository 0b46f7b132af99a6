"""A published or assumed number of a recipe."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from iojoule.datasets.profile import Parameter
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence, is_assumption

Positive = Annotated[float, Field(gt=0)]


class Sourced(Section):
    """A number from outside: where it stands, and which published findings it is.

    `facts` names the findings (`fact_id`) that a number was taken from, so that a profile can be
    rebuilt without one of them (`iojoule validate findings`).
    """

    source: str
    facts: list[str] = Field(default_factory=list)


class Figure(Sourced):
    """A published or assumed number: value, standard deviation, unit, source.

    A number whose source begins with "assumption" is `assumed`; stating it as measured or published
    is refused.
    """

    value: float
    sd: Annotated[float, Field(ge=0)]
    unit: str
    evidence: Evidence = Evidence.PUBLISHED

    @model_validator(mode="before")
    @classmethod
    def _assumptions_say_so(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not is_assumption(str(data.get("source", ""))):
            return data
        stated = data.get("evidence")
        if stated is not None and Evidence(stated) not in (Evidence.DATASHEET, Evidence.ASSUMED):
            raise ValueError(
                f"evidence: {data['source']!r} is an assumption and cannot be {Evidence(stated)}; "
                "leave evidence out, or name the source that it rests on"
            )
        return data | {"evidence": Evidence.ASSUMED}


def parameter(name: str, figure: Figure) -> Parameter:
    """Carry a published figure into a profile."""
    return Parameter(
        name=name,
        value=figure.value,
        sd=figure.sd,
        unit=figure.unit,
        evidence=figure.evidence,
        source=figure.source,
    )
