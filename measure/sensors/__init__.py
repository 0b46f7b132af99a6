"""The registry of sensors. A new sensor is its module and one line in `KNOWN`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from iojoule.datasets.errors import close_names
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.protocol import POWER_FIELDS, Scope, Sensor

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """One sensor as named by the user; `address` follows the first colon and may be empty."""

    text: str
    name: str
    address: str
    values: Mapping[str, str] = field(default_factory=dict)

    def known(self, *keys: str) -> None:
        """Raises SensorError if there are other keys than these."""
        unknown = sorted(set(self.values) - set(keys))
        if unknown:
            can = f"it knows {', '.join(keys)}" if keys else "it takes none"
            raise SensorError(f"{self.text}: {self.name} has no option {unknown[0]!r}: {can}")

    def needed_address(self, example: str) -> str:
        """The address. Raises SensorError if it is missing."""
        if not self.address:
            raise SensorError(f"{self.text}: {self.name} needs an address, such as {example}")
        return self.address

    def get(self, key: str, convert: Callable[[str], T]) -> T | None:
        """A key's value; None where not given. Raises SensorError if it cannot be converted."""
        if key not in self.values:
            return None
        try:
            return convert(self.values[key])
        except ValueError as error:
            raise SensorError(
                f"{self.text}: {key}={self.values[key]} is not what it must be ({error})"
            ) from error

    def many(self, key: str, convert: Callable[[str], T]) -> list[T] | None:
        """A key's values, `+` between them."""
        return self.get(key, lambda text: [convert(part) for part in text.split("+")])

    def scope(self) -> Scope:
        """What the user states that a meter feeds; a drive by default."""
        text = self.get("scope", str) or Scope.DEVICE.value
        if text not in POWER_FIELDS:
            raise SensorError(f"{self.text}: scope is one of {', '.join(POWER_FIELDS)}")
        return Scope(text)


def parse(text: str) -> Options:
    """Read a sensor's name and options. Raises SensorError if they are malformed."""
    head, *rest = text.split(",")
    name, _, address = head.partition(":")
    values = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or not key or not value or key in values:
            raise SensorError(
                f"{text!r}: {part!r} is not an option of the form key=value, each at most once"
            )
        values[key] = value
    return Options(text, name.strip(), address, values)


KNOWN: dict[str, str] = {
    "powersensor3": "powersensor3",
    "powersensor3-host": "powersensor3_host",
    "rapl": "rapl",
    "netio": "netio",
    "redfish": "redfish",
    "ipmi": "ipmi",
    "drive-power": "drive_power",
    "hwmon": "hwmon",
    "battery": "battery",
    "shelly": "shelly",
    "tasmota": "tasmota",
    "program": "program",
    "diskstats": "diskstats",
    "cpu": "cpu",
}
"""Name -> module of this folder, which has `from_options(options) -> Sensor`."""


def open_sensor(text: str) -> Sensor:
    """The sensor that `NAME[:ADDRESS][,key=value ...]` names; it is not touched yet.

    For instance `powersensor3:/dev/ttyACM0,pairs=0+1`, `rapl`, `netio:pdu.example:80,outlet=1`.
    Raises SensorError, which lists what there is, for an unknown sensor or option.
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
