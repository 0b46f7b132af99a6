"""What I/O costs the CPU: core time by the profile, watts of a busy core by RAPL.

    joules of a drive's commands = their core seconds x watts of one more busy core

Core seconds are what the profile's path to the drive takes for the commands that it completed, no
more than the kernel spent: they are part of its system and interrupt time (/proc/stat). What one
more busy core draws is followed as the slope of the packages' watts against busy cores,

    watts = rest + slope x busy cores,

by a Kalman filter whose state walks at random: frequencies and neighbours change. A host that is
always equally busy tells nothing of it, and leaves what was assumed before.

Divided by CPU time like this, the joules are part of those that Kepler and Scaphandre tell of
processes, from the same counters: they are not to be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.cpu import CoreSeconds, core_seconds
from iojoule.measure.sensors.protocol import Scope
from iojoule.measure.sensors.rapl import HIGHEST_WATTS, Rapl
from iojoule.meter.counters import Intervals
from iojoule.meter.readings import Readings
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.quantities import NORMAL_90

SLOPE_WATTS, SLOPE_SD = 6.0, 4.0
"""Of one more busy core, before the host showed any; an assumption. A busy core of a 2 x 10 core
server draws 1.8 W and up to 14 W more by keeping the packages awake (000 5.2), all of them 8 W."""

LEAST_WATTS = 0.5
"""No busy core draws less (assumption)."""

REST_SD = 0.5
"""How far the watts at rest may be from what the first interval says, as a share of its watts."""

WALK = 0.02
"""How far both walk in a second, as a share of how unsure they were at first; an assumption."""

SCATTER = 0.1
"""Scatter of the packages' watts about the line before any was seen, as a share."""

FORGET = 0.98
"""What an interval leaves of the scatter seen before."""

CORE_LOG_SD = 0.35
"""Log sd of the core time of a command: which engine an application uses, and how deep, is not
known; psync and io_uring at one in flight differ by 1.4, io_uring at 1 and at 64 by 2.8
(profiles' `host.paths`)."""


@dataclass(frozen=True)
class CpuReading:
    """What the CPU drew for one drive's commands.

    Attributes:
        watts: Mean of the last interval.
        joules: Since the meter began, with the 90 % interval `joules_low` to `joules_high`.
    """

    watts: float = 0.0
    joules: float = 0.0
    joules_low: float = 0.0
    joules_high: float = 0.0


class CpuMeter:
    """Follows the packages of a host.

    Args:
        powercap: Root of the powercap tree.
        stat: `/proc/stat`.

    Attributes:
        readings: By the key of the drive.

    Raises:
        SensorError: There is no RAPL, or it cannot be read.
    """

    def __init__(self, powercap: Path, stat: Path) -> None:
        self.readings: dict[str, CpuReading] = {}
        self._rapl, self._stat = Rapl(powercap), stat
        rails = self._rapl.probe().rails
        self._packages = [rail.counts and rail.scope is Scope.CPU for rail in rails]
        if not any(self._packages):
            names = ", ".join(rail.name for rail in rails)
            raise SensorError(f"{powercap} counts {names}, but no CPU package")
        self._line = _Line()
        self._before = self._look()

    def step(self, intervals: Intervals, readings: Readings) -> dict[str, float]:
        """Account for one interval of the meter; called at once after it.

        Args:
            intervals: What the drives did.
            readings: Of the meter.

        Returns:
            Joules for each drive in the interval, by its key; empty where the counters of the
            packages tell nothing of it.

        Raises:
            SensorError: They cannot be read any more.
        """
        seconds, cores = intervals.seconds, _cores(intervals, readings)
        (total_joules, times), (joules_before, times_before) = self._look(), self._before
        self._before = total_joules, times
        drawn = total_joules - joules_before
        busy, kernel = times.busy - times_before.busy, times.kernel - times_before.kernel
        if not self._is_plain(seconds, drawn, busy, kernel):
            return {}
        self._line.learn(drawn / seconds, busy / seconds, seconds)
        total = sum(cores.values())
        share = min(1.0, max(kernel, 0.0) / total) if total > 0 else 0.0
        slope, sd = self._line.slope, self._line.slope_sd
        relative = float(np.hypot(CORE_LOG_SD, sd / slope))
        ratio = float(np.exp(NORMAL_90 * np.sqrt(np.log1p(relative**2))))
        most = drawn / (total * share * slope) if total * share * slope > 0 else 1.0
        joules = {}
        for key, own in cores.items():
            middle, before_it = own * share * slope, self.readings.get(key, CpuReading())
            joules[key] = middle * min(1.0, most)
            self.readings[key] = CpuReading(
                watts=joules[key] / seconds,
                joules=before_it.joules + joules[key],
                joules_low=before_it.joules_low + min(middle / ratio, joules[key]),
                joules_high=before_it.joules_high + middle * min(ratio, most),
            )
        return joules

    def _look(self) -> tuple[float, CoreSeconds]:
        totals = zip(self._rapl.poll(), self._packages, strict=True)
        return sum(joules for joules, counts in totals if counts), core_seconds(self._stat)

    def _is_plain(self, seconds: float, drawn: float, busy: float, kernel: float) -> bool:
        """Whether counters rose as they should: none stood, began anew, or wrapped twice."""
        usual = 0.0 < drawn <= HIGHEST_WATTS * seconds * sum(self._packages)
        return seconds > 0 and usual and min(busy, kernel) >= 0 and not self._rapl.missed(seconds)


def _cores(intervals: Intervals, readings: Readings) -> dict[str, float]:
    """Core seconds that the commands of each drive took, by its key."""
    each = readings.command_core_seconds[readings.rows(intervals.drives)]
    keys = (drive.key for drive in intervals.drives)
    return dict(zip(keys, (each * intervals.counts).sum(axis=1).tolist(), strict=True))


class _Line:
    """Package watts against busy cores, followed."""

    def __init__(self) -> None:
        self._state = np.zeros(2)
        self._prior: Floats | None = None
        self._covariance = np.zeros((2, 2))
        self._scatter = 0.0
        self._seen = 0

    @property
    def slope(self) -> float:
        """W of one more busy core."""
        return max(float(self._state[1]), LEAST_WATTS)

    @property
    def slope_sd(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt(self._covariance[1, 1]))

    def learn(self, watts: float, busy: float, seconds: float) -> None:
        """Take one interval of so many seconds."""
        if self._prior is None:
            self._state = np.array([watts - SLOPE_WATTS * busy, SLOPE_WATTS])
            rest_sd = max(REST_SD * watts, SLOPE_SD * busy)
            self._prior = np.diag([rest_sd, SLOPE_SD]) ** 2
            self._covariance = self._prior.copy()
            self._scatter = (SCATTER * watts) ** 2
        x = np.array([1.0, busy])
        self._covariance = self._covariance + self._prior * WALK**2 * seconds
        own = np.diag(self._covariance)
        scale = np.sqrt(np.minimum(np.diag(self._prior) / own, 1.0))
        self._covariance *= np.outer(scale, scale)
        away = watts - float(x @ self._state)
        gain = self._covariance @ x / float(x @ self._covariance @ x + self._scatter)
        self._state = self._state + gain * away
        self._covariance = self._covariance - np.outer(gain, x @ self._covariance)
        self._seen += 1
        left = watts - float(x @ self._state)
        self._scatter += max(1.0 - FORGET, 1.0 / (1.0 + self._seen)) * (left**2 - self._scatter)
