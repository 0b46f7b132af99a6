"""Numbers with a range and the reason for it, as the simulator's models take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StrictFloat, StrictInt
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
