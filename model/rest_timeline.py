"""How a SATA drive rests along a time line: a link that sleeps, platters that stop and start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.links import SATA_BYTES_PER_SECOND
from iojoule.datasets.profile import DeviceProfile, Parameter, Standby, WriteState
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.frame import Frame
from iojoule.model.host_settings import LINK, STANDBY

Floats = NDArray[np.float64]

BEYOND_BYTES = 1e15
"""More than any time line writes."""


def unchanging(profile: DeviceProfile) -> WriteState:
    """The write state of a disk: no cache whose filling would change anything, no work left over.

    Its own cache holds less than a second of writing, which its surfaces already have behind them.
    """
    link = profile.link_bytes_per_second
    rate = link.value if link is not None else SATA_BYTES_PER_SECOND

    def number(name: str, value: float, unit: str) -> Parameter:
        return Parameter(
            name=name, value=value, sd=0.0, unit=unit, evidence=Evidence.DATASHEET,
            source="platters are written in place",
        )  # fmt: skip

    return WriteState(
        cached_bytes=number("cached_bytes", BEYOND_BYTES, "bytes"),
        transition_bytes=number("transition_bytes", 2.0 * BEYOND_BYTES, "bytes"),
        collecting_bytes_per_second=number("collecting_bytes_per_second", rate, "bytes/s"),
        recovery_bytes_per_second_per_byte=number("recovery_bytes_per_second_per_byte", 0.0, "1/s"),
        background_joules_per_byte=number("background_joules_per_byte", 0.0, "J/B"),
        background_seconds_after_write={},
    )


@dataclass
class Resting:
    """What a drive does in the idle phases of a time line, and what it takes to serve after them.

    Attributes:
        slumber_watts: With the link asleep; None where it stays awake.
        standby: Of a disk; None where its platters go on turning.
        timer_seconds: Until they stop.
        spin_up_left: Seconds that are left until they turn again.
    """

    slumber_watts: float | None
    standby: Standby | None
    timer_seconds: float
    spin_up_left: float = 0.0

    @classmethod
    def of(cls, profile: DeviceProfile, frame: Frame) -> Resting:
        """As the first row's host lets the drive rest."""
        idle, (policy, timer) = profile.idle, frame.host[0, [LINK, STANDBY]]
        asleep = idle is not None and idle.link is not None and policy > 0
        stops = idle is not None and idle.standby is not None and timer > 0
        return cls(
            idle.link.slumber_watts.value if asleep and idle and idle.link else None,
            idle.standby if stops and idle else None,
            float(timer) if stops else np.inf,
        )

    def idle_watts(self, spinning: Floats) -> Floats:
        """Idle power of every run with the link as it is, from that with the link awake."""
        if self.slumber_watts is None:
            return spinning
        return np.minimum(spinning, self.slumber_watts)

    def watts(self, spinning: Floats, quiet_seconds: float, step: float) -> Floats:
        """Mean idle power over a step that begins after some seconds of quiet, by run."""
        if self.standby is None:
            return spinning
        still = float(np.clip((quiet_seconds + step - self.timer_seconds) / step, 0.0, 1.0))
        if still > 0.0:
            self.spin_up_left = self.standby.exit_seconds.value
        stopped = np.minimum(spinning, self.standby.watts.value)
        return np.asarray((1.0 - still) * spinning + still * stopped)

    def spinning_up(self, step: float) -> tuple[float, float]:
        """Share of a step in which the platters get up to speed, and the watts meanwhile."""
        if self.standby is None or self.spin_up_left <= 0.0:
            return 0.0, 0.0
        share = min(self.spin_up_left / step, 1.0)
        self.spin_up_left -= share * step
        return share, self.standby.spin_up_watts.value
