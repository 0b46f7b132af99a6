"""A number with its 90 % interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Interval:
    """A number with its 90 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, draws: NDArray[np.float64]) -> Interval:
        """The value of the undisturbed run within the 5 to 95 % quantiles of the draws."""
        low, high = (float(q) for q in np.quantile(draws, (0.05, 0.95)))
        return cls(float(value), min(low, value), max(high, value))
