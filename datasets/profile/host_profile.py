"""The host profile: everything that `iojoule measure host` found of one machine.

It stands beside a device profile that was fitted on another host: paths, CPU power and wall power
are then those of the user's own machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from iojoule.datasets.profile.files import document_bytes, parse_document, write_document
from iojoule.datasets.profile.host import (
    HostOperation,
    HostPerformance,
    HostPower,
    SystemPower,
    carried_over,
)
from iojoule.datasets.schema import Section

HOST_PROFILE_SCHEMA_VERSION = 1
"""Version of the host profile's JSON layout; a reader refuses anything newer."""


class HostProfile(Section):
    """What one machine costs, drive excluded.

    Attributes:
        kind: Tells it from a device profile.
        performance: Core time of the paths that were run; None where no file was named.
        power: Watts of packages and memory.
        system: Watts at the wall; None without a meter there.
        operation: What frequency, sleep states and NUMA do.
        drive_idle_watts_included: Whether the wall's floor holds idle drives of the machine.
        runs: How many loads were measured.
        others_busy_cores: Cores that others kept busy meanwhile, in the mean.
        gaps: What could not be found, and why.
    """

    schema_version: int
    kind: Literal["iojoule-host-profile"] = "iojoule-host-profile"
    host_id: str
    cpu_model: str | None
    cpu_cores: int
    kernel_version: str
    generator: str
    measured_utc: str
    sensors: list[str]
    performance: HostPerformance | None
    power: HostPower
    system: SystemPower | None
    operation: HostOperation | None
    drive_idle_watts_included: bool = True
    runs: int
    others_busy_cores: float
    gaps: list[str]

    @model_validator(mode="before")
    @classmethod
    def _earlier_law(cls, data: Any) -> Any:
        return carried_over(data, "power", "system")


def write_host_profile(profile: HostProfile, path: Path) -> None:
    """Write a host profile atomically; raises as `files.write_document`."""
    write_document(profile, path)


def parse_host_profile(text: bytes, where: str) -> HostProfile:
    """Read a host profile from JSON bytes; raises as `files.parse_document`."""
    about = ("a host profile", HOST_PROFILE_SCHEMA_VERSION, "measure it again")
    return parse_document(HostProfile, text, where, about)


def read_host_profile(path: Path) -> HostProfile:
    """Read a host profile file; raises as `parse_host_profile`, and where it is unreadable."""
    return parse_host_profile(document_bytes(path), str(path))
