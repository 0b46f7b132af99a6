"""The power of the last seconds, while the recording goes on: is the drive idle yet?"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.recording.statistics import batch_standard_error
from iojoule.measure.sensors.protocol import Chunk, Flag, Kind, Probe, Scope

BIN_NS = 10_000_000
KEPT_SECONDS = 120.0
FEWEST_BINS = 5


@dataclass(frozen=True)
class RecentPower:
    """Mean power of the last seconds.

    Attributes:
        mean_watts: Of the rails that make up the scope.
        standard_error_watts: Of that mean, autocorrelation allowed for.
        sd_of_second_watts: Standard deviation of the means of single seconds; None with < 3.
        seconds: How much time it covers.
        end_ns: CLOCK_MONOTONIC of the newest sample.
    """

    mean_watts: float
    standard_error_watts: float
    sd_of_second_watts: float | None
    seconds: float
    end_ns: int


class Recent:
    """Means over 10 ms of the rails of one scope, for the last two minutes."""

    def __init__(self, probe: Probe, scope: Scope) -> None:
        rails = [
            (place, rail)
            for place, rail in enumerate(probe.rails)
            if rail.scope is scope and rail.counts and rail.kind in (Kind.POWER, Kind.ENERGY)
        ]
        self._columns = [place for place, _ in rails]
        self._energy = any(rail.kind is Kind.ENERGY for _, rail in rails)
        self._bins: deque[tuple[int, float, float]] = deque()  # end, seconds, joules
        self._before: tuple[int, float] | None = None
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._columns)

    def add(self, chunk: Chunk) -> None:
        """Take in samples; stale ones are left out."""
        values = chunk.values[:, self._columns].sum(axis=1)
        use = ((chunk.flags & Flag.STALE) == 0) & np.isfinite(values)
        times, values = chunk.monotonic_ns[use], values[use]
        if not len(times):
            return
        if self._before is None:
            self._before = (int(times[0]), float(values[0]))
        ends, seconds, joules = self._binned(times, values)
        with self._lock:
            self._bins.extend(zip(ends, seconds, joules, strict=True))
            oldest = self._bins[-1][0] - KEPT_SECONDS * 1e9 if self._bins else 0
            while self._bins and self._bins[0][0] < oldest:
                self._bins.popleft()
        self._before = (int(times[-1]), float(values[-1]))

    def power(self, seconds: float) -> RecentPower | None:
        """Over the last seconds; None when fewer were recorded."""
        with self._lock:
            bins = np.array(self._bins)
        if len(bins) < FEWEST_BINS:
            return None
        bins = bins[bins[:, 0] > bins[-1, 0] - seconds * 1e9]
        covered = float(bins[:, 1].sum())
        if len(bins) < FEWEST_BINS or covered < 0.8 * seconds:
            return None
        watts = bins[:, 2] / bins[:, 1]
        places = ((bins[-1, 0] - bins[:, 0]) // 1e9).astype(np.int64)
        per_second = np.bincount(places, bins[:, 2]) / np.maximum(
            np.bincount(places, bins[:, 1]), 1e-9
        )
        return RecentPower(
            mean_watts=float(bins[:, 2].sum()) / covered,
            standard_error_watts=batch_standard_error(watts),
            sd_of_second_watts=float(per_second.std(ddof=1)) if len(per_second) > 2 else None,
            seconds=covered,
            end_ns=int(bins[-1, 0]),
        )

    def _binned(
        self, times: NDArray[np.int64], values: NDArray[np.float64]
    ) -> tuple[list[int], list[float], list[float]]:
        """End, seconds and joules of each bin that has samples."""
        assert self._before is not None
        steps = np.diff(times, prepend=self._before[0]) * 1e-9
        energy = np.diff(values, prepend=self._before[1]) if self._energy else values * steps
        bins = times // BIN_NS
        firsts = np.flatnonzero(np.diff(bins, prepend=bins[0] - 1))
        seconds = np.add.reduceat(steps, firsts)
        joules = np.add.reduceat(energy, firsts)
        ends = times[np.append(firsts[1:], len(times)) - 1]
        use = seconds > 0
        return ends[use].tolist(), seconds[use].tolist(), joules[use].tolist()
