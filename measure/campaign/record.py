"""What is kept of every run: a JSON file in its folder, written when the run is over."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from iojoule.datasets.schema import Measurement, Section
from iojoule.datasets.verdict import RunVerdict
from iojoule.datasets.vocabulary import Verdict

RECORD_SCHEMA_VERSION: Literal[2] = 2
"""Version 2 added verdict, attempt and idle bracket; records of version 1 are not judged."""


class Status(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"


def folder_name(number: int, sweep: str) -> str:
    """Name of a run's folder."""
    return f"{number:05d}-{sweep}"


class WindowRecord(Section):
    """Power averaged over windows of one width, in watts."""

    p50_watts: float
    p99_watts: float
    maximum_watts: float


class PowerRecord(Section):
    """Power of one scope over the measured part of a run.

    Attributes:
        sensor: Whose samples these are.
        rails: Which of its rails were added up.
        mean_watts: None where the sensor is too slow to say, with the `reason`.
        standard_error_watts: Of the mean, from batch means.
        calibration_uncertainty_watts: Which averaging does not remove; None = unknown.
        energy_joules: Over the measured part.
        over_1_ms: Averages over windows of 1 ms; None where the sensor is too slow.
        over_10_ms: Likewise.
        over_10_s: Likewise; None in a shorter run too.
        samples: Received in the measured part.
        lost: Samples lost in it.
        coverage: Share of the time that samples cover.
        gaps: Stretches without samples, monotonic ns.
    """

    sensor: str
    rails: list[str]
    mean_watts: float | None
    standard_error_watts: float | None
    calibration_uncertainty_watts: float | None
    energy_joules: float | None
    over_1_ms: WindowRecord | None
    over_10_ms: WindowRecord | None
    over_10_s: WindowRecord | None
    samples: int
    lost: int
    coverage: float
    gaps: list[tuple[int, int]]
    reason: str | None


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
        verdict: Whether it may be believed; None = nobody judged it.
        attempt: From 1; the folders of earlier attempts are kept.
        idle_bracket: How often idle power of its power state had been measured before it.
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

    schema_version: Literal[1, 2] = RECORD_SCHEMA_VERSION
    number: int
    sweep: str
    repeat: int
    point: str
    status: Status
    reason: str | None = None
    verdict: RunVerdict | None = None
    attempt: int = 1
    idle_bracket: int = 0
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

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks for making it again; what nobody judged counts."""
        judged = self.verdict is not None and self.verdict.verdict is not Verdict.GOOD
        return self.status is Status.DONE and not judged

    def judged(self, verdict: RunVerdict) -> RunRecord:
        """The same run under another verdict, which its row bears too."""
        measurement = self.measurement
        if measurement is not None:
            measurement = measurement.model_copy(update={"judgement": verdict.judgement})
        return self.model_copy(update={"verdict": verdict, "measurement": measurement})
