"""What a recipe says of throughput and latency."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iojoule.datasets.schema import RequestBytes, Section
from iojoule.datasets.vocabulary import Completion, Engine, Evidence, Operation, Pattern
from iojoule.model.fitting.recipe.sourced import Figure, Positive, Sourced


class PublishedPoint(Sourced):
    """A published closed-loop result; `relative_sd` is how far it may be off."""

    request_bytes: RequestBytes
    queue_depth: int = 1
    jobs: int = 1
    engine: Engine = Engine.IO_URING
    completion: Completion = Completion.INTERRUPT
    metric: Literal["throughput_bytes_per_second", "iops", "latency_mean_ns"]
    value: Positive
    relative_sd: Positive


class SurfaceRecipe(Section):
    """One operation and pattern: where its points come from and what is assumed.

    `prior_facts` names the published findings that the priors were taken from.
    """

    operation: Literal[Operation.READ, Operation.WRITE]
    pattern: Pattern
    evidence: Evidence = Evidence.MEASURED
    source: str
    priors: dict[str, float] = Field(default_factory=dict)
    prior_facts: list[str] = Field(default_factory=list)
    points: list[PublishedPoint] = Field(default_factory=list)
    relative_sd: Positive = 0.2


class PowerStateRecipe(Section):
    """Published effect of a power state on one direction; factor sds in log units.

    `ceiling_depth_exponents` are estimates of one number, how the ceiling falls with depth; none:
    it does not.
    """

    power_state: int
    operation: Literal[Operation.READ, Operation.WRITE]
    ceiling_bytes_per_second: Figure
    ceiling_seconds_per_operation: Figure | None = None
    ceiling_depth_exponents: list[Figure] = Field(default_factory=list)
    ceiling_sharpness: Figure | None = None
    latency_factor: Figure
    tail_factor: Figure


class MixedRecipe(Section):
    """Published effect of mixing directions; factor sds in log units."""

    pattern: Pattern
    latency_factor: Figure
    tail_factor: Figure
