"""Netio PowerPDU: watts at the wall of one outlet or of all, through its JSON interface.

It is only read (GET): a POST to the same address switches outlets. It updates twice a second.
Source: NETIO products, "NETIO M2M API protocol - JSON".
"""

from __future__ import annotations

import math
from typing import Any

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.http_json import JsonServer
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 0.5
JOULES_PER_WATT_HOUR = 3600.0


def from_options(options: Options) -> Netio:
    """`netio:HOST[:PORT][,outlet=N][,every=SECONDS]`."""
    options.known("outlet", "every")
    return Netio(
        options.needed_address("netio:pdu.example:80"),
        outlet=options.get("outlet", int),
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Netio(PolledSensor):
    """One outlet by its printed number, or the sum of all (None)."""

    def __init__(
        self, address: str, *, outlet: int | None, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        suffix = "" if outlet is None else f",outlet={outlet}"
        super().__init__(
            f"netio:{address}{suffix}", interval_seconds, repeats_are_stale=True, patience=2
        )
        self._server = JsonServer(address, "IOJOULE_NETIO_USER", "IOJOULE_NETIO_PASSWORD")
        self._outlet = outlet
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Reads the device once.

        Raises SensorError if it does not answer, or has no such outlet.
        """
        if self._probe is None:
            try:
                document = self._server.get("/netio.json")
                self._values(document)
            finally:
                self._server.close()
            agent = document.get("Agent", {})
            identity = {key: str(agent[key]) for key in ("Model", "Version") if key in agent}
            rails = (
                Rail("wall-load", "watts", Kind.POWER, Scope.SYSTEM, 1.0),
                Rail("wall-current", "amperes", Kind.GAUGE, Scope.HOST, 1e-3),
                Rail(
                    "wall-energy",
                    "joules",
                    Kind.ENERGY,
                    Scope.SYSTEM,
                    JOULES_PER_WATT_HOUR,
                    counts=False,
                ),
            )
            self._probe = Probe(rails, 1 / self._interval, identity)
        return self._probe

    def poll(self) -> list[float]:
        """Watts, amperes, joules."""
        return self._values(self._server.get("/netio.json"))

    def end(self) -> None:
        """Close the connection."""
        self._server.close()

    def _values(self, document: Any) -> list[float]:
        try:
            if self._outlet is None:
                total = document["GlobalMeasure"]
                keys = ("TotalLoad", "TotalCurrent", "TotalEnergy")
            else:
                outlets = {int(output["ID"]): output for output in document["Outputs"]}
                if self._outlet not in outlets:
                    raise SensorError(
                        f"{self._server.url} has no outlet {self._outlet}, only "
                        f"{', '.join(map(str, outlets))}"
                    )
                total = outlets[self._outlet]
                keys = ("Load", "Current", "Energy")
            load, current, energy = (float(total.get(key, math.nan)) for key in keys)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SensorError(
                f"{self._server.url}/netio.json is not what a metered Netio says ({error!r})"
            ) from error
        if math.isnan(load):
            raise SensorError(f"{self._server.url}: this outlet or model does not measure power")
        return [load, current * 1e-3, energy * JOULES_PER_WATT_HOUR]
