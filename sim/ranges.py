"""Numbers with a range and the reason for it, as the simulator's models take them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StrictFloat, StrictInt

UINT32_MAX = 2**32 - 1
INT32_MAX = 2**31 - 1


def between(low: float, high: float, reason: str) -> AfterValidator:
    """A check that a number lies in low..high; its message gives the range and the reason."""

    def check(value: float) -> float:
        if not low <= value <= high:
            raise ValueError(f"is {value}, but must be {low} to {high}: {reason}")
        return value

    return AfterValidator(check)


Nanoseconds = Annotated[
    StrictInt, between(0, 10**12, "no step of a drive takes longer than 1000 s")
]
Seed = Annotated[StrictInt, between(0, INT32_MAX, "MQSim hangs below and stops above")]
Percent = Annotated[StrictInt, between(0, 100, "it is a percentage")]
Fraction = Annotated[StrictFloat, between(0.0, 1.0, "it is a fraction of the whole")]
Count = Annotated[StrictInt, between(1, UINT32_MAX, "it is a count of at least one, in 32 bits")]
Uint32 = Annotated[StrictInt, between(0, UINT32_MAX, "it is a count in 32 bits")]
