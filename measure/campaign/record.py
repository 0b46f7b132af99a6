"""What is kept of every run: a JSON file in its folder, written when the run is over."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from iojoule.datasets.schema import Measurement, Section

RECORD_SCHEMA_VERSION = 1


class Status(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


class PowerRecord(Section):
    """Power of one scope over the measured part of a run.

    Attributes:
        mean_watts: Mean; None where the sensor is too slow to say, with the reason in `why_none`.
        standard_error_watts: Of the mean, from batch means.
        calibration_uncertainty_watts: Which averaging does not remove.
        energy_joules: Over the measured part.
        p99_watts: By window length: `1ms`, `10ms`, `10s`.
        max_watts: Likewise.
        samples: Received in the measured part.
        lost: Samples lost in it.
        gaps: Stretches without samples, monotonic ns.
    """

    mean_watts: float | None
    standard_error_watts: float | None = None
    calibration_uncertainty_watts: float | None = None
    energy_joules: float | None = None
    p99_watts: dict[str, float] = Field(default_factory=dict)
    max_watts: dict[str, float] = Field(default_factory=dict)
    samples: int = 0
    lost: int = 0
    gaps: list[tuple[int, int]] = Field(default_factory=list)
    why_none: str | None = None


class SensorRecord(Section):
    """What one sensor delivered from its start to its stop."""

    samples: int
    lost: int
    errors: list[str] = Field(default_factory=list)


class RunRecord(Section):
    """One run.

    Attributes:
        status: Whether its measurement counts.
        reason: Why it failed.
        started_utc: When it began.
        wall_seconds: From the first setting to the last wait.
        fio_seconds: Of these in fio.
        waited_seconds: Of these in waiting for idle power or temperature.
        begin_monotonic_ns: Of the measured part.
        end_monotonic_ns: Of the measured part.
        littles_ratio: Throughput x mean latency / concurrency; None where it says nothing.
        measurement: What was observed.
        power: By scope.
        sensors: By name.
        notes: What is to be known of it.
    """

    schema_version: Literal[1] = 1
    number: int
    sweep: str
    repeat: int
    point: str
    status: Status
    reason: str | None = None
    started_utc: datetime
    wall_seconds: float
    fio_seconds: float = 0.0
    waited_seconds: float = 0.0
    begin_monotonic_ns: int | None = None
    end_monotonic_ns: int | None = None
    littles_ratio: float | None = None
    measurement: Measurement | None = None
    power: dict[str, PowerRecord] = Field(default_factory=dict)
    sensors: dict[str, SensorRecord] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
