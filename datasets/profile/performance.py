"""How fast: the surfaces of operations and patterns, and what mixes and power states do to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from iojoule.datasets.profile.evidence import CurveDoubt
from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence, Operation, Pattern


class Hull(Section):
    """Convex hull of measured points in log2(queue depth, jobs, request bytes).

    A point x lies inside where `normals @ x <= offsets` for every facet and where each fixed
    coordinate (one that never varied) has its one value.
    """

    normals: list[tuple[float, float, float]]
    offsets: list[float]
    fixed: tuple[float | None, float | None, float | None]


class ResidualTable(Section):
    """What the curve misses, learned from measurements, as knots to interpolate linearly.

    Shapes: every list in `values` is flattened from (path, depth, jobs, bytes) in C order.
    `latency` is the residual of log mean latency; `latency_sd` its standard deviation;
    `p50`, `p99`, `p999` are residuals of log(percentile / mean) and `*_sd` their deviations;
    `measured` is 1 at knots that were measured, else 0.
    """

    log2_queue_depth: list[float]
    log2_jobs: list[float]
    log2_request_bytes: list[float]
    paths: list[str]
    values: dict[str, list[float]]


class Tail(Section):
    """A latency percentile as mean + unloaded latency x excess (see `model.tails`).

    With more than `queue_commands` device commands in flight the rest wait in the host's queue, and
    the percentile's ratio to the mean is `queue_factor` times as large. Absent: no such queue.
    """

    quantile: Literal["p50", "p99", "p999"]
    intrinsic: float
    collision: list[float]
    exponent: float
    saturation: float
    host_damping: float
    queue_commands: Annotated[float, Field(gt=0)] | None = None
    queue_factor: Annotated[float, Field(ge=1)] = 1.0


class IntervalWidth(Section):
    """Conformal quantile: the 90 % half width in log space is `factor` x the local sd.

    Of a percentile that no row left out scored, `excess_sd` is the log sd of its excess over the
    mean: where it is hardly above the mean, little of that counts.
    """

    quantity: Literal["latency", "p50", "p99", "p999"]
    region: Literal["inside", "outside"]
    factor: Annotated[float, Field(gt=0)]
    floor_sd: Annotated[float, Field(ge=0)]
    excess_sd: Annotated[float, Field(ge=0)] = 0.0
    sd_per_octave: Annotated[float, Field(ge=0)]
    scores: Annotated[int, Field(ge=0)]


class Surface(Section):
    """Closed-loop performance for one operation and pattern (see `model.evaluate.surface`).

    `residuals` has a table for each host path that was measured, that with most rows first: it
    stands for every path that was not. It is empty where nothing was learned from rows.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence
    source: str
    log2_request_bytes: list[float]
    unloaded_latency_ns: list[float]
    capacity_operations_per_second: list[float]
    sharpness: list[float]
    transfer_bytes_per_second: float
    access_unit_bytes: int
    relative_sd: float
    tails: list[Tail]
    residuals: list[ResidualTable] = Field(default_factory=list)
    hulls: dict[str, Hull]
    widths: list[IntervalWidth]
    doubt: CurveDoubt | None = None

    @model_validator(mode="before")
    @classmethod
    def _earlier_table(cls, data: Any) -> Any:
        """Earlier profiles have one table of all host paths, or null."""
        if isinstance(data, dict) and "residual" in data:
            data = dict(data)
            table = data.pop("residual")
            data.setdefault("residuals", [] if table is None else [table])
        return data


CEILING_COMMANDS = 8
"""Device commands in flight at which a ceiling that depends on them is stated: those of one request
of 4 MiB."""

CEILING_SHARPNESS = 4.0
"""How sharply a ceiling takes over where no run says: as the bend of the curve's prior."""


class PowerStateEffect(Section):
    """What a power state below PS0 does to one direction of I/O.

    A request of s bytes takes `ceiling_seconds_per_operation` + s / `ceiling_bytes_per_second` of
    the drive's time at the cap; absent, the first is 0. The factors have their sd in log units, and
    so has the ceiling in bytes, whose sd is that of the sum. With n device commands in flight that
    time is (n / CEILING_COMMANDS) ** `ceiling_depth_exponent` times as long; absent, the exponent
    is 0: the ceiling is the same at every depth. `ceiling_sharpness` says how sharp the bend is
    between the latency below the ceiling and the wait at it (`model.evaluate.surface`); absent, it
    is CEILING_SHARPNESS. Its sd is in log units.
    """

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Parameter
    ceiling_seconds_per_operation: Parameter | None = None
    ceiling_depth_exponent: Parameter | None = None
    ceiling_sharpness: Parameter | None = None
    latency_factor: Parameter
    tail_factor: Parameter


class MixedEffect(Section):
    """How interleaved reads and writes differ from taking turns.

    `latency_factor` is by how much longer random reads take beside writes with many requests in
    flight, and the mean of a sequential mix at 70 % reads; `tail_factor` (percentiles of the
    reads, beside the mean) holds at 50 %. Where reads or writes are alone there is no effect
    (`model.evaluate.mixes`).
    """

    pattern: Pattern
    latency_factor: Parameter
    tail_factor: Parameter
