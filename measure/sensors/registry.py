"""Which sensors there are, by name. A new one is its file and one line here."""

from __future__ import annotations

import importlib

from iojoule.datasets.validation import close_names
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.options import parse
from iojoule.measure.sensors.protocol import Sensor

KNOWN: dict[str, str] = {
    "powersensor3": "powersensor3",
    "powersensor3-host": "powersensor3_host",
    "rapl": "rapl",
    "netio": "netio",
    "redfish": "redfish",
    "ipmi": "ipmi",
    "drive-power": "drive_power",
    "diskstats": "diskstats",
    "cpu": "cpu",
}
"""Name -> module of this folder, which has `from_options(options) -> Sensor`."""


def open_sensor(text: str) -> Sensor:
    """The sensor that `NAME[:ADDRESS][,key=value ...]` names; it is not touched yet.

    For instance `powersensor3:/dev/ttyACM0,pairs=0+1`, `rapl`, `netio:pdu.example:80,outlet=1`.

    Raises:
        SensorError: No such sensor, or options it does not know; the message says what there is.
    """
    options = parse(text)
    if options.name not in KNOWN:
        raise SensorError(
            f"no sensor is called {options.name!r}{close_names(options.name, KNOWN)}; known: "
            f"{', '.join(KNOWN)}"
        )
    module = importlib.import_module(f"iojoule.measure.sensors.{KNOWN[options.name]}")
    sensor: Sensor = module.from_options(options)
    return sensor
