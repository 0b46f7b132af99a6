"""A recording of several sensors, and statistics of its windows.

Scopes are never added: `device`, `cpu`, `dram` and `system` each have their own numbers (the
package's counter contains no drive, a client machine's psys may).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iojoule.measure.errors import SensorError
from iojoule.measure.recording.series import Series
from iojoule.measure.recording.statistics import (
    Background,
    IdlePower,
    PowerStatistics,
    Sampled,
    background,
    clipped_seconds,
    energy_statistics,
    power_statistics,
)
from iojoule.measure.sensors.protocol import Delivery, Flag, Kind, Rail, Scope


@dataclass(frozen=True)
class GaugeStatistics:
    """What a gauge showed: a temperature, a frequency, a load."""

    mean: float
    minimum: float
    maximum: float
    last: float
    samples: int


@dataclass(frozen=True)
class CounterDelta:
    """Progress of a counter, interpolated at both ends of a window."""

    delta: float
    per_second: float
    coverage: float


class Recording:
    """The files of one recording."""

    def __init__(self, series: list[Series]) -> None:
        self._series = series

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors, in the order they were given."""
        return tuple(series.about.sensor for series in self._series)

    @property
    def failures(self) -> dict[str, str]:
        """Why sensors failed, by their name."""
        return {
            series.about.sensor: series.about.failure
            for series in self._series
            if series.about.failure
        }

    @property
    def rail_names(self) -> frozenset[str]:
        """Names of the rails of all sensors."""
        return frozenset(rail.name for series in self._series for rail in series.rails)

    def power_sensors(self, scope: Scope) -> list[str]:
        """Names of the sensors that measure the power of a scope, in the order they were given."""
        return [series.about.sensor for series in self._series if series.counted(scope)]

    def delivery(self, sensor: str) -> Delivery:
        """Totals of a sensor. Raises SensorError if it was not recorded."""
        return self._named(sensor).about.delivery

    def rails(self, sensor: str) -> tuple[Rail, ...]:
        """A sensor's rails. Raises SensorError if it was not recorded."""
        return self._named(sensor).rails

    def identity(self, sensor: str) -> dict[str, str]:
        """Version and configuration of a sensor. Raises SensorError if it was not recorded."""
        return self._named(sensor).about.probe.identity

    def nominal_hertz(self, sensor: str) -> float:
        """Nominal samples a second of a sensor. Raises SensorError if it was not recorded."""
        return self._named(sensor).about.probe.nominal_hertz

    def power(
        self, scope: Scope, begin_ns: int, end_ns: int, *, sensor: str | None = None
    ) -> PowerStatistics | None:
        """Power and energy of a scope in [begin_ns, end_ns), CLOCK_MONOTONIC.

        By the first recorded sensor that measures the scope, unless one is named; None where none
        does. Raises SensorError if the sensor was not recorded, or the window is empty.
        """
        if end_ns <= begin_ns:
            raise SensorError(f"an empty window: {begin_ns} to {end_ns} ns")
        series = self._for_scope(scope, sensor)
        if series is None:
            return None
        rails = series.counted(scope)
        about = series.about
        if rails[0].kind is Kind.ENERGY:
            window = series.window(begin_ns, end_ns, rails, around=True)
            return energy_statistics(window, rails, begin_ns, end_ns, about.sensor)
        window = series.window(begin_ns, end_ns, rails)
        return power_statistics(window, rails, begin_ns, end_ns, about.sensor)

    def sampled(
        self, scope: Scope, begin_ns: int, end_ns: int
    ) -> tuple[Sampled, float | None] | None:
        """The sampled power of a scope within a window, and the time at its sensor's full scale.

        Returns:
            Complete samples, the rails added up; None where no sensor samples the scope's power
            (a counter of energy does not), or fewer than two came. The seconds are None where no
            rail states its full scale.
        """
        series = self._for_scope(scope, None)
        rails = series.counted(scope) if series else ()
        if series is None or rails[0].kind is not Kind.POWER:
            return None
        window = series.window(begin_ns, end_ns, rails)
        known = np.isfinite(window.values).all(axis=1)
        values = window.values[known]
        if len(values) < 2:
            return None
        samples = Sampled(window.times_ns[known], values.sum(axis=1), window.flags[known])
        clipped = clipped_seconds(values, [rail.full_scale for rail in rails], samples.period_ns)
        return samples, clipped

    def longest_pause_seconds(self, rail: str, begin_ns: int, end_ns: int) -> float:
        """Longest time in a window without a sample of a rail.

        Raises SensorError if it was not recorded.
        """
        series, recorded = self._rail(rail, None)
        times = series.window(begin_ns, end_ns, (recorded,)).times_ns
        return float(np.diff([begin_ns, *times.tolist(), end_ns]).max()) * 1e-9

    def gauge(
        self, rail: str, begin_ns: int, end_ns: int, *, sensor: str | None = None
    ) -> GaugeStatistics | None:
        """Values of a rail in a window; None without a fresh sample.

        Raises SensorError if not recorded.
        """
        series, recorded = self._rail(rail, sensor)
        window = series.window(begin_ns, end_ns, (recorded,))
        values = window.values[(window.flags & Flag.STALE) == 0, 0]
        values = values[np.isfinite(values)]
        if not len(values):
            return None
        return GaugeStatistics(
            float(values.mean()),
            float(values.min()),
            float(values.max()),
            float(values[-1]),
            len(values),
        )

    def counter(
        self, rail: str, begin_ns: int, end_ns: int, *, sensor: str | None = None
    ) -> CounterDelta | None:
        """Progress of a counter in a window; None with < 2 samples.

        Raises SensorError if not recorded.
        """
        series, recorded = self._rail(rail, sensor)
        window = series.window(begin_ns, end_ns, (recorded,), around=True)
        times, values = window.times_ns, window.values[:, 0]
        use = np.isfinite(values)
        times, values = times[use], values[use]
        if len(times) < 2:
            return None
        begin, end = max(begin_ns, int(times[0])), min(end_ns, int(times[-1]))
        if end <= begin:
            return None
        first, last = np.interp((begin, end), times, values)
        delta, seconds = float(last - first), (end - begin) * 1e-9
        return CounterDelta(delta, delta / seconds, (end - begin) / (end_ns - begin_ns))

    def rate(self, rails: Sequence[str], begin_ns: int, end_ns: int) -> float | None:
        """Sum of some counters' rates a second in a window; None where one of them is not known."""
        recorded = self.rail_names
        deltas = [self.counter(rail, begin_ns, end_ns) for rail in rails if rail in recorded]
        known = [delta.per_second for delta in deltas if delta is not None]
        return sum(known) if len(known) == len(rails) else None

    def background(self, scope: Scope, after_ns: int, idle: IdlePower) -> Background | None:
        """Energy above idle after the work, and the time until idle power is back (`background`).

        Garbage collection goes on for seconds to minutes after writes. None where no sensor samples
        the scope's power, or nothing was recorded afterwards.
        """
        series = self._for_scope(scope, None)
        rails = series.counted(scope) if series else ()
        if series is None or rails[0].kind is not Kind.POWER:
            return None
        window = series.window(after_ns, np.iinfo(np.int64).max, rails)
        return background(window.times_ns, window.values.sum(axis=1), after_ns, idle)

    def _for_scope(self, scope: Scope, sensor: str | None) -> Series | None:
        candidates = self._series if sensor is None else [self._named(sensor)]
        return next((series for series in candidates if series.counted(scope)), None)

    def _named(self, sensor: str) -> Series:
        for series in self._series:
            if series.about.sensor == sensor:
                return series
        raise SensorError(f"no sensor {sensor!r} was recorded, only {', '.join(self.sensors)}")

    def _rail(self, name: str, sensor: str | None) -> tuple[Series, Rail]:
        candidates = self._series if sensor is None else [self._named(sensor)]
        for series in candidates:
            for rail in series.rails:
                if rail.name == name:
                    return series, rail
        known = ", ".join(rail.name for series in candidates for rail in series.rails)
        raise SensorError(f"no rail {name!r} was recorded, only {known}")


def read_recording(folder: Path) -> Recording:
    """The recording in a folder. Raises SensorError if there is none, or a file cannot be read."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise SensorError(f"{folder} holds no recording (no *.parquet)")
    return Recording([Series(file) for file in files])
