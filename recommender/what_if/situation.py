"""Everything that a change can change: a drive, a question about it, and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import AskedConditions, Positive, Section
from iojoule.recommender.request import Scope, WorkloadProfile

HOUR_SECONDS = 3600.0


class PowerCap(Section):
    """Power that may be drawn for a while.

    Attributes:
        watts: The most, by all drives of the situation (and by the host, as the scope says).
        seconds: For how long.
        scope: Whose power; None means the question's.
    """

    watts: Positive
    seconds: Positive = HOUR_SECONDS
    scope: Scope | None = None


@dataclass(frozen=True)
class Situation:
    """What is asked about.

    Attributes:
        profile: Answers for the drive.
        workload: What is asked of it, of all drives together.
        drives: How many share the load evenly.
        preset: The simulated drive that stands for this one, a file or a preset's name; None means
            the preset of the drive's own name.
        geometry: Fields of the simulated drive that are set otherwise, with their values.
        cap: A power cap for a while.
        conditions: Of the drive, and what the intervals are about.
    """

    profile: DeviceProfile
    workload: WorkloadProfile
    drives: int = 1
    preset: str | None = None
    geometry: tuple[tuple[str, Any], ...] = ()
    cap: PowerCap | None = None
    conditions: AskedConditions = field(default_factory=AskedConditions)


ProfileOf = Callable[[str], DeviceProfile]
"""Finds the profile of a drive that is named, by id or file."""
