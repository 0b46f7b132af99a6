"""Sensors without hardware, for the recorder."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.protocol import (
    Chunk,
    Delivery,
    Kind,
    Probe,
    Rail,
    Scope,
    empty_chunk,
)

POWER = (Rail("12v", "watts", Kind.POWER, Scope.DEVICE),)


class FakeSensor:
    """Delivers, every few milliseconds, what a function of time says of all moments since.

    Args:
        values: From times (CLOCK_MONOTONIC, ns, shape (n,)) to values, shape (n, rails).
        rails: Its rails.
        fail_after: So many samples are delivered, then it fails with `reason`.
    """

    def __init__(
        self,
        values: Callable[[np.ndarray], np.ndarray],
        rails: tuple[Rail, ...] = POWER,
        *,
        name: str = "fake:a",
        hertz: float = 1000.0,
        fail_after: int | None = None,
        fail_start: bool = False,
        error: type[Exception] = SensorError,
    ) -> None:
        self.name = name
        self.marks = 0
        self._values, self._rails, self._step_ns = values, rails, int(1e9 / hertz)
        self._fail_after, self._fail_start, self._error = fail_after, fail_start, error
        self._next_ns, self._samples = 0, 0
        self.stopped = False

    def probe(self) -> Probe:
        return Probe(self._rails, 1e9 / self._step_ns, {"serial": "1"})

    def start(self) -> None:
        if self._fail_start:
            raise self._error(f"{self.name} does not start")
        self._next_ns = time.monotonic_ns()

    def read(self, timeout_seconds: float) -> Chunk:
        if self.stopped:
            return empty_chunk(len(self._rails))
        time.sleep(min(timeout_seconds, 0.01))
        times = np.arange(self._next_ns, time.monotonic_ns(), self._step_ns, dtype=np.int64)
        if self._fail_after is not None and self._samples + len(times) > self._fail_after:
            raise self._error(f"{self.name} stalled")
        if len(times):
            self._next_ns = int(times[-1]) + self._step_ns
        self._samples += len(times)
        values = np.asarray(self._values(times), dtype=np.float64).reshape(
            len(times), len(self._rails)
        )
        return Chunk(times, values, np.zeros(len(times), np.uint8))

    def mark(self) -> None:
        self.marks += 1

    def stop(self) -> Delivery:
        self.stopped = True
        return Delivery(self._samples, 0, (), None, None)


def constant(*watts: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda times: np.broadcast_to(np.array(watts), (len(times), len(watts)))
