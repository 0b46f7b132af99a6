"""What a field of a drive or workload declares beside its name, type and default.

A parameter of the simulator is declared twice, once for Python and once for the core, with nothing
else beside: here with its range and its tag in MQSim's files, from which validation, both file
formats and the reference follow; in sim/core/config.hpp or sim/core/physical/options.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, StrictFloat, StrictInt
from pydantic_core import CoreSchema, core_schema

UINT32_MAX = 2**32 - 1
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class between:  # noqa: N801 - reads like a function
    """A check that a number lies in low..high; its message gives the range and the reason."""

    low: float
    high: float
    reason: str

    def _check(self, value: float) -> float:
        if not self.low <= value <= self.high:
            raise ValueError(f"is {value}, but must be {self.low} to {self.high}: {self.reason}")
        return value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "minimum": self.low, "maximum": self.high}


Nanoseconds = Annotated[
    StrictInt, between(0, 10**12, "no step of a drive takes longer than 1000 s")
]
Seed = Annotated[StrictInt, between(0, INT32_MAX, "MQSim hangs below and stops above")]
Percent = Annotated[StrictInt, between(0, 100, "it is a percentage")]
Fraction = Annotated[StrictFloat, between(0.0, 1.0, "it is a fraction of the whole")]
Count = Annotated[StrictInt, between(1, UINT32_MAX, "it is a count of at least one, in 32 bits")]
Uint32 = Annotated[StrictInt, between(0, UINT32_MAX, "it is a count in 32 bits")]


class ParameterSet(StrEnum):
    """A set of tags in MQSim's input files."""

    HOST = "Host_Parameter_Set"
    DEVICE = "Device_Parameter_Set"
    FLASH = "Flash_Parameter_Set"
    FLOW = "both sets of flows"
    SYNTHETIC = "IO_Flow_Parameter_Set_Synthetic"
    TRACE = "IO_Flow_Parameter_Set_Trace_Based"


class Kind(StrEnum):
    """How the text of a tag is read."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    IDS = "ids"
    SCHEME = "scheme"
    PATH = "path"
    WORD = "word"


@dataclass(frozen=True)
class Mqsim:
    """The tag of a field in MQSim's input files.

    Attributes:
        name: As the stock files spell it; with a `{}` for each of `items`.
        inside: The set that it stands in.
        kind: How it is read; None: as the field's type says.
        items: Of a field that holds several values, what distinguishes their tags.
    """

    name: str
    inside: ParameterSet = ParameterSet.DEVICE
    kind: Kind | None = None
    items: tuple[str, ...] = ()


def tagged_fields(model: type[BaseModel]) -> Iterator[tuple[str, Any, Mqsim]]:
    """Name, type and tag of each field that MQSim has too, in order."""
    for name, field in model.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Mqsim):
                yield name, field.annotation, mark
