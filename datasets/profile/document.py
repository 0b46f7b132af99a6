"""The device profile as one document: what was fitted, on what, and where it holds."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from iojoule.datasets.links import SATA_BYTES_PER_SECOND, Interface, Medium
from iojoule.datasets.profile.assessment import Assessment
from iojoule.datasets.profile.drive import DevicePower, FlushCost, IdleBehaviour, WriteState
from iojoule.datasets.profile.evidence import Ladder
from iojoule.datasets.profile.host import (
    HostOperation,
    HostPerformance,
    HostPower,
    SystemPower,
    carried_over,
)
from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.profile.performance import MixedEffect, PowerStateEffect, Surface
from iojoule.datasets.profile.rebuilt import Rebuilt
from iojoule.datasets.profile.simulated import Simulated
from iojoule.datasets.profile.state_residual import StateResidual
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Operation, Pattern

FACTS_RECIPE = "facts"
"""Recipe of a profile that no measurement carries: built from a drive's facts alone."""

DATASETS_RECIPE = "datasets"
"""Recipe of a profile that a user fitted from datasets."""


class DriveRating(Section):
    """What a drive is made for: beyond it nothing can be asked. None: it is not stated.

    Attributes:
        interface: How it is attached.
        medium: What holds the data: no moving parts, or the platters of a hard disk.
        pcie_generation: The latest that it speaks; it falls back to earlier ones.
        pcie_lanes: The most that it has.
        temperature_celsius: Lowest and highest at which it is rated to work.
    """

    interface: Interface | None = None
    medium: Medium | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    temperature_celsius: tuple[float, float] | None = None


class ValidFor(Section):
    """Outside these conditions an answer widens.

    `device_serial_hash` names the one drive that was measured; None where nobody said, or several.
    """

    firmware: list[str]
    pcie_generation: list[int]
    aspm_policy: str | None = None
    temperature_celsius: tuple[float, float] | None = None
    power_loss_protection: bool | None = None
    device_serial_hash: str | None = None
    notes: list[str]


class SourceRecord(Section):
    """One source of the fit: a file or a publication."""

    name: str
    citation: str
    licence: str
    rows_used: int
    rows_excluded: int
    sha256: str | None
    notes: list[str]


class DeviceProfile(Section):
    """Everything fitted for one SSD model; the JSON file is this, field by field.

    `write_buffer_bytes` are those that the drive answers before its flash has taken them (its sd is
    in log units); None: unknown. `other_conditions` names those of a question that are known to
    differ from what was measured (`model.evaluate.validity`): no answer is then better than
    extrapolated. `between_sessions_relative_sd` is how far another session of the measured drive
    and host lies from the answers; None: the prior counts.
    """

    schema_version: int
    device: str
    model_name: str
    profile_version: str
    generator: str
    recipe: str
    sources: list[SourceRecord]
    valid_for: ValidFor
    defaults: dict[str, str | int | float | bool]
    default_sources: dict[str, str]
    max_transfer_bytes: int
    link_bytes_per_second: Parameter | None = None
    capacity_bytes: int | None
    endurance_bytes_written: Parameter | None
    between_drives_relative_sd: Parameter
    between_sessions_relative_sd: Parameter | None = None
    surfaces: list[Surface]
    host: HostPerformance
    power_state_effects: list[PowerStateEffect]
    mixed: list[MixedEffect]
    device_power: DevicePower | None
    write_state: WriteState | None
    host_power: HostPower | None
    system_power: SystemPower | None
    assessment: Assessment | None = None
    ladder: Ladder | None = None
    idle: IdleBehaviour | None = None
    host_operation: HostOperation | None = None
    simulated: Simulated | None = None
    state_residuals: list[StateResidual] | None = None
    rebuilt: Rebuilt | None = None
    flush: FlushCost | None = None
    write_buffer_bytes: Parameter | None = None
    rating: DriveRating = Field(default_factory=DriveRating)
    other_conditions: list[str] = Field(default_factory=list)
    gaps: list[str]

    @model_validator(mode="before")
    @classmethod
    def _earlier_host(cls, data: Any) -> Any:
        return carried_over(data, "host_power", "system_power")

    @property
    def interface(self) -> Interface | None:
        """How the drive is attached; None where neither its rating nor its link says."""
        link = self.link_bytes_per_second
        if self.rating.interface is None and link is not None:
            return "sata" if link.value == SATA_BYTES_PER_SECOND else "nvme"
        return self.rating.interface

    @property
    def is_disk(self) -> bool:
        """Whether it is a hard disk."""
        return self.rating.medium == "disk"

    def surface(self, operation: Operation | str, pattern: Pattern | str) -> Surface | None:
        """Return the surface of one operation and pattern, or None where nothing is known."""
        for surface in self.surfaces:
            if surface.operation == operation and surface.pattern == pattern:
                return surface
        return None
