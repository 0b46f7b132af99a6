"""Latency that was measured of one configuration, and what it tells about others at that demand.

What a prediction errs is mostly true of its neighbours as well: with e the log of measured over
predicted, and r how alike two errors are, another configuration is predicted exp(r e) times as
long, with sqrt(1 - r^2) of the width that its interval had (the mean and the standard deviation of
one of two normal quantities of equal variance, given the other). A prediction that is surer than
that of the measured configuration moves so much less; where the measurement lies outside its
interval, the width that is left on that side grows by as many times (as by the Birge ratio of
measurements that contradict each other).

How alike errors are was read off 400 questions about simulated drives (seeds 6 and 7 of
`iojoule validate recommendations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.bands import Band, Floats, with_lower
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.quantities import NORMAL_90

OTHER_SLOTS = 0.8
"""How alike errors are of two queues of an open loop, which differ in what may be in flight alone,
and those of the mean and the percentiles of one configuration."""

OTHER_SETTING = 0.5
"""How alike errors are of two power states, ways through the host or settings of it; of two request
sizes, and of two queues that requests keep full, for each octave."""

MEASURED_SD = 0.03
"""Log sd of a measured latency: what it differs by when it is measured again."""

ORDER = ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns")


@dataclass(frozen=True)
class ObservedLatency:
    """A measurement, beside n configurations.

    Attributes:
        measured: ns by quantity, of those that were measured.
        predicted: What was predicted of the same, ns, bands of one row.
        configuration: The measured one, a single row.
        open_loop: Whether requests arrive one by one, whatever is in flight.
        alike: How alike the errors of n configurations and the measured one are, shape (n,); 1 of
            the measured one itself.
    """

    measured: Mapping[str, float]
    predicted: Mapping[str, Band]
    configuration: Frame
    open_loop: bool
    alike: Floats = field(default_factory=lambda: np.ones(1))

    def beside(self, frame: Frame) -> ObservedLatency:
        """The same beside other configurations."""
        return replace(self, alike=likeness(frame, self.configuration, open_loop=self.open_loop))

    @property
    def itself(self) -> NDArray[np.bool_]:
        """Which row is the measured configuration, shape (n,)."""
        return np.asarray(self.alike == 1.0)

    @property
    def outside(self) -> dict[str, tuple[float, float]]:
        """Measured and predicted ns, by quantity, of what was measured outside the interval."""
        bands = {name: self.predicted[name] for name in self.measured}
        return {
            name: (self.measured[name], float(band.value[0]))
            for name, band in bands.items()
            if np.isfinite(band.value[0]) and not band.low[0] <= self.measured[name] <= band.high[0]
        }

    def moved(self, name: str, value: Floats, high: Floats, end: Floats, scale: float) -> Floats:
        """An end of an interval, or the value at `scale` 0, with the measurement known.

        Args:
            name: The quantity.
            value: As predicted, ns.
            high: The upper end of its interval, ns; infinite where unbounded.
            end: The end that is asked for, ns.
            scale: Half widths from the value to the end, negative downward.
        """
        source = name if name in self.measured else self._nearest(name)
        alike = self.alike * (1.0 if source == name else OTHER_SLOTS)
        error, width = self._error(source)
        wider = np.sqrt(1.0 - alike * alike)
        if error * scale > 0.0:
            wider = wider * max(1.0, abs(error) / width)
        with np.errstate(divide="ignore", invalid="ignore"):  # of what is not bounded
            shift = alike * error * np.fmin(np.log(high / value) / width, 1.0)
            distance = np.log(end / value)
            shift = shift + np.where(np.isfinite(distance), (wider - 1.0) * distance, 0.0)
            moved = end * np.exp(shift)
        known = [ns for upper, ns in self.measured.items() if name in with_lower([upper])]
        if not known:
            return moved
        least = min(known) * np.exp(scale * NORMAL_90 * MEASURED_SD)
        return np.where(self.itself, least if source == name else np.minimum(moved, least), moved)

    def _error(self, name: str) -> tuple[float, float]:
        """Log of measured over predicted, and the log half width of 90 % on that side.

        A prediction that is not known, or without bound, tells nothing.
        """
        band = self.predicted[name]
        value = float(band.value[0])
        if not np.isfinite(value):
            return 0.0, np.inf
        error = float(np.log(self.measured[name] / value))
        end = float((band.high if error > 0.0 else band.low)[0])
        return error, max(abs(float(np.log(end / value))), 1e-9)

    def _nearest(self, name: str) -> str:
        place = ORDER.index(name)
        return min(self.measured, key=lambda other: abs(ORDER.index(other) - place))


def likeness(frame: Frame, other: Frame, *, open_loop: bool) -> Floats:
    """How alike what is predicted of n configurations errs to what is predicted of another one.

    Args:
        frame: The configurations.
        other: The other one, a single row.
        open_loop: As of `ObservedLatency`.
    """
    ways = ("engine", "completion", "submission_polling", "scheduler")
    ways_differ = np.any([_differ(frame, other, name) for name in ways], axis=0)
    states = ("power_state", "power_limit_watts")
    states_differ = np.any([_differ(frame, other, name) for name in states], axis=0)
    octaves = np.abs(np.log2(frame.request_bytes / other.request_bytes))
    settings = octaves + ways_differ + states_differ + _differ(frame, other, "host").any(axis=1)
    slots = frame.queue_depth * frame.jobs / (other.queue_depth * other.jobs)
    queues_differ = _differ(frame, other, "queue_depth") | _differ(frame, other, "jobs")
    queues = np.where(queues_differ, OTHER_SLOTS, 1.0)
    if not open_loop:
        settings = settings + np.abs(np.log2(slots))
    return np.asarray(queues * OTHER_SETTING**settings)


def _differ(frame: Frame, other: Frame, name: str) -> NDArray[np.bool_]:
    """Where a field differs; two that are unknown do not."""
    values, others = (np.asarray(getattr(each, name), dtype=float) for each in (frame, other))
    return np.asarray((values != others) & ~(np.isnan(values) & np.isnan(others)))
