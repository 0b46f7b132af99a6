"""The law of a drive's power as the service hands it out; light to import."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from iojoule import __version__
from iojoule.datasets.profile import Parameter, SourceRecord
from iojoule.datasets.vocabulary import Evidence

Direction = Literal["read", "write"]


class LawPoint(BaseModel):
    """The law at one rate, with its 90 % interval."""

    bytes_per_second: float
    operations_per_second: float
    device_power_watts: float
    device_power_watts_low: float
    device_power_watts_high: float


class LawLine(BaseModel):
    """The law at PS0 for commands of one size in one direction.

    Attributes:
        collecting: Whether the drive moves data on its own behalf meanwhile.
        evidence: Of the law's parameters for this direction, the weaker of the two; rates beyond
            the last measured one are extrapolated.
        points: By rising rate.
    """

    operation: Direction
    request_bytes: int
    collecting: bool
    evidence: Evidence
    points: list[LawPoint]


class LawMeasurement(BaseModel):
    """A measurement that the law was fitted to.

    Attributes:
        operation: None for a run that reads and writes.
        power_state: In which it was measured.
        request_bytes: What the host asked for.
        collecting: Share of the background work at which the drive collected, 0 to 1.
        device_power_watts: What was measured: what the law says there times the residual that the
            profile keeps, whose rounding is worth 0.01 %.
    """

    operation: Direction | None
    power_state: int
    request_bytes: float
    bytes_per_second: float
    operations_per_second: float
    collecting: float
    device_power_watts: float


class Law(BaseModel):
    """A drive's power while it serves.

    Attributes:
        condition: Under which it was taken.
        parameters: Of the law, in its order, each with its standard deviation and source.
        peak_watts: What the drive never exceeds.
        idle_watts: By power state.
        relative_sd: What the law misses its measurements by.
        measured_bytes_per_second_max: The fastest measured; beyond it the law is extrapolated.
            Likewise operations.
        lines: The law.
        measurements: What it rests on, of `measurements_total` at most 200, evenly spread.
    """

    condition: str
    parameters: list[Parameter]
    peak_watts: Parameter
    idle_watts: list[Parameter]
    relative_sd: float
    measured_bytes_per_second_max: float
    measured_read_operations_per_second_max: float
    lines: list[LawLine]
    measurements: list[LawMeasurement]
    measurements_total: int


class PowerLaw(BaseModel):
    """What is known of a drive's power.

    Attributes:
        law: None where nothing is; `note` then says why.
        sources: What the profile rests on, with licences.
    """

    device: str
    model_name: str
    profile_version: str
    law: Law | None
    note: str | None
    sources: list[SourceRecord]
    iojoule_version: str = __version__
