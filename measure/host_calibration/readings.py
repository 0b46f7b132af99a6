"""What was recorded during a load, and CPU power where only the wall was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from iojoule.datasets.profile import HostPower
from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.errors import SensorError
from iojoule.measure.host_calibration.plan import Step
from iojoule.measure.host_calibration.runs import Done

CPU_SHARE = (0.45, 0.15)
"""Share of an idle machine's wall power that its processors draw: 50 % at the least load in
000 5.2, less in machines with more drives and fans."""

SUPPLY_SLOPE = (1.12, 0.08)
"""Converters of board and supply lose 5 to 20 % of a further watt."""


@dataclass(frozen=True)
class Reading:
    """One load and what was recorded meanwhile; powers with their standard errors."""

    done: Done
    busy_cores: float
    hertz: float | None
    cpu_watts: tuple[float, float] | None
    dram_watts: tuple[float, float] | None
    wall_watts: tuple[float, float] | None

    @property
    def step(self) -> Step:
        """What ran."""
        return self.done.step

    @property
    def others_cores(self) -> float:
        """Cores that nobody of ours kept busy."""
        return max(self.busy_cores - self.done.own_cores, 0.0)

    @property
    def plain(self) -> bool:
        """Whether nothing but the load was set."""
        return self.step.hertz is None and self.step.sleep_limit is None


def from_the_wall(readings: Sequence[Reading]) -> list[Reading]:
    """Readings with CPU power taken from the wall: an assumed idle part, and what it rises by.

    Raises:
        SensorError: Idle wall power is unknown.
    """
    idle = [one.wall_watts[0] for one in readings if one.wall_watts and one.step.kind == "idle"]
    if not idle:
        raise SensorError(
            "the meter at the wall gave no mean for an idle host; take more time with --minutes"
        )
    base = min(idle)
    return [
        replace(
            one,
            cpu_watts=(
                max(CPU_SHARE[0] * base + (one.wall_watts[0] - base) / SUPPLY_SLOPE[0], 0.1),
                one.wall_watts[1],
            )
            if one.wall_watts
            else None,
            dram_watts=None,
        )
        for one in readings
    ]


def unsure_of_idle(power: HostPower, readings: Sequence[Reading]) -> HostPower:
    """The law with what the wall cannot tell: how much of its idle power is the processors'."""
    base = min(one.wall_watts[0] for one in readings if one.wall_watts)
    covariance = np.array(power.covariance)
    covariance[0, 0] += (CPU_SHARE[1] * base) ** 2
    loss = SUPPLY_SLOPE[1] / SUPPLY_SLOPE[0]
    values = np.array([one.value for one in power.parameters])
    covariance[1:, 1:] += np.outer(loss * values[1:], loss * values[1:])
    parameters = [
        one.model_copy(
            update={
                "sd": float(np.sqrt(covariance[place, place])),
                **({"evidence": Evidence.DATASHEET} if place == 0 else {}),
            }
        )
        for place, one in enumerate(power.parameters)
    ]
    return power.model_copy(update={"parameters": parameters, "covariance": covariance.tolist()})
