"""What the lab has to know of a drive to serve it, whatever it behaves like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iojoule.measure.lab import drives
from iojoule.sim import _core
from iojoule.sim.engines.embedded import native
from iojoule.sim.physical_options import PowerOptions


@dataclass(frozen=True)
class ServedDrive:
    """A drive of the lab.

    Attributes:
        text: The file that the disk's daemon reads.
        power: Power states and transitions, as the controller tells them.
        model: What the controller says it is.
        max_transfer_bytes: Of one command; 0: no limit.
        facts: What `lab.json` says of it beyond that.
    """

    text: str
    power: PowerOptions
    model: str
    max_transfer_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def simulated(name: str) -> ServedDrive:
    """A drive of the simulator; see `drives.find` for names and errors."""
    found = drives.find(name)
    physical = found.device.physical
    return ServedDrive(
        text=_core.drive_text(native(found.device)),
        power=physical.power,
        model=found.drive.title or name,
        max_transfer_bytes=physical.controller.max_transfer_bytes,
        facts={"preset": name},
    )
