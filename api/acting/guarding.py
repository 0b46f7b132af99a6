"""Watches the SLA after a change, and says when it is breached.

What is seen is what the block layer and power meters tell. A bound on a percentile is compared with
the mean times what the recommendation expects between the two, because the block layer counts no
percentiles; a bound on what must be carried says something only while the drive is busy throughout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from iojoule.api.acting.answer_file import Answer
from iojoule.api.acting.errors import SlaBreachedError
from iojoule.api.reports.quantities import quantity
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.block_io import BlockWindow, Direction, between, read_counters
from iojoule.measure.errors import SensorError
from iojoule.measure.recording.recorder import Recent
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import Scope, Sensor
from iojoule.recommender.sla import LATENCY_MAXIMA, MINIMA, POWER_MAXIMA

WINDOW_SECONDS = 5.0
BREACHES_IN_A_ROW = 2
"""A breach that begins inside a window fills the next two at the latest: it is seen within 15 s."""

FEWEST_REQUESTS = 20
"""A window with fewer says nothing about latency, unless requests wait and none is completed."""

BUSY_SHARE = 0.98
"""Where the drive idles for longer, the load asks for less than the drive could carry."""

_SCOPES = {
    "device_power_watts_max": (Scope.DEVICE,),
    "cpu_power_watts_max": (Scope.CPU,),
    "device_cpu_power_watts_max": (Scope.DEVICE, Scope.CPU),
    "system_power_watts_max": (Scope.SYSTEM,),
}
_METERED = (Scope.DEVICE, Scope.CPU, Scope.SYSTEM)


@dataclass(frozen=True)
class Seen:
    """A window: what was served in a direction or in both, and mean watts by metered scope."""

    block: Callable[[Direction | None], BlockWindow]
    watts: dict[Scope, float]


class Guard:
    """Holds windows against the SLA of a recommendation.

    Args:
        answer: Has the bounds, and the percentiles that are expected over the mean.
    """

    def __init__(self, answer: Answer) -> None:
        sla = answer.sla
        self._soft = {name: one for name, one in sla.bounds().items() if name in sla.soft}
        self._bounds = {n: one for n, one in sla.bounds().items() if n not in sla.soft}
        self._directions = {str(name): one for name, one in sla.directions.items()}
        self._over_mean = {
            name: factor
            for name in LATENCY_MAXIMA
            if (factor := answer.recommended.latency_over_mean(name)) is not None
        }
        self._in_a_row = dict.fromkeys(self._bounds, 0)

    def watched(self, scopes: Sequence[Scope]) -> list[str]:
        """How each bound of the SLA is watched, in words, given the scopes that are metered."""
        said = [f"{name}: not watched, it is only preferred" for name in self._soft]
        for name, limit in self._bounds.items():
            shown = f"{name} = {quantity(name.rpartition('_')[0], limit)}"
            if name in POWER_MAXIMA and not set(_SCOPES[name]) <= set(scopes):
                said.append(f"{shown}: not watched, no --power meter of it")
            elif name in LATENCY_MAXIMA and name not in self._over_mean:
                said.append(f"{shown}: not watched, the recommendation does not say it")
            elif name in LATENCY_MAXIMA and (factor := self._over_mean[name]) != 1.0:
                said.append(f"{shown}: by {factor:.3g} times the block layer's mean latency")
            elif name in MINIMA:
                said.append(f"{shown}: while the drive is busy throughout")
            elif name in (*LATENCY_MAXIMA, *POWER_MAXIMA):
                said.append(f"{shown}: by the mean")
            else:
                said.append(f"{shown}: not watched, it shows over years")
        return said

    def take(self, seen: Seen) -> str | None:
        """Hold a window against the bounds.

        Returns:
            What was breached in `BREACHES_IN_A_ROW` windows one after the other; None = nothing.
        """
        for name, limit in self._bounds.items():
            value = self._value(name, seen)
            breached = value is not None and (value < limit if name in MINIMA else value > limit)
            self._in_a_row[name] = self._in_a_row[name] + 1 if breached else 0
            if breached and self._in_a_row[name] >= BREACHES_IN_A_ROW:
                field = name.rpartition("_")[0]
                return (
                    f"{field} is {quantity(field, value)}, the bound {quantity(field, limit)}, in "
                    f"{BREACHES_IN_A_ROW} windows of {WINDOW_SECONDS:g} s"
                )
        return None

    def _value(self, name: str, seen: Seen) -> float | None:
        """What a window says about a bound; None = nothing."""
        if name in POWER_MAXIMA:
            parts = [seen.watts.get(scope) for scope in _SCOPES[name]]
            known = [one for one in parts if one is not None]
            return sum(known) if len(known) == len(parts) else None
        block = seen.block(self._directions.get(name))
        if name in MINIMA:
            carried: float = getattr(block, MINIMA[name])
            return carried if block.busy_share >= BUSY_SHARE else None
        mean, factor = block.latency_mean_ns, self._over_mean.get(name)
        if mean is None or factor is None or 0 < block.requests < FEWEST_REQUESTS:
            return None
        return mean * factor


def watch(
    answer: Answer,
    device: BlockDevice,
    sensors: Sequence[str],
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Watch the SLA for some time.

    Args:
        answer: Has the bounds.
        device: The drive.
        sensors: Power meters, as `open_sensor` takes them.
        seconds: How long.
        say: Told how each bound is watched.

    Raises:
        SlaBreachedError: It was breached.
        DriveError: The drive has vanished.
        SensorError: A meter cannot be used or fails: nobody would see a breach then.
    """
    guard = Guard(answer)
    with ExitStack() as stack:
        meters = [_Meter(open_sensor(name), stack) for name in sensors]
        scopes = [scope for meter in meters for scope in meter.recent]
        for line in guard.watched(scopes):
            say(f"watching for {seconds:g} s: {line}")
        end = time.monotonic() + seconds
        before = read_counters(device)
        while time.monotonic() < end:
            _let_pass(meters, WINDOW_SECONDS)
            after = read_counters(device)
            watts = {scope: one for meter in meters for scope, one in meter.watts().items()}
            breach = guard.take(Seen(partial(between, before, after), watts))
            if breach is not None:
                raise SlaBreachedError(f"{device.path}: {breach}; what was set is taken back")
            before = after


def _let_pass(meters: Sequence[_Meter], seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for meter in meters:
            meter.read(min(left, 0.2) / len(meters))
        if not meters:
            time.sleep(left)


class _Meter:
    """A power meter that is read while a guard waits.

    Raises:
        SensorError: It cannot be used, or measures no power that an SLA bounds.
    """

    def __init__(self, sensor: Sensor, stack: ExitStack) -> None:
        self._sensor = sensor
        probe = sensor.probe()
        every = {scope: Recent(probe, scope) for scope in _METERED}
        self.recent = {scope: recent for scope, recent in every.items() if recent}
        if not self.recent:
            raise SensorError(f"{sensor.name}: measures no power of drive, CPU or system")
        stack.callback(sensor.stop)
        sensor.start()

    def read(self, timeout_seconds: float) -> None:
        """Take in what arrived."""
        chunk = self._sensor.read(timeout_seconds)
        for recent in self.recent.values():
            recent.add(chunk)

    def watts(self) -> dict[Scope, float]:
        """Means over the last window."""
        found = {scope: one.power(WINDOW_SECONDS) for scope, one in self.recent.items()}
        return {scope: one.mean_watts for scope, one in found.items() if one is not None}
