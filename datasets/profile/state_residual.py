"""What the physical model misses of a drive that was measured in several power states."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from iojoule.datasets.profile.performance import ResidualTable
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Operation, Pattern


class StateResidual(Section):
    """Residuals over power states of one operation and pattern; see `model.evaluate`.

    Those of mixes are of one share of reads, `read_fraction`.

    A path of the table is a power state and a host path, "2 io_uring/interrupt". Its values are
    `latency`, the percentiles and `watts`, residuals of the logs of the values themselves;
    `*_sd` are their standard deviations and `measured` is 1 at knots that were measured.
    """

    operation: Operation
    pattern: Pattern
    read_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    table: ResidualTable
