"""Latencies at the rate that is served, counted from the arrival of a request.

As fast as possible (a closed loop) they are those of the full queue. In an open loop requests come
by a process of their own and wait for a slot: `model.open_loop`. In bursts the queue is full while
a burst lasts, and a burst may have to wait for the one before it: bursts as large as the queue
that come by chance wait as in an M/D/1 queue (Pollaczek and Khinchine),

    mean wait = rho / (2 (1 - rho)) N / X,    P(wait > t) = rho exp(-2 (1 - rho) t X / N),

which is the least that larger bursts wait. Requests that wait for a flush take as much longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from iojoule.model import open_loop
from iojoule.model.band import NORMAL_90, Band
from iojoule.model.frame import Frame
from iojoule.model.prediction import Prediction

Floats = NDArray[np.float64]

PERCENTILES = {"latency_p50_ns": 0.5, "latency_p99_ns": 0.99, "latency_p999_ns": 0.999}
"""Percentiles of the latency, as shares."""


MEAN = "latency_mean_ns"

NEVER_FULL = 1e6
"""Requests that a buffer takes that is never full."""

FILLS = 0.85
"""A single request in flight that reaches this share of the capacity fills the drive."""

QUANTITIES = {
    MEAN: "latency",
    "latency_p50_ns": "p50",
    "latency_p99_ns": "p99",
    "latency_p999_ns": "p999",
}
"""Names of the open-loop model."""


class Arrivals(StrEnum):
    """How requests come.

    As fast as possible (a closed loop: each completion lets the next request in), or in an open
    loop: by chance, at equal intervals, or in bursts that keep the queue full while they last.
    """

    CLOSED = "closed"
    POISSON = "poisson"
    EVEN = "even"
    BURSTS = "bursts"


POISSON_ARRIVALS = frozenset({"poisson", "open"})
"""Arrival processes whose requests come by chance, one by one; fio's `rate_process=poisson`."""

EVEN_ARRIVALS = frozenset({"linear", "steady", "even", "constant"})
"""Arrival processes whose requests come at equal intervals; fio's `rate_process=linear`."""

BURSTY_ARRIVALS = frozenset({"burst", "bursts", "bursty", "batch", "batches", "on_off"})
"""Arrival processes whose gaps let the drive rest."""


def arrivals_named(process: str) -> Arrivals:
    """How requests of a demand come, by the name of the process; by chance where it is unknown."""
    word = process.lower()
    if word in BURSTY_ARRIVALS:
        return Arrivals.BURSTS
    return Arrivals.EVEN if word in EVEN_ARRIVALS else Arrivals.POISSON


def alone_of(frame: Frame) -> Frame:
    """The same configurations with a single request in flight."""
    one = np.ones(len(frame))
    return replace(frame, queue_depth=one, jobs=one)


