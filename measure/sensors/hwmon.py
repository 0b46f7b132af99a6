"""Power or energy from hwmon: `power*_average`, `power*_input` (uW) or `energy*_input` (uJ).

Such meters sit on boards, power supplies and shunts (ina2xx, pmbus, corsair-psu). What a channel
feeds the kernel does not know: the scope is the user's to state. Source: Linux,
Documentation/hwmon/sysfs-interface.rst.
"""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.errors import SensorError
from iojoule.measure.host.host_files import file_text
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
ROOT = Path("/sys/class/hwmon")
MICRO = 1e-6
_FILES = ("energy{}_input", "power{}_average", "power{}_input")


def from_options(options: Options) -> Hwmon:
    """`hwmon:CHIP[,channel=1][,scope=device][,every=1][,root=/sys/class/hwmon]`.

    CHIP is a folder such as `hwmon3` or the content of its file `name`.
    """
    options.known("channel", "scope", "every", "root")
    channel = options.get("channel", int)
    return Hwmon(
        options.needed_address("hwmon:ina226"),
        channel=1 if channel is None else channel,
        scope=options.scope(),
        interval_seconds=options.get("every", float) or INTERVAL_SECONDS,
        root=options.get("root", Path) or ROOT,
    )


class Hwmon(PolledSensor):
    """One channel of one chip; energy where it counts energy, else power."""

    def __init__(
        self,
        chip: str,
        *,
        channel: int = 1,
        scope: Scope = Scope.DEVICE,
        interval_seconds: float = INTERVAL_SECONDS,
        root: Path = ROOT,
    ) -> None:
        super().__init__(
            f"hwmon:{chip},channel={channel}", interval_seconds, repeats_are_stale=True
        )
        self._chip, self._channel, self._scope, self._root = chip, channel, scope, root
        self._file: Path | None = None
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Finds the file and reads it once. Raises SensorError if there is none."""
        if self._probe is None:
            self._file = self._find()
            self._value()
            kind = Kind.ENERGY if self._counts_energy else Kind.POWER
            unit = "joules" if self._counts_energy else "watts"
            rail = Rail("channel", unit, kind, self._scope, MICRO)
            self._probe = Probe((rail,), 1 / self._interval, {"file": str(self._file)})
        return self._probe

    def poll(self) -> list[float]:
        """Joules or watts."""
        return [self._value()]

    @property
    def _counts_energy(self) -> bool:
        return self._file is not None and self._file.name.startswith("energy")

    def _find(self) -> Path:
        folders = [
            folder
            for folder in sorted(self._root.glob("hwmon*"))
            if self._chip in (folder.name, file_text(folder / "name"))
        ]
        if len(folders) > 1:
            raise SensorError(
                f"{self.name}: several chips have this name; name one of "
                f"{', '.join(folder.name for folder in folders)}"
            )
        for folder in folders:
            for pattern in _FILES:
                file = folder / pattern.format(self._channel)
                if file.is_file():
                    return file
        raise SensorError(
            f"{self._root}: no chip {self._chip} measures power in channel {self._channel}; see "
            f"{self._root}/*/name and power*_input"
        )

    def _value(self) -> float:
        assert self._file is not None, "found by probe"
        text = file_text(self._file)
        try:
            value = int(text or "")
        except ValueError:
            raise SensorError(f"{self._file} cannot be read or holds no number") from None
        if value < 0:
            raise SensorError(f"{self._file} states {value}: power below zero")
        return value * MICRO
