"""What a calibrated simulator says where nobody measured, as tables, and how it was calibrated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.profile.performance import ResidualTable
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Operation, Pattern


class CalibratedParameter(Parameter):
    """A simulator's parameter: its estimate and spread, and the range that it was sought in."""

    prior_low: float
    prior_high: float


class SimulatedTable(Section):
    """One operation and pattern over depth, jobs, size, host path and power state.

    `table.paths` are host paths with a power state, such as `io_uring/interrupt/none ps0`. Its
    values: `latency`, log of the mean latency in ns with the learned residual; `p50`, `p99` and
    `p999`, log over the mean; `watts`, log of the drive's; and for each its `_sd`, in which the
    spread of the parameters, the discrepancy and the residual's own are joined. `watts` may lack.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    table: ResidualTable


class SimulatedError(Section):
    """How far the simulator erred over a group of measurements: medians of absolute errors.

    `residual` is the calibrated simulator with the residual learned on the other measurements;
    `linear_law` the linear law of watts, which was told the measured throughput; `covered` the
    share of the measurements that lie in the 90 % interval.
    """

    quantity: str
    where: str
    held_out: bool
    rows: Annotated[int, Field(ge=1)]
    before: float | None
    calibrated: float | None
    residual: float | None
    linear_law: float | None = None
    covered: float | None = None


class Simulated(Section):
    """A simulator that was calibrated on this drive's measurements.

    Attributes:
        engine: Which simulator.
        drive: Title of the drive's file whose geometry was kept.
        condition: What the tables hold for, in words.
        base_watts: What the drive draws when it serves next to nothing; None: watts are unknown.
        parameters: Timing.
        energy: Joules and watts.
        tables: Answers.
        discrepancy_sd: Log sd of throughput by which the calibrated simulator misses measurements,
            before the residual.
        indistinct: What the measurements cannot tell apart, one sentence each.
        excluded: Measurements that were left out, with the reason, by kind.
        errors: How far it erred, in and out of sample.
    """

    engine: Literal["embedded", "mqsim"]
    drive: str
    condition: str
    base_watts: float | None
    parameters: list[CalibratedParameter]
    energy: list[CalibratedParameter]
    tables: list[SimulatedTable]
    discrepancy_sd: Annotated[float, Field(ge=0)]
    indistinct: list[str]
    excluded: list[str]
    errors: list[SimulatedError]
