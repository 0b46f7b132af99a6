"""Sensors that are polled, and programs that they run."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from iojoule.datasets.programs import find_program, run_program
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors.protocol import (
    Chunk,
    Delivery,
    Flag,
    Kind,
    Probe,
    Rail,
    empty_chunk,
)

LATE_INTERVALS = 5.0


class PolledSensor(ABC):
    """Reads every `interval_seconds`; a sample's time is the middle of the reading.

    Args:
        repeats_are_stale: Whether an unchanged value brings nothing new, as with an instrument that
            updates more slowly than it is read.
        patience: Consecutive readings that may fail (they are lost) before the sensor does.
    """

    def __init__(
        self, name: str, interval_seconds: float, *, repeats_are_stale: bool, patience: int = 0
    ) -> None:
        if not interval_seconds > 0:
            raise SensorError(f"{name}: the time between two readings must be above 0 s")
        self.name = name
        self._interval = interval_seconds
        self._repeats_are_stale = repeats_are_stale
        self._patience = patience
        self._running = False
        self._due = 0.0
        self._rails: tuple[Rail, ...] = ()
        self._last: list[float] | None = None
        self._last_ns = 0
        self._forget()

    @abstractmethod
    def probe(self) -> Probe:
        """See `protocol.Sensor`."""

    @abstractmethod
    def poll(self) -> list[float]:
        """Values of all rails, NaN where one has none.

        Raises SensorError if they cannot be read.
        """

    def begin(self) -> None:
        """What is to be done before the first reading; nothing for most."""
        return

    def end(self) -> None:
        """What is to be done after the last one; nothing for most."""
        return

    def missed(self, seconds: float) -> int:
        """How many readings are lost for good when none succeeded for so long."""
        return int(seconds / self._interval) - 1 if seconds > LATE_INTERVALS * self._interval else 0

    def start(self) -> None:
        """See `protocol.Sensor`."""
        self._rails = self.probe().rails
        self.begin()
        self._forget()
        self._running = True
        self._due = time.monotonic()

    def read(self, timeout_seconds: float) -> Chunk:
        """One sample when it is due, none before."""
        rails = len(self._rails)
        if not self._running:
            return empty_chunk(rails)
        wait = self._due - time.monotonic()
        if wait > timeout_seconds:
            time.sleep(timeout_seconds)
            return empty_chunk(rails)
        if wait > 0:
            time.sleep(wait)
        before = time.monotonic_ns()
        try:
            values = self.poll()
            self._require_possible(values)
        except SensorError as error:
            self._errors.append(error.message)
            self._unanswered += 1
            self._lost += 1
            if self._unanswered > self._patience:
                raise
            self._due = time.monotonic() + self._interval
            return empty_chunk(rails)
        time_ns = (before + time.monotonic_ns()) // 2
        # what took too long is not made up for in a burst
        self._due = max(self._due + self._interval, time.monotonic())
        return self._chunk(time_ns, values)

    def stop(self) -> Delivery:
        """See `protocol.Sensor`."""
        if self._running:
            self._running = False
            self.end()
        return Delivery(
            self._samples, self._lost, tuple(self._errors), self._first_ns, self._newest_ns
        )

    def _require_possible(self, values: list[float]) -> None:
        """Raise SensorError for power below zero or without end, and a counter that went back."""
        before = values if self._last is None else self._last
        for rail, value, earlier in zip(self._rails, values, before, strict=True):
            if math.isinf(value) or (rail.kind is Kind.POWER and value < 0):
                raise SensorError(
                    f"{self.name}: states {value:g} {rail.unit} for {rail.name}; is it connected "
                    "the wrong way round, or broken?"
                )
            if rail.kind is Kind.ENERGY and value < earlier:
                self._last = values
                raise SensorError(
                    f"{self.name}: {rail.name} went back from {earlier:g} to {value:g} "
                    f"{rail.unit}: it was reset, or has overflowed"
                )

    def _forget(self) -> None:
        self._samples = self._lost = 0
        self._unanswered = 0
        self._errors: list[str] = []
        self._first_ns: int | None = None
        self._newest_ns: int | None = None
        self._last = None

    def _chunk(self, time_ns: int, values: list[float]) -> Chunk:
        flags = 0
        if self._last is not None and self._newest_ns is not None:
            missed = self.missed((time_ns - self._newest_ns) * 1e-9)
            self._lost += max(missed - self._unanswered, 0)
            flags |= Flag.GAP if missed or self._unanswered else 0
            flags |= Flag.STALE if self._repeats_are_stale and values == self._last else 0
        self._last, self._unanswered = values, 0
        self._samples += 1
        self._first_ns = self._first_ns or time_ns
        self._newest_ns = time_ns
        return Chunk(
            np.array([time_ns], dtype=np.int64),
            np.array([values], dtype=np.float64),
            np.array([flags], dtype=np.uint8),
        )


def program_output(command: Sequence[str], *, timeout_seconds: float, package: str) -> bytes:
    """Standard output of a program. Raises SensorError if it is missing, times out, or fails."""
    program = find_program(command[0], f"sudo apt-get install {package}", SensorError)
    line = " ".join(command)
    hangs = SensorError(f"`{line}` did not answer within {timeout_seconds:g} s")
    try:
        done = run_program([program, *command[1:]], seconds=timeout_seconds, hangs=hangs)
    except OSError as error:
        raise SensorError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip() or "no reason given"
        raise SensorError(f"`{line}` failed: {reason.splitlines()[0]}")
    return done.stdout
