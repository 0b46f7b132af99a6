"""How a drive that was built otherwise differs from the one that was measured, as simulated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from iojoule.datasets.profile.performance import ResidualTable
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Operation, Pattern

Ratio = Literal["latency", "p50", "p99", "p999", "watts"]


class RatioTable(Section):
    """One operation and pattern over requests in flight, request size and power state.

    `table.paths` are power states (`ps0`), `table.log2_queue_depth` counts all requests in flight.
    Its values are logs of simulated-changed over simulated-base at the same place: `latency` of the
    drive's mean latency, `p50`, `p99`, `p999` likewise, and `watts` of the drive's power beyond
    what its base's joules a request make of the changed rate; `watts` may lack.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    table: ResidualTable


class RatioError(Section):
    """Log sd of one ratio: `floor` joined with `share` of the log ratio, at most of `most`."""

    quantity: Ratio
    floor: Annotated[float, Field(ge=0)]
    share: Annotated[float, Field(ge=0)]
    most: Annotated[float, Field(gt=0)]


class Rebuilt(Section):
    """Ratios by which this profile's predictions are scaled.

    Attributes:
        drive: Title or file of the simulated drive that stands for the measured one.
        changes: What was set otherwise, in words.
        tables: The ratios.
        errors: How sure they are.
        source: What the errors were found from.
    """

    drive: str
    changes: list[str]
    tables: list[RatioTable]
    errors: list[RatioError]
    source: str
