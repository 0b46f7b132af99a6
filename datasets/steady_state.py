"""Whether a series of rounds is steady, as SNIA defines it.

SNIA Solid State Storage Performance Test Specification (Enterprise) 2.0.2, clause 2.1.24: over a
window of five rounds the values lie within 20 % of their mean, and the least-squares line through
them changes by no more than 10 % of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WINDOW_ROUNDS = 5
EXCURSION_MAX = 0.20
SLOPE_MAX = 0.10


@dataclass(frozen=True)
class Steadiness:
    """What the last window of rounds looks like.

    Attributes:
        steady: Whether both bounds hold.
        mean: Mean of the window.
        excursion: Largest distance from the mean, as a fraction of it.
        slope: Change of the fitted line over the window, as a fraction of the mean.
    """

    steady: bool
    mean: float
    excursion: float
    slope: float


def steadiness(rounds: Sequence[float]) -> Steadiness | None:
    """Judge the last five rounds; None where there are fewer."""
    if len(rounds) < WINDOW_ROUNDS:
        return None
    window = np.asarray(rounds[-WINDOW_ROUNDS:], dtype=float)
    mean = float(window.mean())
    if mean == 0:
        return Steadiness(False, 0.0, 0.0, 0.0)
    excursion = float((window.max() - window.min()) / mean)
    line = np.polyfit(np.arange(WINDOW_ROUNDS), window, 1)
    slope = float(abs(line[0]) * (WINDOW_ROUNDS - 1) / mean)
    return Steadiness(excursion <= EXCURSION_MAX and slope <= SLOPE_MAX, mean, excursion, slope)
