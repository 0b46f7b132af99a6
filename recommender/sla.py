"""What the service must keep: bounds on throughput, latency and power."""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import Annotated, Self

from pydantic import Field, model_validator

from iojoule.datasets.schema import Positive, Section
from iojoule.model.predictor import NORMAL_90

Confidence = Annotated[float, Field(ge=0.5, le=0.99)]

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
    "system_power_watts_max": "system_power_watts",
}
"""Bounds on mean power at the demanded rate from above."""


class Sla(Section):
    """Bounds that a recommended configuration keeps with the stated confidence.

    Throughput and operations count useful work and bound what the configuration is able to
    carry, whatever the demand. Power is the mean at the demanded rate.

    Attributes:
        throughput_bytes_per_second_min: Useful bytes a second that it must be able to carry.
        iops_min: Useful operations a second that it must be able to carry.
        latency_mean_ns_max: Mean latency of a request; likewise the percentiles.
        device_power_watts_max: Mean power of the drive; likewise CPU and whole system.
        confidence: One-sided probability with which each bound is kept, 0.5 to 0.99.
    """

    throughput_bytes_per_second_min: Positive | None = None
    iops_min: Positive | None = None
    latency_mean_ns_max: Positive | None = None
    latency_p50_ns_max: Positive | None = None
    latency_p99_ns_max: Positive | None = None
    latency_p999_ns_max: Positive | None = None
    device_power_watts_max: Positive | None = None
    cpu_power_watts_max: Positive | None = None
    system_power_watts_max: Positive | None = None
    confidence: Confidence = 0.9

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
        system = self.system_power_watts_max
        for name in ("device_power_watts_max", "cpu_power_watts_max"):
            part = getattr(self, name)
            if system is not None and part is not None and part > system:
                raise ValueError(
                    f"{name}: {part:g} W is more than the {system:g} W of system_power_watts_max, "
                    "which includes it; lower it, leave it out or raise the system's bound"
                )
        return self

    def bounds(self) -> dict[str, float]:
        """The bounds that are set, by field name, in the order of the fields."""
        return {
            name: value
            for name in (*MINIMA, *LATENCY_MAXIMA, *POWER_MAXIMA)
            if (value := getattr(self, name)) is not None
        }


def confidence_scale(confidence: float) -> float:
    """Factor from the half width of a 90 % interval to the margin of a one-sided bound.

    A normal quantile: at 0.95 one-sided it is 1, at 0.5 it is 0 (the value itself).
    """
    return NormalDist().inv_cdf(confidence) / NORMAL_90
