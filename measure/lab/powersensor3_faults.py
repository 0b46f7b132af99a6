"""The faults that the emulated PowerSensor3 can play."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.sensors.powersensor3_protocol import MAXIMUM_LEVEL


@dataclass(frozen=True)
class Faults:
    """What goes wrong at present.

    Attributes:
        stalled: Nothing is sent, nothing is obeyed.
        mute: Commands are taken and not answered.
        only_garbage: Random bytes instead of frames.
        garbage_bytes: So many random bytes come in between,
        garbage_every: on average once in so many frames.
        drop: So many frames are lost at the begin
        drop_of: of every so many.
        silent_until_ns: No frame leaves the device before then (CLOCK_MONOTONIC).
        full_scale_until_ns: The first current sensor shows its highest level until then.
        drift_watts: The first rail's zero moved by so much.
    """

    stalled: bool = False
    mute: bool = False
    only_garbage: bool = False
    garbage_bytes: int = 0
    garbage_every: int = 1
    drop: int = 0
    drop_of: int = 1
    silent_until_ns: int = 0
    full_scale_until_ns: int = 0
    drift_watts: float = 0.0

    def survivors(self, numbers: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these frames leave the device, as places."""
        leaves = (numbers % self.drop_of >= self.drop) & (times >= self.silent_until_ns)
        return np.flatnonzero(leaves)

    def mistaken(self, watts: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the rails draw, as the device takes it."""
        if not self.drift_watts:
            return watts
        moved = watts.copy()
        moved[:, 0] += self.drift_watts
        return moved

    def clip(self, levels: NDArray[np.uint16], times: NDArray[np.int64]) -> NDArray[np.uint16]:
        """What the converters say, the first current sensor at full scale where it is."""
        levels[times < self.full_scale_until_ns, 0] = MAXIMUM_LEVEL
        return levels

    def spoil(self, data: bytes, random: np.random.Generator) -> bytes:
        """Frames as they arrive."""
        if self.only_garbage:
            # without bit 7 nothing looks like the begin of a frame
            return random.integers(0, 128, len(data), dtype=np.uint8).tobytes()
        if not self.garbage_bytes:
            return data
        places = np.flatnonzero(random.random(len(data)) < 1 / (18 * self.garbage_every))
        parts, begin = [], 0
        for place in places.tolist():
            parts += [data[begin:place], random.bytes(self.garbage_bytes)]
            begin = place
        return b"".join([*parts, data[begin:]])
