"""Power of a whole laptop from its battery, while it runs on it.

Source: Linux, Documentation/ABI/testing/sysfs-class-power: `power_now` in uW, else `current_now`
(uA) times `voltage_now` (uV). Drivers renew them every 1 to 30 s.
"""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.errors import SensorError
from iojoule.measure.host.host_files import file_text
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
ROOT = Path("/sys/class/power_supply")
MICRO = 1e-6


def from_options(options: Options) -> Battery:
    """`battery[:BAT0][,every=1][,root=/sys/class/power_supply]`; without a name the only one."""
    options.known("every", "root")
    return Battery(
        options.address,
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
        root=options.get("root", Path) or ROOT,
    )


class Battery(PolledSensor):
    """What a discharging battery gives."""

    def __init__(
        self, battery: str, *, interval_seconds: float = INTERVAL_SECONDS, root: Path = ROOT
    ) -> None:
        name = f"battery:{battery}" if battery else "battery"
        super().__init__(name, interval_seconds, repeats_are_stale=True)
        self._battery, self._root = battery, root
        self._folder: Path | None = None

    def probe(self) -> Probe:
        """Finds the battery and reads it once. Raises SensorError if there is none."""
        if self._folder is None:
            self._folder = self._find()
        self.poll()
        rail = Rail("battery", "watts", Kind.POWER, Scope.SYSTEM, MICRO)
        return Probe((rail,), 1 / self._interval, {"folder": str(self._folder)})

    def poll(self) -> list[float]:
        """Watts. Raises SensorError where the battery is not discharging: a charger feeds too."""
        assert self._folder is not None, "found by probe"
        if (status := self._text("status")) != "Discharging":
            raise SensorError(
                f"{self._folder}: its status is {status or 'unknown'}, so it does not feed the "
                "machine alone; unplug the charger"
            )
        power = self._number("power_now")
        if power is None:
            current, volts = self._number("current_now"), self._number("voltage_now")
            if current is None or volts is None:
                raise SensorError(f"{self._folder} states neither power_now nor current_now")
            power = current * volts * MICRO
        return [abs(power) * MICRO]  # some drivers count discharging as negative

    def _find(self) -> Path:
        folders = [
            file.parent
            for file in sorted(self._root.glob("*/type"))
            if file_text(file) == "Battery"
            and self._battery in ("", file.parent.name)
            # a mouse or a pen has one, too
            and not (file.parent / "scope").exists()
        ]
        if len(folders) != 1:
            names = ", ".join(folder.name for folder in folders)
            raise SensorError(
                f"{self._root}: several batteries; name one of {names}"
                if folders
                else f"{self._root}: no such battery"
            )
        return folders[0]

    def _number(self, name: str) -> float | None:
        text = self._text(name)
        if text is None:
            return None
        try:
            return float(int(text))
        except ValueError:
            raise SensorError(f"{self._folder}/{name} holds no number: {text[:40]!r}") from None

    def _text(self, name: str) -> str | None:
        assert self._folder is not None, "found by probe"
        return file_text(self._folder / name)