@dataclass(frozen=True)
class Flush:
    """Flushes, or writes with forced unit access, of a workload.

    Attributes:
        share: Share of the requests that wait for one; a value, or one a row.
        wait_ns: How long; NaN where nobody knows what one costs.
        log_sd: How unsure that is.
    """

    share: float | Floats
    wait_ns: float
    log_sd: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether its cost is known."""
        return not np.isnan(self.wait_ns)

    @property
    def mean_ns(self) -> float | Floats:
        """Mean wait of a request, ns; 0 where it is not known."""
        return self.share * self.wait_ns if self.is_known else 0.0

    def of(self, name: str, scale: float) -> float | Floats:
        """What it adds to a mean or a percentile, `scale` half intervals up; 0 if not known."""
        if not self.is_known:
            return 0.0
        wait = self.wait_ns * float(np.exp(scale * NORMAL_90 * self.log_sd))
        if name not in PERCENTILES:
            return self.share * wait
        return wait * np.asarray(self.share > 1.0 - PERCENTILES[name], dtype=float)


@dataclass(frozen=True)
class ServedLatency:
    """Latencies of n configurations at the rate that they serve.

    Attributes:
        full: Predicted with the queue full.
        alone: Predicted with a single request in flight; None in a closed loop.
        arrivals: How requests come.
        rate: Arrivals a second, shape (n,); more than the capacity in what cannot serve them.
        capacity: Requests a second with the queue full.
        log_down: From the capacity to the lower end of its 90 % interval, log units.
        log_up: Likewise to the upper end.
        in_flight: Requests that the queue holds.
        write_share: Share of writes, 0 to 1.
        buffer_requests: Requests that the write buffer takes; NaN: nobody knows (`Activity`). Then
            values and upper ends are those without any, lower ends those of one that never fills.
        flush: What flushes add; None where the work has none.
    """

    full: Prediction
    alone: Prediction | None
    arrivals: Arrivals
    rate: Floats
    capacity: Floats
    log_down: Floats
    log_up: Floats
    in_flight: Floats
    write_share: Floats
    buffer_requests: Floats
    flush: Flush | None = None
    _loops: dict[float, tuple[open_loop.ClosedLoop, open_loop.Queues]] = field(
        default_factory=dict, init=False, compare=False
    )
    _known: dict[tuple[str, float], Floats] = field(default_factory=dict, init=False, compare=False)

    def at(self, name: str, scale: float = 0.0) -> Floats:
        """A mean or percentile, ns, infinite where the work cannot be served; shape (n,).

        Args:
            name: The quantity, as `latency_p99_ns`.
            scale: Half widths of the 90 % interval above the value: 1 is its upper end.
        """
        added = self.flush.of(name, scale) if self.flush is not None else 0.0
        return self._queued(name, scale) + added

    def band(self, name: str) -> Band:
        """A mean or percentile with its interval.

        Its upper end is infinite where the demand lies within the interval of the capacity.
        """
        value = self.at(name)
        evidence = self.full[name].evidence
        return Band(value, np.minimum(self.at(name, -1.0), value), self.at(name, 1.0), evidence)

    def _queued(self, name: str, scale: float) -> Floats:
        """As `at`, without what flushes add."""
        if (name, scale) not in self._known:
            self._known[name, scale] = self._queued_now(name, scale)
        return self._known[name, scale]

    def _queued_now(self, name: str, scale: float) -> Floats:
        full = _end(self.full[name], scale)
        if self.arrivals is Arrivals.CLOSED:
            return full
        capacity = self._capacity(scale)
        load = self.rate / capacity
        if self.arrivals is Arrivals.BURSTS:
            found = full + _burst_wait(name, load, 1e9 * self.in_flight / capacity)
            return np.where(load < 1.0, found, np.inf)
        wanted = QUANTITIES[name]
        loop, queues = self._open(scale)
        found = open_loop.latency(queues, loop, wanted)
        if scale == 0.0:
            return found
        # the model's own error is independent of what the profile errs by at the end's load
        sd = open_loop.error_log_sd(load, wanted, np.asarray(loop.buffer_requests) > 0.0)
        return _joined(self._queued(name, 0.0), found, scale, sd)

    def _capacity(self, scale: float) -> Floats:
        shift = self.log_down if scale > 0.0 else self.log_up
        return self.capacity * np.exp(-scale * shift) if scale else self.capacity

    def _open(self, scale: float) -> tuple[open_loop.ClosedLoop, open_loop.Queues]:
        """The open loop of all that was predicted; latencies at one end share most of its terms."""
        if scale not in self._loops:
            assert self.alone is not None
            capacity = self._capacity(scale)
            names = [name for name in QUANTITIES if name in self.full.bands]
            alone = {QUANTITIES[name]: _end(self.alone[name], scale) for name in names}
            unknown = NEVER_FULL if scale < 0.0 else 0.0
            buffer = np.where(np.isnan(self.buffer_requests), unknown, self.buffer_requests)
            if buffer.any() and "p50" in alone:
                alone = self._buffered(alone, capacity, buffer)
            full = {QUANTITIES[name]: _end(self.full[name], scale) for name in names}
            loop = open_loop.ClosedLoop(
                capacity, self.in_flight, alone, full,
                buffer_requests=buffer, buffered_share=self.write_share,
            )  # fmt: skip
            variability = 0.0 if self.arrivals is Arrivals.EVEN else 1.0
            arriving = open_loop.ArrivalProcess(self.rate, variability=variability)
            self._loops[scale] = loop, open_loop.queues_of(loop, arriving)
        return self._loops[scale]

    def _buffered(
        self, alone: dict[str, Floats], capacity: Floats, buffer: Floats
    ) -> dict[str, Floats]:
        """Latencies of a single request whose writes find room in the buffer.

        One write after the other may fill the drive, so that most of the mean and all of the tail
        of a closed loop are waits for the flash; half of the writes found room, and where it is
        never full all do. Of a mix the median tells of them the less the more reads it has, and
        nothing where they are half of it.
        """
        median = alone["p50"]
        fills = (1e9 / alone["latency"] >= FILLS * capacity) | (buffer == NEVER_FULL)
        told = np.maximum(2.0 * self.write_share - 1.0, 0.0) ** 2
        weight = np.where(fills & (buffer > 0.0), told, 0.0)
        return {
            name: value * (np.fmin(median, value) / value) ** weight
            for name, value in alone.items()
        }


def _end(band: Band, scale: float) -> Floats:
    if scale == 0.0:
        return band.value
    end = band.high if scale > 0.0 else band.low
    if abs(scale) == 1.0:
        return end
    return np.asarray(band.value * (end / band.value) ** abs(scale))


def _joined(value: Floats, end: Floats, scale: float, log_sd: Floats) -> Floats:
    """An end of an interval with an independent error besides; log distances join as squares."""
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.hypot(np.log(end / value), scale * NORMAL_90 * log_sd)
        return np.where(np.isfinite(end), value * np.exp(np.sign(scale) * far), end)


def _burst_wait(name: str, load: Floats, service_ns: Floats) -> Floats:
    """Wait of a burst for those before it, ns; `service_ns` is what one takes."""
    left = np.maximum(1.0 - load, 1e-12)
    if name not in PERCENTILES:
        return np.asarray(load / (2.0 * left) * service_ns)
    tail = 1.0 - PERCENTILES[name]
    return np.asarray(np.log(np.maximum(load / tail, 1.0)) * service_ns / (2.0 * left))
