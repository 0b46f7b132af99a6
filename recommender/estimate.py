"""A quantity as answers state it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence

UNBOUNDED: Literal["unbounded"] = "unbounded"
"""An end without a bound, as in latencies of a demand that may exceed the capacity."""


def _read(value: Any) -> Any:
    return math.inf if value == UNBOUNDED else value


def _written(value: float) -> float | str:
    return UNBOUNDED if math.isinf(value) else value


Ending = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(_read),
    PlainSerializer(_written, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"const": UNBOUNDED, "type": "string"}]}),
]
"""A number, infinite where nothing bounds it; in JSON then the word `unbounded`."""


class Estimate(Section):
    """A quantity in the unit of its field's name, with its 90 % interval and evidence.

    `value` and `high` are unbounded where a demand is, or may be, more than can be served.
    """

    value: Ending
    low: Ending
    high: Ending
    evidence: Evidence
