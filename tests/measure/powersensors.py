"""A reader and the emulated device that it reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.sensors.protocol import Chunk, Delivery, Sensor

PATIENCE_SECONDS = 20.0


@dataclass
class Readings:
    """All chunks of one sensor."""

    chunks: list[Chunk] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    @property
    def values(self) -> NDArray[np.float64]:
        return np.concatenate([chunk.values for chunk in self.chunks])

    @property
    def times_ns(self) -> NDArray[np.int64]:
        return np.concatenate([chunk.monotonic_ns for chunk in self.chunks])

    @property
    def flags(self) -> NDArray[np.uint8]:
        return np.concatenate([chunk.flags for chunk in self.chunks])


def read_until(sensor: Sensor, readings: Readings, enough: Callable[[], bool]) -> None:
    """Read until something is so, or for as long as no machine should need."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not enough():
        assert time.monotonic() < end, "it never came"
        readings.chunks.append(sensor.read(0.2))


def finish(sensor: Sensor, readings: Readings) -> Delivery:
    """Stop, and take what was still held."""
    delivery = sensor.stop()
    readings.chunks.append(sensor.read(0.0))
    return delivery
