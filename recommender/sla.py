"""What the service must keep: bounds on throughput, latency, power and wear."""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from iojoule.datasets.schema import Positive, Section, Truth, number
from iojoule.model.evaluate.quantities import NORMAL_90

Confidence = Annotated[float, Field(ge=0.5, le=0.99), number]

MINIMA = {
    "throughput_bytes_per_second_min": "throughput_bytes_per_second",
    "iops_min": "iops",
}
"""Bounds from below and the quantity that each one bounds."""

LATENCY_MAXIMA = {
    "latency_mean_ns_max": "latency_mean_ns",
    "latency_p50_ns_max": "latency_p50_ns",
    "latency_p99_ns_max": "latency_p99_ns",
    "latency_p999_ns_max": "latency_p999_ns",
}
"""Bounds on latency from above."""

POWER_MAXIMA = {
    "device_power_watts_max": "device_power_watts",
    "cpu_power_watts_max": "cpu_power_watts",
    "device_cpu_power_watts_max": "device_cpu_power_watts",
    "system_power_watts_max": "system_power_watts",
}
"""Bounds on mean power at the demanded rate from above."""


ENDURANCE = "endurance_years_min"
"""Bound on how long the rated endurance lasts."""

BoundName = Literal[
    "throughput_bytes_per_second_min", "iops_min",
    "latency_mean_ns_max", "latency_p50_ns_max", "latency_p99_ns_max", "latency_p999_ns_max",
    "device_power_watts_max", "cpu_power_watts_max", "device_cpu_power_watts_max",
    "system_power_watts_max", "endurance_years_min",
]  # fmt: skip

BOUNDS: tuple[BoundName, ...] = get_args(BoundName)
"""Every bound, in the order in which they are judged and shown."""


class Sla(Section):
    """Bounds that a recommended configuration keeps with the stated confidence.

    Throughput and operations count useful work and bound what the configuration is able to
    carry, whatever the demand. Power is the mean at the demanded rate.

    Attributes:
        throughput_bytes_per_second_min: Useful bytes a second that it must be able to carry.
        iops_min: Useful operations a second that it must be able to carry.
        latency_mean_ns_max: Mean latency of a request; likewise the percentiles.
        device_power_watts_max: Mean power of the drive; likewise CPU, both together, and the whole
            system.
        endurance_years_min: How long the rated endurance must last at this rate of writing.
        confidence: One-sided probability with which each bound is kept, 0.5 to 0.99.
        confidences: By bound, where one is to be surer or less sure than the others.
        soft: Bounds that are preferred: kept where anything keeps them beside the others, else
            missed by as little as possible.
        directions: By bound, where it is meant for reads or writes only.
        allow_weaker_durability: Whether a recommendation may let a power cut take more than it
            takes today; never otherwise.
    """

    throughput_bytes_per_second_min: Positive | None = None
    iops_min: Positive | None = None
    latency_mean_ns_max: Positive | None = None
    latency_p50_ns_max: Positive | None = None
    latency_p99_ns_max: Positive | None = None
    latency_p999_ns_max: Positive | None = None
    device_power_watts_max: Positive | None = None
    cpu_power_watts_max: Positive | None = None
    device_cpu_power_watts_max: Positive | None = None
    system_power_watts_max: Positive | None = None
    endurance_years_min: Positive | None = None
    confidence: Confidence = 0.9
    confidences: dict[BoundName, Confidence] = Field(default_factory=dict)
    soft: tuple[BoundName, ...] = ()
    directions: dict[BoundName, Literal["read", "write"]] = Field(default_factory=dict)
    allow_weaker_durability: Truth = False

    @model_validator(mode="after")
    def _not_contradictory(self) -> Self:
        percentiles = [
            (name, getattr(self, name))
            for name in ("latency_p50_ns_max", "latency_p99_ns_max", "latency_p999_ns_max")
            if getattr(self, name) is not None
        ]
        for (low_name, low), (high_name, high) in pairwise(percentiles):
            if high < low:
                raise ValueError(
                    f"{high_name}: {high:g} ns is below {low_name} = {low:g} ns, although the "
                    "higher percentile of a latency is never the smaller one; the two are swapped "
                    "or one of them is in another unit"
                )
        for whole, parts in _INCLUDES.items():
            most = getattr(self, whole)
            for name in parts:
                part = getattr(self, name)
                if most is not None and part is not None and part > most:
                    raise ValueError(
                        f"{name}: {part:g} W is more than the {most:g} W of {whole}, "
                        "which includes it; lower it, leave it out or raise the other bound"
                    )
        for field in ("confidences", "soft", "directions"):
            for name in getattr(self, field):
                if getattr(self, name) is None:
                    raise ValueError(f"{field}: {name} is not bound; state it, or leave it out")
        return self

    def bounds(self) -> dict[str, float]:
        """The bounds that are set, by field name, in the order of the fields."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    def confidence_of(self, bound: str) -> float:
        """One-sided probability with which a bound (or the demand) is kept."""
        own = (value for name, value in self.confidences.items() if name == bound)
        return next(own, self.confidence)


_INCLUDES = {
    "system_power_watts_max": (
        "device_power_watts_max", "cpu_power_watts_max", "device_cpu_power_watts_max",
    ),
    "device_cpu_power_watts_max": ("device_power_watts_max", "cpu_power_watts_max"),
}  # fmt: skip


def confidence_scale(confidence: float) -> float:
    """Factor from the half width of a 90 % interval to the margin of a one-sided bound.

    A normal quantile: at 0.95 one-sided it is 1, at 0.5 it is 0 (the value itself).
    """
    return NormalDist().inv_cdf(confidence) / NORMAL_90
