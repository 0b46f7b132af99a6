"""Who tells an emulated instrument the true watts."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class PowerSource(Protocol):
    """Who knows the true watts."""

    step_ns: int
    """Time between two values."""

    def watts(self, until_ns: int) -> tuple[int, NDArray[np.float64]]:
        """The watts since the last call.

        Args:
            until_ns: CLOCK_MONOTONIC; values up to here, not beyond.

        Returns:
            CLOCK_MONOTONIC of the first value, and the values, `step_ns` apart, shape (n, pairs);
            n may be 0.
        """


class ConstantPower:
    """The same watts for ever; `set` changes them."""

    step_ns = 50_000

    def __init__(self, *watts: float) -> None:
        self._watts = np.array(watts, dtype=np.float64)
        self._next_ns = time.monotonic_ns()

    def set(self, *watts: float) -> None:
        """From now on these."""
        self._watts = np.array(watts, dtype=np.float64)

    def watts(self, until_ns: int) -> tuple[int, NDArray[np.float64]]:
        """See `PowerSource`."""
        begin = self._next_ns
        count = max((until_ns - begin) // self.step_ns, 0)
        self._next_ns += count * self.step_ns
        return begin, np.broadcast_to(self._watts, (count, len(self._watts)))
