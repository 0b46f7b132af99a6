"""The drive's own power meter: Interval Power Measurement of NVMe.

A controller that has one states in its SMART / Health log (bytes 240 to 243) the mean power of the
last second: a value in bits 15:0, its scale in bits 17:16 (1: 0.1 mW, 2: 10 mW), 0 where it
measures none. The Power Measurement log (identifier 25h, byte 56) states the largest error in
percent. Both are read in binary, which old versions of nvme-cli support too. Source: NVM Express
Base Specification 2.3 as in libnvme's nvme/types.h. Not checked on hardware. Reading keeps a drive
from its deepest sleep: do not use it to measure idle power.
"""

from __future__ import annotations

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor, ask
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
SMART_BYTES = 512
SMART_POWER_OFFSET = 240
POWER_LOG_BYTES = 64
POWER_LOG_ERROR_OFFSET = 56
LARGEST_PERCENT = 100
WATTS_BY_SCALE = {1: 1e-4, 2: 1e-2}


def from_options(options: Options) -> DrivePower:
    """`drive-power:/dev/nvme0[,every=SECONDS]`."""
    options.known("every")
    every = options.get("every", float) or INTERVAL_SECONDS
    return DrivePower(options.needed_address("drive-power:/dev/nvme0"), interval_seconds=every)


class DrivePower(PolledSensor):
    """One controller, by its node."""

    def __init__(self, device: str, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        super().__init__(f"drive-power:{device}", interval_seconds, repeats_are_stale=True)
        self._device = device
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Reads power and its error once.

        Raises SensorError if the drive does not measure power.
        """
        if self._probe is None:
            resolution = WATTS_BY_SCALE[self._reading()[1]]
            rail = Rail(
                "drive",
                "watts",
                Kind.POWER,
                Scope.DEVICE,
                resolution,
                offset_uncertainty=0.0,
                gain_uncertainty=self._error(),
            )
            self._probe = Probe((rail,), 1 / self._interval, {})
        return self._probe

    def ask(self) -> list[float]:
        """Watts."""
        value, scale = self._reading()
        return [value * WATTS_BY_SCALE[scale]]

    def _reading(self) -> tuple[int, int]:
        log = self._nvme(["smart-log", self._device, "--raw-binary"])
        if len(log) != SMART_BYTES:
            raise SensorError(
                f"{self._device}: the SMART log has {len(log)} and not {SMART_BYTES} bytes"
            )
        field = int.from_bytes(log[SMART_POWER_OFFSET : SMART_POWER_OFFSET + 4], "little")
        value, scale = field & 0xFFFF, field >> 16 & 3
        if not value or scale not in WATTS_BY_SCALE:
            raise SensorError(
                f"{self._device} does not measure its own power (no Interval Power Measurement in "
                "its SMART log; it came with NVMe 2.2): use another sensor"
            )
        return value, scale

    def _error(self) -> float | None:
        """The largest error as a fraction; None where the drive does not state it."""
        try:
            log = self._nvme(
                [
                    "get-log",
                    self._device,
                    "--log-id=0x25",
                    f"--log-len={POWER_LOG_BYTES}",
                    "--raw-binary",
                ]
            )
        except SensorError:
            return None  # the log is optional
        percent = log[POWER_LOG_ERROR_OFFSET] if len(log) == POWER_LOG_BYTES else 0xFF
        return percent / 100 if percent <= LARGEST_PERCENT else None

    @staticmethod
    def _nvme(arguments: list[str]) -> bytes:
        return ask(["nvme", *arguments], timeout_seconds=TIMEOUT_SECONDS, package="nvme-cli")
