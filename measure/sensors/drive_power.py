"""The drive's own power meter: Power Measurement log 25h, else Interval Power Measurement.

The log (a drive that sets CTRATT bit 21) counts every second, so energy needs no gapless polling:
the sensor starts a measurement and reads mean times count. A step of the mean is a step of the
energy that grows with the count, so the measurement is begun anew before that is coarse; the part
of a second until then has the mean's power. Another program's measurement is never erased, and one
that another program restarts is refused. Without the log, SMART bytes 240 to 243
hold the mean of the last second. Both are read in binary, which old versions of nvme-cli support
too; layouts are in measure/drive/power_measurement.py. Not checked on hardware. Reading keeps a
drive from its deepest sleep: do not use it to measure idle power.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iojoule.datasets.errors import IojouleError
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.power_measurement import (
    LOG_INTERVAL_SECONDS,
    Measurement,
    PowerLog,
    interval_power,
)
from iojoule.measure.errors import DriveError, SensorError
from iojoule.measure.sensors import Options
from iojoule.measure.sensors.polled import PolledSensor
from iojoule.measure.sensors.protocol import Kind, Probe, Rail, Scope

INTERVAL_SECONDS = 1.0
STEP_JOULES = 0.2
"""A measurement whose energy has coarser steps is begun anew: after 20 s in steps of 10 mW."""
SOURCES = ("log", "smart")


def from_options(options: Options) -> DrivePower:
    """`drive-power:/dev/nvme0[,source=log|smart][,every=SECONDS]`."""
    options.known("every", "source")
    every = options.get("every", float) or INTERVAL_SECONDS
    source = options.get("source", str)
    if source is not None and source not in SOURCES:
        raise SensorError(f"{options.text}: source is one of {', '.join(SOURCES)}")
    return DrivePower(
        options.needed_address("drive-power:/dev/nvme0"), interval_seconds=every, source=source
    )


class DrivePower(PolledSensor):
    """One controller, by its node; without `source` the log where the drive has it."""

    def __init__(
        self,
        device: str,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        source: str | None = None,
    ) -> None:
        super().__init__(f"drive-power:{device}", interval_seconds, repeats_are_stale=True)
        self._device = device
        self._controller = NvmeController(Path(device))
        self._measurement = Measurement(self._controller)
        self._source = source
        self._began, self._earlier_joules, self._told_joules = 0.0, 0.0, 0.0
        self._probe: Probe | None = None

    def probe(self) -> Probe:
        """Reads power and its error once; starts nothing.

        Raises SensorError if the drive does not measure power, or estimates it.
        """
        if self._probe is None:
            if self._source is None:
                self._source = "log" if self._has_log() else "smart"
            rail = self._log_rail() if self._source == "log" else self._smart_rail()
            self._probe = Probe((rail,), 1 / self._interval, {"source": self._source})
        return self._probe

    def begin(self) -> None:
        """Start a measurement, which clears the log. Raises SensorError if one is under way."""
        if self._source == "log":
            with self._as_sensor():
                self._measurement.start()
            self._began, self._earlier_joules, self._told_joules = time.monotonic(), 0.0, 0.0

    def poll(self) -> list[float]:
        """Joules since the start, or watts."""
        if self._source == "log":
            return [self._joules()]
        watts, _ = self._smart()
        return [watts]

    def end(self) -> None:
        """Stop the measurement, if it is still ours."""
        try:
            with self._as_sensor():
                self._measurement.stop()
        except SensorError as error:
            self._errors.append(error.message)

    def _log_rail(self) -> Rail:
        with self._as_sensor():
            error = self._measurement.peek().error_fraction
        return Rail(
            "drive",
            "joules",
            Kind.ENERGY,
            Scope.DEVICE,
            offset_uncertainty=0.0,
            gain_uncertainty=error,
        )

    def _smart_rail(self) -> Rail:
        _, resolution = self._smart()
        return Rail(
            "drive",
            "watts",
            Kind.POWER,
            Scope.DEVICE,
            resolution,
            offset_uncertainty=0.0,
            gain_uncertainty=self._error(),
        )

    def _joules(self) -> float:
        with self._as_sensor():
            log = self._measurement.read()
        if log.intervals:
            if log.joules is None or log.mean_watts is None:
                raise SensorError(f"{self._device}: its Power Measurement log states no power")
            joules = self._earlier_joules + log.joules
            if log.step_joules >= STEP_JOULES:
                joules = self._earlier_joules = joules + log.mean_watts * self._begin_anew(log)
            self._told_joules = max(self._told_joules, joules)  # the mean may be a step lower
        return self._told_joules

    def _begin_anew(self, log: PowerLog) -> float:
        """Seconds of the measurement that ends which the log does not count: part of one."""
        with self._as_sensor():
            self._measurement.restart()
        before, self._began = self._began, time.monotonic()
        uncounted = self._began - before - log.intervals * LOG_INTERVAL_SECONDS
        return min(max(uncounted, 0.0), LOG_INTERVAL_SECONDS)

    def _smart(self) -> tuple[float, float]:
        """Watts and one step of them."""
        with self._as_sensor():
            power = interval_power(self._controller.smart_bytes())
        if power is None:
            raise SensorError(
                f"{self._device} does not measure its own power (no Interval Power Measurement in "
                "its SMART log; few drives have it): use another sensor"
            )
        return power

    def _has_log(self) -> bool:
        with self._as_sensor():
            try:
                return self._controller.identify().measures_power
            except DriveError:
                return False  # the SMART log is asked next and names the fault

    def _error(self) -> float | None:
        """The largest error as a fraction; None where the drive does not state it."""
        try:
            log = self._measurement.header()
        except IojouleError:
            return None  # the log is optional
        if log.estimated:
            raise SensorError(f"{self._device}: {log.fault}; use another sensor")
        return log.error_fraction

    @contextmanager
    def _as_sensor(self) -> Iterator[None]:
        """What the drive or the host refuses fails the sensor."""
        try:
            yield
        except SensorError:
            raise
        except IojouleError as error:
            raise SensorError(error.message) from error
