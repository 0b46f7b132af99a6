"""What a recipe says of the drive's power and of its state."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence, Pattern
from iojoule.model.fitting.recipe.sourced import Figure, Positive, Sourced


class PowerPoint(Sourced):
    """A published power while serving: rates in bytes and operations a second."""

    read_bytes_per_second: float = 0.0
    read_operations_per_second: float = 0.0
    write_bytes_per_second: float = 0.0
    write_operations_per_second: float = 0.0
    collecting: float = 0.0
    watts: Positive
    sd: Positive


class DevicePowerRecipe(Section):
    """Priors and published figures of the device-power law.

    `state_background_watts` says by power state what the prior of `background_watts` says at PS0.
    """

    priors: dict[str, Figure]
    noise_watts: Positive = 0.02
    idle_watts: list[Figure]
    cap_watts: list[Positive]
    peak_watts: Figure
    points: list[PowerPoint] = Field(default_factory=list)
    state_background_watts: dict[int, Figure] = Field(default_factory=dict)
    condition: str


class CacheSize(Sourced):
    """A figure of how many bytes an empty drive takes before it slows down."""

    bytes: Positive
    log_sd: Positive
    evidence: Evidence = Evidence.PUBLISHED


class AfterWrites(Sourced):
    """Work seen after writing `bytes_written`; `watts_above_idle` where a meter saw it."""

    power_state: int = 0
    pattern: Pattern = Pattern.SEQUENTIAL
    bytes_written: Positive
    seconds: Positive
    log_sd: Positive
    watts_above_idle: Positive | None = None
    evidence: Evidence = Evidence.PUBLISHED


class CollectingRate(Sourced):
    """A figure of what a full cache leaves of the rate, by pattern; in bytes a second."""

    pattern: Pattern
    bytes_per_second: Positive
    log_sd: Positive


class Overwriting(Sourced):
    """A figure of how much longer a random write waits where its place holds data already."""

    seconds: Positive
    log_sd: Positive


class WriteStateRecipe(Section):
    """What is published or was characterised about writes; a series fills in the rest.

    `background_share` says where the power of background work lies between idle and the cap.
    """

    cache: list[CacheSize] = Field(default_factory=list)
    static_bytes: Figure | None = None
    bits_per_cell: int = 3
    after_writes: list[AfterWrites] = Field(default_factory=list)
    background_share: Figure | None = None
    background_joules_per_byte: Figure | None = None
    collecting: list[CollectingRate] = Field(default_factory=list)
    overwriting: list[Overwriting] = Field(default_factory=list)


class GapSeen(Sourced):
    """What the drive did in a gap of `seconds`: for how long it drew idle power, 0 for never."""

    seconds: Positive
    idle_seconds: float


class WakeSeen(Sourced):
    """How long the first request after a rest waited."""

    seconds: Positive
    log_sd: Positive


class ApstSeen(Sourced):
    """Power with autonomous transitions over that without, in a cycle of requests and gaps."""

    power_ratio: Positive
    gap_seconds: Positive
    period_seconds: Positive
    power_watts: Positive
    sd: Positive


class IdleRecipe(Section):
    """What is published about gaps; the power-state table of the catalogue comes beside it."""

    gaps: list[GapSeen] = Field(default_factory=list)
    wakes: list[WakeSeen] = Field(default_factory=list)
    apst_idle_seconds: Figure | None = None
    apst_state: int | None = None
    apst_seen: list[ApstSeen] = Field(default_factory=list)
    aspm_policy: Literal["disabled", "enabled"] | None = None
