"""Latencies at the rate that is served, counted from the arrival of a request.

As fast as possible (a closed loop) they are those of the full queue. In an open loop requests come
by a process of their own and wait for a slot (below). In bursts the queue is full while a burst
lasts, and a burst may have to wait for the one before it: bursts as large as the queue that come by
chance wait as in an M/D/1 queue (`burst_wait`), which is the least that larger bursts wait. A
percentile of both is joined as if what exceeds their means were independent. Bursts of fewer
requests than the queue holds fill it so far: N is then the requests of a burst, and their latency
R(1) + (R(N) - R(1)) (n - 1) / (N - 1) of n in flight, which is exact for balanced stations.
Requests that wait for a flush take as much longer.

Latency under a demanded rate: an open loop through the closed-loop curve of the drive.

A profile predicts closed loops: N requests in flight, always. Under a demand, requests arrive on
their own, wait for one of N slots, and meet in the drive as many others as the rate keeps there.
The reference for the mean is the load-dependent server (flow-equivalent service centre: Chandy,
Herzog and Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19, 1975): a birth-death
chain with arrivals at rate l and departures at X(min(n, N)), X the closed-loop throughput. Here is
a closed form of it, with what the chain leaves out: service that varies less or more than an
exponential, percentiles and write buffers.

C is the capacity, R(1) and R(N) = N / C the mean latencies alone and with all slots taken,
r = l / C the load, s = R(1) / R(N) (1: the slots bind; near 0: the drive is saturated long before
N), and m = N s = C R(1) the knee.

* Inside the drive. R(n)^q = R(1)^q + (a (n - 1))^q is a curve through both ends. A Poisson arrival
  sees the time average, so its mean latency T solves the curve at n - 1 = l T (Little's law):
  T = R(1) (1 - (a l)^q)^(-1/q), at most R(N), with (a l)^q = (1 - s^q) r^q but for a factor
  N / (N - 1). With q = 1 this is exact for an open product-form network of balanced stations, such
  as dies chosen at random. q is the profile's sharpness, but less at knees of few
  requests, where the number in flight fluctuates. Where a bottleneck that all share bends the curve
  sharply, dies still collide below the knee: up to COLLISIONS of R(1) is added.
* Waiting: P(wait) v / (C (1 - r)) with P(wait) = r^(sqrt(2 (servers + 1)) - 1) (Sakasegawa, "An
  approximation formula L_q = a r^b / (1 - r)", Ann. Inst. Statist. Math. 29, 1977; exact for M/M/1)
  and v = (c_a^2 + c_s^2) / 2 (Allen and Cunneen; exact for M/G/1 by Pollaczek and Khinchine). There
  are two such queues, weighted by the share of either bottleneck: for the N slots, and for the m
  servers that the drive amounts to where its curve bends sharply.
* Percentiles: the one of a request alone; plus collisions inside the drive, which grow with the
  square root of the mean delay and with the delay itself, and the more slots are taken, the more as
  the full queue's are; plus the exponential tail of the wait (Kingman's heavy-traffic limit). The
  two delays are joined as if independent.
* A write buffer answers requests that the flash has yet to take. What the closed loop shows beyond
  the knee is then the buffer's back pressure, which an open loop meets only once it is full.

Constants without a theory are fitted; tests/end_to_end/test_open_loop.py is the study that fitted
them, and states its drives. They are assumptions about any other drive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.bands import MEASURED, Band, Floats, longer_of
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.observed_latency import ObservedLatency
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.quantities import MOST_HALF_WIDTH, NORMAL_90, NOT_BELOW

SOFTENING = 0.5
"""How far 1/q is drawn from the inverse sharpness to 1 at a knee of one request (fitted, see the
module); of m requests it is m times less."""

COLLISIONS = 0.1
"""Mean delay at full load by dies where something else bounds the capacity, as a share of the
latency alone (fitted)."""

SPREAD, DRIFT = 2.5, 1.1
"""p99 of the delay inside the drive: SPREAD sqrt(delay x latency alone) + DRIFT delay (fitted)."""

FRONT_END = 0.02
"""Mean delay at full load of buffered writes that overlap in the front end, as a share of their
latency alone (fitted)."""

_SHARPEST, _SOFTEST = 0.02, 0.98
"""1/k lies between: of a corner, and of balanced stations. A knee of one request is a corner."""
_MOST_VARIABLE = 4.0
"""Largest squared coefficient of variation of service that is read off percentiles."""

LOG_ODDS: Mapping[str, float] = {
    "p50": float(np.log(2.0)),
    "p99": float(np.log(100.0)),
    "p999": float(np.log(1000.0)),
}
"""-log of the share of requests that exceed a percentile."""


@dataclass(frozen=True)
class ClosedLoop:
    """What the profile's closed-loop curve says of n rows; every array has shape (n,).

    Attributes:
        capacity_per_second: Requests a second with the queue full.
        in_flight: N, the requests that may be in flight (queue depth x jobs).
        alone: Latency in ns with one request in flight in total, by quantity: "latency" (the
            mean), "p50", "p99", "p999". Of writes that alone fill the drive, with pauses.
        full: The same percentiles with N in flight. The mean is N / capacity by Little's law and
            is not read.
        sharpness: k of the profile's curve R(N)^k = R0^k + (N / Xmax)^k (`model.evaluate.surface`).
        buffer_requests: Requests that the drive answers before the flash takes them; 0: none, or
            unknown, which is the cautious choice.
        buffered_share: Share of the requests that the buffer may answer: of the writes in a mix.
    """

    capacity_per_second: Floats
    in_flight: Floats
    alone: Mapping[str, Floats]
    full: Mapping[str, Floats]
    sharpness: Floats | float
    buffer_requests: Floats | float = 0.0
    buffered_share: Floats | float = 1.0


@dataclass(frozen=True)
class ArrivalProcess:
    """An arrival process; arrays of shape (n,) or one value for all rows.

    Attributes:
        per_second: Requests a second.
        variability: Squared coefficient of variation of the times between requests: 1 is Poisson,
            0 is periodic (fio's `rate_process=linear`).
    """

    per_second: Floats | float
    variability: Floats | float = 1.0


def sojourn(
    loop: ClosedLoop, arrivals: ArrivalProcess, names: Sequence[str] = ("latency", "p99")
) -> dict[str, Floats]:
    """Latency of requests from their arrival, the wait for a slot included.

    Args:
        loop: The closed loop. `alone` needs "latency" and each of `names`, `full` each of `names`
            but "latency". A "p99" in `full` also tells how variable service is; where it is missing
            or NaN, service counts as exponential.
        arrivals: How requests arrive.
        names: The quantities wanted.

    Returns:
        ns by name, shape (n,). Infinite where the rate is the capacity or more. Percentiles that
        are wanted together are ordered.
    """
    queues = queues_of(loop, arrivals)
    latencies = {name: latency(queues, loop, name) for name in names}
    percentiles = [name for name in LOG_ODDS if name in names]
    for lower, upper in pairwise(percentiles):
        latencies[upper] = np.maximum(latencies[upper], latencies[lower])
    return latencies


_ERRORS: Mapping[str, tuple[float, float]] = {
    "latency": (0.04, 0.15),
    "p50": (0.06, 0.18),
    "p99": (0.18, 0.08),
    "p999": (0.20, 0.10),
}
"""Log half width of 90 % by quantity: at no load, and for each unit of g = -log(1 - load)."""

_BUFFERED_ERRORS: Mapping[str, tuple[float, float]] = {
    "latency": (0.22, 0.15),
    "p50": (0.05, 0.15),
    "p99": (0.45, 0.26),
    "p999": (0.55, 0.25),
}
"""The same with a write buffer."""

STUDIED_WRITES = 0.3
"""Least share of writes with which buffers were studied: of fewer, what a buffer does to the queue
in front of the drive is in proportion to them, for reads wait for each other as before."""

BUFFER_FILLS = 0.3
"""Log half width with a write buffer besides, times g^3: near capacity it fills now and then, and
whoever comes then waits for the flash (simulated drives of `iojoule validate recommendations`)."""


def error_log_sd(
    load: Floats | float, name: str, buffered: Floats | NDArray[np.bool_] | bool = False
) -> Floats:
    """The model's own error, beside that of the closed loop that it is given.

    Args:
        load: Rate over capacity, below 1; broadcasts with `buffered`.
        name: "latency", "p50", "p99" or "p999".
        buffered: Whether `ClosedLoop.buffer_requests` is above 0, or how far between (`_of_queue`).

    Returns:
        Log sd. It leaves out that writes whose buffer is not known answer far sooner than told.
    """
    grown = -np.log1p(-np.minimum(load, 0.999))
    plain, steep = _ERRORS[name]
    half = plain + steep * grown
    if np.any(buffered):
        relieved, steeper = _BUFFERED_ERRORS[name]
        filling = relieved + steeper * grown + BUFFER_FILLS * grown**3
        half = half + buffered * (np.minimum(filling, MOST_HALF_WIDTH) - half)
    return np.asarray(half / NORMAL_90)


def _of_queue(write_share: Floats | float) -> Floats:
    """Share of the queue in front of the drive that a buffer of writes takes off, 0 to 1."""
    return np.minimum(np.asarray(write_share) / STUDIED_WRITES, 1.0)


@dataclass(frozen=True)
class Queues:
    """Terms of an open loop that do not depend on the quantity; arrays of shape (n,), times in ns.

    Attributes:
        alone: Mean latency with one request in flight.
        full: The same with all slots taken.
        inside: Mean time inside the drive.
        waiting: Mean wait before it.
        taken: Share of the slots that are taken, by Little's law.
        tails: Log of P(wait) and the mean of a wait that happens, of each queue.
        relieved: How far a write buffer takes off the back pressure, 0 to 1.
        overloaded: Rows whose rate is the capacity or more.
    """

    alone: Floats
    full: Floats
    inside: Floats
    waiting: Floats
    taken: Floats
    tails: Sequence[tuple[Floats, Floats]]
    relieved: Floats | float
    overloaded: NDArray[np.bool_]

    @cached_property
    def mean(self) -> Floats:
        """Mean latency from arrival; of overloaded rows no number."""
        return self.inside + self.waiting

    @cached_property
    def delay(self) -> Floats:
        """Mean delay inside the drive, for what else is in flight."""
        return np.maximum(self.inside - self.alone, 0.0)

    @cached_property
    def spread(self) -> Floats:
        """p99 of that delay."""
        return _collisions(self.delay, self.alone)

    @cached_property
    def against(self) -> Floats:
        """The same with all slots taken."""
        return _collisions(self.full - self.alone, self.alone)


@np.errstate(divide="ignore")  # no load and no wait have logs of minus infinity
def latency(queues: Queues, loop: ClosedLoop, name: str) -> Floats:
    """One quantity of `sojourn`.

    Args:
        queues: Of the loop and its arrivals.
        loop: The closed loop.
        name: "latency", "p50", "p99" or "p999".
    """
    value = queues.mean
    if name == "p50":
        # of exponential delays: exact for M/M/1
        value = loop.alone[name] + LOG_ODDS[name] * (queues.delay + queues.waiting)
    elif name != "latency":
        odds = LOG_ODDS[name]
        part = odds / LOG_ODDS["p99"]
        # the closed loop tells how much worse than collisions this drive is
        worse = loop.full[name] / (queues.alone + part * queues.against)
        worse = worse ** (queues.taken * (1.0 - queues.relieved))
        drive = loop.alone[name] + worse * part * queues.spread
        wait = np.zeros_like(value)
        for log_share, scale in queues.tails:
            wait = np.maximum(wait, scale * np.maximum(log_share + odds, 0.0))
        value = _of_both((queues.inside, drive), (queues.waiting, wait))
    if queues.overloaded.any():
        value = np.where(queues.overloaded, np.inf, value)
    return value


def _of_both(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
    """A high percentile of two delays together, from mean and percentile of each.

    What exceeds the means joins as if independent.
    """
    above = [np.maximum(high - mean, 0.0) for mean, high in (first, second)]
    return np.asarray(first[0] + second[0] + np.hypot(*above))


def _collisions(delay: Floats, alone: Floats) -> Floats:
    """p99 of the delay inside the drive over that of a request alone."""
    return SPREAD * np.sqrt(delay * alone) + DRIFT * delay


@np.errstate(divide="ignore")
def queues_of(loop: ClosedLoop, arrivals: ArrivalProcess) -> Queues:
    """What waits where, for any quantity; arguments as of `sojourn`."""
    slots, alone = loop.in_flight, loop.alone["latency"]
    each = 1e9 / loop.capacity_per_second
    load = arrivals.per_second / loop.capacity_per_second
    overloaded = load >= 1.0
    if overloaded.any():
        load = np.where(overloaded, 0.5, load)
    full = np.maximum(slots * each, alone)
    share = alone / full
    knee = np.maximum(slots * share, 1.0)
    log_load, log_share = np.log(load), np.log(share)
    relieved: Floats | float = 0.0
    if np.any(loop.buffer_requests):
        relieved = loop.buffer_requests / (loop.buffer_requests + knee)
        relieved = relieved * np.cbrt(loop.buffered_share)

    corner = 1.0 - np.clip(
        (1.0 - 1.0 / np.square(knee * knee)) / loop.sharpness, _SHARPEST, _SOFTEST
    )
    flat = 1.0 - corner * (1.0 - SOFTENING / knee * (1.0 - relieved))
    bend = 1.0 / flat
    crowd = np.exp(bend * log_load) - np.exp(bend * (log_load + log_share))
    inside: Floats = alone
    varies = 0.5 * (arrivals.variability + _service_variability(loop, full))
    # Sakasegawa's exponents of P(wait), less 1
    for_slot = np.sqrt(2.0 * (slots + 1.0) / share) - 2.0
    for_drive = np.sqrt(2.0 * (knee + 1.0)) - 2.0
    if np.ndim(relieved):
        inside = inside + FRONT_END * alone * relieved * load
    at_knee = np.sqrt(corner * (1.0 - share))
    colliding = COLLISIONS * (1.0 - 1.0 / knee) * at_knee * (1.0 - relieved)
    colliding = colliding * (1.0 - np.square(np.square(1.0 - load)))
    inside = np.minimum(inside * (np.exp(-flat * np.log1p(-crowd)) + colliding), full)

    scale = varies * each / (1.0 - load)
    in_drive = at_knee * np.exp((for_drive + 1.0) * log_load)
    if np.ndim(relieved):
        filled = np.exp(relieved * loop.buffer_requests / varies * log_load)
        in_drive = in_drive * (1.0 - _of_queue(loop.buffered_share) * (1.0 - filled))
        # a slot is held for what the drive takes, not for the buffer's back pressure
        held = 1.0 - relieved * (1.0 - inside / full)
        in_slot = (1.0 - at_knee) * np.exp((for_slot + 1.0) * (log_load + np.log(held)))
        held_scale = varies * each * held / (1.0 - load * held)
        waiting = held_scale * in_slot + scale * in_drive
        tails = [(np.log(in_slot), held_scale), (np.log(in_drive), scale)]
    else:
        waits = in_drive + (1.0 - at_knee) * np.exp((for_slot + 1.0) * log_load)
        waiting = scale * waits
        tails = [(np.log(waits), scale)]
    taken = load * inside / full
    return Queues(alone, full, inside, waiting, taken, tails, relieved, overloaded)


def _service_variability(loop: ClosedLoop, full: Floats) -> Floats | float:
    """Squared coefficient of variation of service, read off p99 over the mean of the closed loop.

    p99 lies 2.326 sd above the mean where service hardly varies (normal), and 3.605 where it is
    exponential; the divisor goes through both.
    """
    if "p99" not in loop.full:
        return 1.0
    above = np.maximum(loop.full["p99"] / full - 1.0, 0.0)
    varies = above / (2.326 + 0.3548 * above)
    return np.where(np.isnan(varies), 1.0, np.minimum(varies * varies, _MOST_VARIABLE))


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
    """The same configurations with a single request in flight, and in a burst."""
    ones = np.ones(len(frame))
    burst = np.minimum(frame.burst_bytes, frame.request_bytes)
    return replace(frame, queue_depth=ones, jobs=ones, burst_bytes=burst)


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
        burst_requests: Requests of a burst; NaN where nobody knows: then it fills the queue.
        write_share: Share of writes, 0 to 1.
        sharpness: As of `ClosedLoop`.
        buffer_requests: Requests that the write buffer takes; NaN: nobody knows (`Activity`). Then
            values and upper ends are those without any, lower ends those of one that never fills.
        flush: What flushes add; None where the work has none.
        observed: What was measured of one configuration at this rate; None where nothing was.
    """

    full: Prediction
    alone: Prediction | None
    arrivals: Arrivals
    rate: Floats
    capacity: Floats
    log_down: Floats
    log_up: Floats
    in_flight: Floats
    burst_requests: Floats
    write_share: Floats
    sharpness: Floats
    buffer_requests: Floats
    flush: Flush | None = None
    observed: ObservedLatency | None = None
    _loops: dict[float, tuple[ClosedLoop, Queues]] = field(
        default_factory=dict, init=False, compare=False
    )
    _known: dict[tuple[str, float], Floats] = field(default_factory=dict, init=False, compare=False)

    def at(self, name: str, scale: float = 0.0) -> Floats:
        """A mean or percentile, ns, infinite where the work cannot be served; shape (n,).

        Args:
            name: The quantity, as `latency_p99_ns`.
            scale: Half widths of the 90 % interval above the value: 1 is its upper end.
        """
        if self.observed is None:
            return self._predicted(name, scale)
        value, high, end = (self._predicted(name, each) for each in (0.0, 1.0, scale))
        latency = self.observed.moved(name, value, high, end, scale)
        return self._no_shorter(name, latency, lambda lower: self.at(lower, scale))

    def _predicted(self, name: str, scale: float) -> Floats:
        """As `at`, as predicted."""
        added = self.flush.of(name, scale) if self.flush is not None else 0.0
        return self._in_order(name, scale) + added

    def _in_order(self, name: str, scale: float) -> Floats:
        """As predicted without flushes; a percentile is no shorter than a lower one."""
        latency = self._queued(name, scale)
        return self._no_shorter(name, latency, lambda lower: self._in_order(lower, scale))

    def _no_shorter(
        self, name: str, latency: Floats, latency_of: Callable[[str], Floats]
    ) -> Floats:
        """A quantity raised to those that it is at least as long as."""
        for lower in NOT_BELOW.get(name, ()):
            if lower in self.full.bands:
                latency = longer_of(latency, latency_of(lower))
        return latency

    def band(self, name: str) -> Band:
        """A mean or percentile with its interval.

        Its upper end is infinite where the demand lies within the interval of the capacity.
        """
        value, evidence = self.at(name), self.full[name].evidence
        if self.observed is not None and name in self.observed.measured:
            evidence = np.where(self.observed.itself, MEASURED, evidence)
        return Band(value, np.minimum(self.at(name, -1.0), value), self.at(name, 1.0), evidence)

    def _queued(self, name: str, scale: float) -> Floats:
        """As `_in_order`, of the quantity by itself."""
        if (name, scale) not in self._known:
            self._known[name, scale] = self._queued_now(name, scale)
        return self._known[name, scale]

    def _queued_now(self, name: str, scale: float) -> Floats:
        if self.arrivals is Arrivals.CLOSED:
            return _end(self.full[name], scale)
        load = self.rate / self._capacity(scale)
        if self.arrivals is Arrivals.BURSTS:
            return self._in_bursts(name, scale, load)
        wanted = QUANTITIES[name]
        loop, queues = self._open(scale)
        sojourn_ns = latency(queues, loop, wanted)
        if scale == 0.0:
            return sojourn_ns
        # the model's own error is independent of what the profile errs by at the end's load
        buffered = np.where(np.asarray(loop.buffer_requests) > 0.0, _of_queue(self.write_share), 0)
        sd = error_log_sd(load, wanted, buffered)
        return _joined(self._queued(name, 0.0), sojourn_ns, scale, sd)

    def _in_bursts(self, name: str, scale: float, load: Floats) -> Floats:
        """Wait for the bursts before, and latency among the requests of one's own."""
        together = np.fmin(self.burst_requests, self.in_flight)
        takes_ns = 1e9 * together / self._capacity(scale)
        wait, own = burst_wait(name, load) * takes_ns, self._among(name, together, scale)
        total = wait + own
        if PERCENTILES.get(name, 0.0) > 0.5:
            mean_wait, mean = burst_wait(MEAN, load) * takes_ns, self._among(MEAN, together, scale)
            total = _of_both((mean_wait, wait), (mean, own))
        return np.where(load < 1.0, total, np.inf)

    def _among(self, name: str, together: Floats, scale: float) -> Floats:
        """Latency among so many requests that come together, at most as many as the queue holds."""
        full, fewer = _end(self.full[name], scale), together < self.in_flight
        if not fewer.any():
            return full
        assert self.alone is not None
        alone = _end(self.alone[name], scale)
        others = (together - 1.0) / np.maximum(self.in_flight - 1.0, 1.0)
        return np.where(fewer, alone + (full - alone) * others, full)

    def _capacity(self, scale: float) -> Floats:
        shift = self.log_down if scale > 0.0 else self.log_up
        return self.capacity * np.exp(-scale * shift) if scale else self.capacity

    def _open(self, scale: float) -> tuple[ClosedLoop, Queues]:
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
            loop = ClosedLoop(
                capacity,
                self.in_flight,
                alone,
                full,
                self.sharpness,
                buffer_requests=buffer,
                buffered_share=self.write_share,
            )
            variability = 0.0 if self.arrivals is Arrivals.EVEN else 1.0
            arriving = ArrivalProcess(self.rate, variability=variability)
            self._loops[scale] = loop, queues_of(loop, arriving)
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
        odds = np.maximum(2.0 * self.write_share - 1.0, 0.0) ** 2
        weight = np.where(fills & (buffer > 0.0), odds, 0.0)
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
    """An end of an interval with an independent error besides; log distances join as squares.

    Beside an infinite distance the other error is nothing: the end is as it was.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.log(end / value)
        far = np.hypot(distance, scale * NORMAL_90 * log_sd)
        return np.where(np.isfinite(distance), value * np.exp(np.sign(scale) * far), end)


_HEAVY = 0.999
"""Load from which the decay of a wait is that of heavy traffic, 2 (1 - rho): within 0.1 %."""


def burst_wait(name: str, load: Floats) -> Floats:
    """Wait of a burst for those before it, in units of the time that one takes.

    The M/D/1 queue at load rho. Mean: rho / (2 (1 - rho)) (Pollaczek and Khinchine). A percentile
    is exact up to one burst's time, P(wait <= t) = (1 - rho) exp(rho t) (Erlang), and beyond it
    follows the asymptote P(wait > t) = (1 - rho) / (rho exp(d) - 1) exp(-d t), d the positive root
    of rho (exp(d) - 1) = d (H. C. Tijms, A First Course in Stochastic Models, 2003, 9.6).

    Args:
        name: The quantity, as `latency_p99_ns`.
        load: rho, shape (n,); of 1 and more some number.
    """
    load = np.clip(load, 1e-9, 1.0 - 1e-12)
    left = 1.0 - load
    if name not in PERCENTILES:
        return np.asarray(load / (2.0 * left))
    share = PERCENTILES[name]
    soon = np.log(share / left) / load
    decay = np.where(load < _HEAVY, _decay(np.minimum(load, _HEAVY)), 2.0 * left)
    height = np.where(load < _HEAVY, left / (load * np.exp(decay) - 1.0), load)
    later = np.log(height / (1.0 - share)) / decay
    return np.maximum(np.where(soon <= 1.0, soon, np.maximum(later, 1.0)), 0.0)


def _decay(load: Floats) -> Floats:
    """The positive root d of rho (exp(d) - 1) = d, by Newton's method on x - log x, x = d + rho."""
    level = load - np.log(load)
    root = 1.0 + np.sqrt(2.0 * (level - 1.0)) + (level - 1.0)
    for _ in range(6):
        root = root - (root - np.log(root) - level) / (1.0 - 1.0 / root)
    return root - load
