"""A real instrument beside the meter: mean watts of the last interval, while it delivers."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np

from iojoule.measure.errors import SensorError
from iojoule.measure.recording.recorder import READ_SECONDS, STOP_SECONDS, Recent
from iojoule.measure.sensors.protocol import Chunk, Flag, Kind, Scope, Sensor

HELD_SECONDS = 60.0
"""How long an unchanged reading of watts is believed: a drive at rest draws the same, and so does
an instrument that hangs."""


class Instrument:
    """Reads one sensor in a thread of its own until it is closed.

    A sensor that fails ends: `failure` says why, and there are no watts any more.

    Args:
        sensor: It must measure a drive.

    Raises:
        SensorError: It does not start, or measures no drive.
    """

    def __init__(self, sensor: Sensor) -> None:
        self.sensor = sensor
        self.failure: str | None = None
        self._ending = threading.Event()
        sensor.start()
        try:
            probe = sensor.probe()
            self._recent = Recent(probe, Scope.DEVICE)
            if not self._recent:
                raise SensorError(
                    f"{sensor.name} does not measure a drive: name an instrument in its supply, "
                    "or the drive's own meter"
                )
        except BaseException:
            sensor.stop()
            raise
        self._period_seconds = 1.0 / probe.nominal_hertz
        self._reads_watts = all(rail.kind is not Kind.ENERGY for rail in probe.rails if rail.counts)
        self._changed_ns = 0
        self._thread = threading.Thread(target=self._run, name="meter-instrument", daemon=True)
        self._thread.start()

    def watts(self, seconds: float) -> tuple[float, float] | None:
        """Mean of the last seconds and its standard error; None where it did not deliver."""
        if self.failure is not None:
            return None
        recent = self._recent.power(seconds, self._period_seconds)
        return None if recent is None else (recent.mean_watts, recent.standard_error_watts)

    def close(self) -> None:
        """End the thread and release the sensor."""
        self._ending.set()
        self._thread.join(STOP_SECONDS)

    def _held(self, chunk: Chunk) -> Chunk:
        """With unchanged readings as new ones, for a while."""
        changed = np.where(chunk.flags & Flag.STALE, self._changed_ns, chunk.monotonic_ns)
        changed = np.maximum.accumulate(changed)
        self._changed_ns = int(changed[-1])
        held = chunk.monotonic_ns - changed <= HELD_SECONDS * 1e9
        return replace(chunk, flags=np.where(held, chunk.flags & ~Flag.STALE, chunk.flags))

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                chunk = self.sensor.read(READ_SECONDS)
                if len(chunk):
                    self._recent.add(self._held(chunk) if self._reads_watts else chunk)
        except SensorError as error:
            self.failure = error.message
        finally:
            try:
                self.sensor.stop()
            except SensorError as error:
                self.failure = self.failure or error.message
