"""Smart plugs with a meter and JSON over HTTP, read only; a module per make states the fields.

Power is that of the whole socket, thus of scope `system`. Their accuracy is seldom stated and stays
unknown here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.http_json import JsonServer
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0


class HttpPlug(PolledSensor):
    """One metered socket: watts, and joules where it counts them.

    Args:
        variables: Environment variables of user and password.
        joules_step: One step of the energy counter.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        variables: tuple[str, str],
        watts_step: float,
        joules_step: float,
        interval_seconds: float,
    ) -> None:
        super().__init__(name, interval_seconds, repeats_are_stale=True, patience=2)
        self.server = JsonServer(address, *variables)
        self._steps = watts_step, joules_step
        self._probe: Probe | None = None

    @abstractmethod
    def reading(self) -> tuple[Any, Any]:
        """Watts and joules as the plug states them; None where it has none.

        Raises SensorError, or what a missing field of its document raises.
        """

    def probe(self) -> Probe:
        """Reads the plug once. Raises SensorError if it does not answer or measures nothing."""
        if self._probe is None:
            try:
                self._values()
            finally:
                self.server.close()
            watts, joules = self._steps
            rails = (
                Rail("wall-load", "watts", Kind.POWER, Scope.SYSTEM, watts),
                Rail("wall-energy", "joules", Kind.ENERGY, Scope.SYSTEM, joules, counts=False),
            )
            self._probe = Probe(rails, 1 / self._interval, {})
        return self._probe

    def poll(self) -> list[float]:
        """Watts, joules."""
        return [*self._values()]

    def end(self) -> None:
        """Close the connection."""
        self.server.close()

    def _values(self) -> tuple[float, float]:
        try:
            watts, joules = self.reading()
            pair = float(watts), math.nan if joules is None else float(joules)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise SensorError(
                f"{self.server.url} is not what a plug with a meter answers ({error!r})"
            ) from error
        if not math.isfinite(pair[0]):
            raise SensorError(f"{self.server.url} states {watts!r} as its power")
        return pair
