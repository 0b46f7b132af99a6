"""How far a profile may be trusted: its errors on what its fit did not see, and what it misses.

Filled when a profile is fitted, because a profile keeps no measurement. Errors and intervals come
from whole depths and request sizes left out in turn; fitted points are the log ratio of what was
observed to what the profile answers there.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Operation, Pattern

Count = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0)]

Quantity = Literal["throughput_bytes_per_second", "latency_mean_ns", "latency_p99_ns"]


class HeldOut(Section):
    """Predictions of rows of one surface whose depth or size was left out of the fit.

    `left_out` is the axis and `value` the depth or size; None: all of them. `region` says
    whether the row lies between the others of its own series, or one step below or beyond them;
    None: any. Errors are relative, scores are mean interval scores in log units (Gneiting and
    Raftery 2007) of the `interval_rows` rows whose nominal 90 % interval could be judged, with
    widths from the other folds. The baseline is interpolation (else extrapolation) in log-log
    of the row's own series.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    quantity: Quantity
    left_out: Literal["queue_depth", "request_bytes"] | None
    value: float | None
    region: Literal["inside", "below", "beyond"] | None
    rows: Annotated[int, Field(ge=1)]
    median_error: NonNegative
    p90_error: NonNegative
    baseline_median_error: NonNegative
    interval_rows: Count
    covered: Count
    interval_score: NonNegative | None
    baseline_interval_score: NonNegative | None


class PerformancePoints(Section):
    """Fitted points of one surface, column by column; one entry a point.

    `latency` and `p99` are log(observed / answered) of the mean latency (so minus that of the
    throughput) and of the 99th percentile; `apart` marks sessions that stand apart (unsteady, or
    published), for which no profile answers. `total` is how many the fit saw: where they are
    many, only some are kept, evenly spread.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    total: Count
    path: list[str]
    request_bytes: list[int]
    queue_depth: list[int]
    jobs: list[int]
    apart: list[bool]
    latency: list[float]
    p99: list[float | None]

    @model_validator(mode="after")
    def _columns_match(self) -> PerformancePoints:
        _equally_long(self, "path", "request_bytes", "queue_depth", "jobs", "apart", "latency",
                      "p99")  # fmt: skip
        return self


class PowerPoints(Section):
    """Points of the drive's power law: rates, and log(observed / answered watts).

    Rates are in the law's own units (see `DevicePower`); `collecting` is the share of background
    work and `request_bytes` is what the host asked for. Rows of a series are means over blocks.
    """

    total: Count
    power_state: list[Count]
    request_bytes: list[float]
    read_bytes_per_second: list[float]
    read_operations_per_second: list[float]
    write_bytes_per_second: list[float]
    write_operations_per_second: list[float]
    collecting: list[float]
    watts: list[float]

    @model_validator(mode="after")
    def _columns_match(self) -> PowerPoints:
        _equally_long(self, *(name for name in type(self).model_fields if name != "total"))
        return self


class Assessment(Section):
    """Errors on what was left out, and fitted points."""

    held_out: list[HeldOut]
    performance: list[PerformancePoints]
    power: PowerPoints | None


def _equally_long(section: Section, *names: str) -> None:
    lengths = {len(getattr(section, name)) for name in names}
    if len(lengths) > 1:
        raise ValueError(f"columns of unequal length: {', '.join(names)}")
