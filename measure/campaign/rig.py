"""Everything that a campaign on a real drive works with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.measure.campaign.bench import Say
from iojoule.measure.campaign.conditions import DriveFacts
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.fio import Fio
from iojoule.measure.host.facts import HostFacts
from iojoule.measure.host.journal import HostState
from iojoule.measure.sensors.protocol import Sensor


@dataclass(frozen=True)
class Rig:
    """Everything a campaign on a real drive works with.

    Attributes:
        drive: The drive and what it says of itself.
        controller: Its controller; None = none is known.
        host: Facts of the host.
        fio: The program.
        sensors: All instruments.
        state: Remembers and restores what is changed.
        say: Tells people what is going on.
    """

    drive: DriveFacts
    controller: NvmeController | None
    host: HostFacts
    fio: Fio
    sensors: Sequence[Sensor]
    state: HostState
    say: Say
