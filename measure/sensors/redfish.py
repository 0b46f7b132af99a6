"""Redfish: system power from a server's management controller.

Source: DMTF DSP2046, schemas Power (PowerControl[].PowerConsumedWatts) and EnvironmentMetrics
(PowerWatts.Reading), which replaces it. Most controllers update once a second or more slowly.
"""

from __future__ import annotations

from typing import Any

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.http_json import JsonServer
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0


def from_options(options: Options) -> Redfish:
    """`redfish:https://BMC[,chassis=ID][,verify=no][,every=SECONDS]`."""
    options.known("chassis", "verify", "every")
    return Redfish(
        options.needed_address("redfish:https://bmc.example"),
        chassis=options.get("chassis", str),
        verify=options.get("verify", _yes_or_no) is not False,
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
    )


class Redfish(PolledSensor):
    """The power of one chassis; None = the first that reports it.

    Many certificates are self-signed.
    """

    def __init__(
        self,
        url: str,
        *,
        chassis: str | None = None,
        verify: bool = True,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        super().__init__(f"redfish:{url}", interval_seconds, repeats_are_stale=True, patience=2)
        self._server = JsonServer(
            url if "://" in url else f"https://{url}",
            "IOJOULE_REDFISH_USER",
            "IOJOULE_REDFISH_PASSWORD",
            verify=verify,
        )
        self._chassis = chassis
        self._path: str | None = None

    def probe(self) -> Probe:
        """Finds the document with the power. Raises SensorError if none reports it."""
        if self._path is None:
            try:
                self._path = self._find()
            finally:
                self._server.close()
        rail = Rail("system", "watts", Kind.POWER, Scope.SYSTEM, 1.0)
        return Probe((rail,), 1 / self._interval, {"document": self._path})

    def poll(self) -> list[float]:
        """Watts."""
        assert self._path is not None, "start() probes"
        watts = _watts(self._server.get(self._path))
        if watts is None:
            raise SensorError(f"{self._server.url}{self._path} reports no power any more")
        return [watts]

    def end(self) -> None:
        """Close the connection."""
        self._server.close()

    def _find(self) -> str:
        if self._chassis is not None:
            folders = [f"/redfish/v1/Chassis/{self._chassis}"]
        else:
            members = self._server.get("/redfish/v1/Chassis").get("Members", [])
            folders = [str(member["@odata.id"]) for member in members if "@odata.id" in member]
        refusals = []
        for folder in folders:
            for document in ("EnvironmentMetrics", "Power"):
                path = f"{folder.rstrip('/')}/{document}"
                try:
                    if _watts(self._server.get(path)) is not None:
                        return path
                except SensorError as error:
                    refusals.append(error.message)
        detail = f" ({refusals[-1]})" if refusals else ""
        raise SensorError(
            f"{self._server.url} reports no system power in {', '.join(folders) or 'no chassis'}"
            f"{detail}: name another one with chassis=, or use ipmi"
        )


def _watts(document: Any) -> float | None:
    """Of either schema; None where it holds none."""
    try:
        if "PowerWatts" in document:
            reading = document["PowerWatts"]["Reading"]
        else:
            reading = document["PowerControl"][0]["PowerConsumedWatts"]
        return None if reading is None else float(reading)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("yes or no")
    return text == "yes"
