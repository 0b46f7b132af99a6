"""The faults that the emulated PowerSensor3 can play."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    """

    stalled: bool = False
    mute: bool = False
    only_garbage: bool = False
    garbage_bytes: int = 0
    garbage_every: int = 1
    drop: int = 0
    drop_of: int = 1

    def survivors(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these frames leave the device, as places."""
        return np.flatnonzero(numbers % self.drop_of >= self.drop)

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
