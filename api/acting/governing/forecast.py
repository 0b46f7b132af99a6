"""What each setting of a drive would draw, and how late it would answer, at a stated demand."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iojoule.api.acting.governing.law import Forecast
from iojoule.datasets.errors import InputError, NoProfileError
from iojoule.datasets.profile import DeviceProfile
from iojoule.meter.counters import Amounts
from iojoule.meter.estimate import DriveModel, States
from iojoule.model.evaluate import equal_work
from iojoule.model.evaluate.bands import EXTRAPOLATED
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.latency import Arrivals, alone_of
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.recommender.sla import LATENCY_MAXIMA, MINIMA, Sla, confidence_scale

LEAST_RATE = 1e-3
"""Requests a second that stand for none."""

ONE_DIRECTION = 0.02
"""Share of requests below which the other direction is taken for none: a journal, a superblock."""

POWER_BOUND = "device_power_watts_max"
KEPT = (*LATENCY_MAXIMA, *MINIMA, POWER_BOUND)
"""Bounds of an SLA that a governor can keep."""

_BLOCK_BYTES = 512
_SECOND = 1.0
_LATENCY_QUANTITIES = tuple(LATENCY_MAXIMA.values())


@dataclass(frozen=True)
class Setting:
    """A value of every actuator.

    Attributes:
        power_state: Operational power state of an NVMe drive; None: left as it is.
        scheduler: Of its queue; likewise.
    """

    power_state: int | None
    scheduler: str | None = None

    def __str__(self) -> str:
        parts = [f"PS{self.power_state}"] if self.power_state is not None else []
        return " ".join([*parts, *([self.scheduler] if self.scheduler else [])]) or "as it is"


@dataclass(frozen=True)
class Load:
    """What a drive is asked to do.

    Attributes:
        requests_per_second: Reads and writes with data.
        request_bytes: Mean size.
        read_fraction: Of the requests.
    """

    requests_per_second: float
    request_bytes: float
    read_fraction: float


class Demand:
    """The demand of the next period from those of the last intervals: an upper quantile.

    Size and share of reads are means over all requests of these intervals, or, while there are
    none, of those before. A rise counts at once, a fall when the intervals before it have passed. A
    drive that is late serves less than is demanded, so what it serves then counts only after a
    while, twice as long each time that this proves too little.

    Args:
        intervals: How many count.
        quantile: Of their rates.
        hold_seconds: The first while; `hold_max_seconds` the longest.
    """

    def __init__(
        self,
        intervals: int = 10,
        quantile: float = 0.9,
        *,
        hold_seconds: float = 60.0,
        hold_max_seconds: float = 3600.0,
    ) -> None:
        self._rates: deque[float] = deque(maxlen=intervals)
        self._amounts: deque[tuple[float, float, float]] = deque(maxlen=intervals)
        self._quantile = quantile
        self._mix = (4096.0, 1.0)
        self._shortest, self._longest = hold_seconds, hold_max_seconds
        self._hold, self._released = 0.0, -math.inf
        self._held_until: float | None = None

    def load(self, seconds: float, reads: float, writes: float, moved_bytes: float) -> Load:
        """Take in what was moved in an interval; returns its load."""
        self._amounts.append((reads, writes, moved_bytes))
        read, written, moved = (sum(column) for column in zip(*self._amounts, strict=True))
        if read + written > 0 and moved > 0:
            self._mix = moved / (read + written), read / (read + written)
        return Load((reads + writes) / seconds, *self._mix)

    def add(self, load: Load, at_seconds: float, *, is_late: bool = False) -> None:
        """Take in how much was served in an interval.

        Args:
            load: Of it.
            at_seconds: Its end.
            is_late: Whether requests waited for longer than they should.
        """
        rate = load.requests_per_second
        if not is_late or not self._rates or rate >= self.next().requests_per_second:
            self._held_until = None
            self._rates.append(rate)
            return
        if self._held_until is None:
            again = at_seconds - self._released < self._longest
            self._hold = max(self._shortest, 2.0 * self._hold if again else 0.0)
            self._hold = min(self._hold, self._longest)
            self._held_until = at_seconds + self._hold
        if at_seconds >= self._held_until:
            self._released, self._held_until = at_seconds, None
            self._rates.clear()
            self._rates.append(rate)

    def next(self) -> Load:
        """What is to be expected of the next period."""
        rate = max(float(np.quantile(self._rates, self._quantile)), self._rates[-1])
        return Load(rate, *self._mix)


@dataclass(frozen=True)
class Predicted:
    """One setting at one load: the forecast, and figures for the log.

    Attributes:
        forecast: As the law takes it.
        latency_mean_ns: Infinite where the load cannot be carried.
        latency_share: Latency over its bound as predicted, without any margin for confidence.
        over_mean: By bound of the SLA: latency that it is about, over the mean.
    """

    forecast: Forecast
    latency_mean_ns: float
    latency_share: float
    over_mean: dict[str, float]


class Forecaster:
    """Predicts all settings of one drive.

    Args:
        profile: Of the drive's model.
        settings: What is compared.
        sla: Its bounds; what a governor cannot keep is refused.
        pattern: `random` or `sequential`: counters do not tell.
        concurrency: Most requests that the applications keep in flight.
        sleeps: Whether the drive changes its power state by itself when it rests.

    Raises:
        InputError: The SLA bounds what a governor cannot keep, or nothing.
        NoProfileError: The profile knows no watts of the drive.
    """

    def __init__(
        self,
        profile: DeviceProfile,
        settings: Sequence[Setting],
        sla: Sla,
        *,
        pattern: str = "random",
        concurrency: int = 32,
        sleeps: bool = False,
    ) -> None:
        if profile.device_power is None:
            raise NoProfileError(
                f"{profile.device}: this profile knows no watts of the drive; measure it with a "
                "power meter and fit it again"
            )
        self.settings, self.bounds = tuple(settings), _kept_bounds(sla)
        self._sla, self._predictor = sla, Predictor(profile)
        self._concurrency = concurrency
        rows = len(self.settings)
        self._columns = {
            "power_state": [one.power_state or 0 for one in self.settings],
            "pattern": [pattern] * rows,
            "queue_depth": [concurrency] * rows,
            "jobs": [1] * rows,
        }
        if any(one.scheduler for one in self.settings):
            self._columns["scheduler"] = [one.scheduler for one in self.settings]
        more = {"apst_enabled": True} if sleeps and profile.idle is not None else {}
        states = {one.power_state or 0 for one in self.settings}
        self._drives = {
            state: DriveModel(profile, power_state=state, settings=more) for state in states
        }

    def at(self, load: Load) -> list[Predicted]:
        """Predict every setting at a load."""
        rows = len(self.settings)
        rate = max(load.requests_per_second, LEAST_RATE)
        share = load.read_fraction
        share = float(np.where(share < ONE_DIRECTION, 0.0, min(share, 1.0)))
        share = 1.0 if share > 1.0 - ONE_DIRECTION else share
        size = max(round(load.request_bytes / _BLOCK_BYTES), 1) * _BLOCK_BYTES
        columns = self._columns | {
            "operation": ["mixed"] * rows,
            "read_fraction": [share] * rows,
            "request_bytes": [size] * rows,
        }
        frame, _ = make_frame(self._predictor.profile, columns, rows)
        only = (*_LATENCY_QUANTITIES, "device_power_watts")
        full = self._predictor.predict(frame, only=only)
        alone = self._predictor.predict(alone_of(frame), only=_LATENCY_QUANTITIES)
        demand = equal_work.Demand(rate * size, size, size, arrivals=Arrivals.POISSON)
        work = equal_work.work_of(frame, full, demand, alone)
        mean = work.latencies.at("latency_mean_ns")
        shares, plain = np.zeros(rows), np.zeros(rows)
        over_mean: dict[str, np.ndarray] = {}
        for name, limit in self.bounds.items():
            if name in LATENCY_MAXIMA:
                quantity = LATENCY_MAXIMA[name]
                margin = confidence_scale(self._sla.confidence_of(name))
                shares = np.maximum(shares, work.latencies.at(quantity, margin) / limit)
                value = work.latencies.at(quantity)
                plain = np.maximum(plain, value / limit)
                finite = np.isfinite(mean)
                over_mean[name] = np.divide(value, mean, out=np.ones(rows), where=finite)
            elif name in MINIMA:
                margin = confidence_scale(self._sla.confidence_of(name))
                band = full[MINIMA[name]]
                carried = band.value * (band.low / band.value) ** margin
                shares = np.maximum(shares, np.where(carried >= limit, 0.0, np.inf))
        evidence = np.maximum(full.evidence, full["device_power_watts"].evidence)
        capacity = full["iops"].value
        shares = np.where(capacity > rate, shares, np.inf)
        watts = [
            self._watts(setting, Load(min(rate, capacity[row]), size, share), float(mean[row]))
            for row, setting in enumerate(self.settings)
        ]
        return [
            Predicted(
                Forecast(
                    watts=watts[row][0],
                    watts_bound=watts[row][1],
                    latency_share=float(shares[row]),
                    capacity=float(capacity[row]),
                    known=bool(evidence[row] <= EXTRAPOLATED),
                ),
                latency_mean_ns=float(mean[row]),
                latency_share=float(plain[row]),
                over_mean={name: float(values[row]) for name, values in over_mean.items()},
            )
            for row in range(rows)
        ]

    def _watts(self, setting: Setting, load: Load, latency_ns: float) -> tuple[float, float]:
        """Mean power, and its one-sided bound at the SLA's confidence, as the meter estimates it.

        A drive that serves in an open loop has fewer requests in flight than one at full speed.
        """
        rate, size = load.requests_per_second, load.request_bytes
        if rate <= LEAST_RATE:
            amounts = Amounts(_SECOND, *(np.zeros(1) for _ in range(7)))
        else:
            read, written = rate * load.read_fraction, rate * (1.0 - load.read_fraction)
            waiting = min(rate * latency_ns * 1e-9, float(self._concurrency))
            of_writes = waiting * (1.0 - load.read_fraction)
            parts = (read, read * size, written, written * size, waiting, of_writes, 0.0)
            amounts = Amounts(_SECOND, *(np.array([part]) for part in parts))
        model = self._drives[setting.power_state or 0]
        estimate = model.step(amounts, States.fresh(1))
        watts, sd = float(estimate.watts[0]), float(estimate.sd[0])
        z = confidence_scale(self._sla.confidence_of(POWER_BOUND)) * NORMAL_90
        return watts, watts + z * sd

    def measured_share(self, mean_ns: float, here: Predicted) -> float:
        """A measured mean latency over its bound, the worst of all bounds.

        Of a percentile it is the mean times what is predicted between the two: the block layer
        counts no percentiles.
        """
        shares = [
            mean_ns * here.over_mean[name] / limit
            for name, limit in self.bounds.items()
            if name in LATENCY_MAXIMA
        ]
        return max(shares, default=0.0)


def _kept_bounds(sla: Sla) -> dict[str, float]:
    bounds = {name: limit for name, limit in sla.bounds().items() if name not in sla.soft}
    other = sorted(bounds.keys() - set(KEPT))
    if other:
        raise InputError(
            f"sla: a governor of drives cannot keep {', '.join(other)}; leave it out or make it "
            f"soft. It keeps {', '.join(KEPT)}"
        )
    if sla.directions:
        raise InputError(
            "sla: a governor keeps bounds of all requests together; leave out `directions`"
        )
    if not bounds:
        raise InputError("sla: bounds nothing, so the least watts would always do; state a latency")
    assert all(math.isfinite(limit) for limit in bounds.values())
    return bounds
