"""What choosing the best of many does to how sure one may be of it: the winner's curse.

The row with the least predicted power is, among rows about as good, the one whose error flatters it
most. An interval that covers 90 % of rows covers fewer of the chosen ones. An interval that would
hold for all m rows that could have been chosen at once also holds for the one that was, however it
was chosen (Berk et al., Valid post-selection inference, Annals of Statistics 41, 2013; Benjamini,
Hechtlinger and Stark, Confidence intervals for selected parameters, 2019). Only what a row errs by
itself counts: an error that all rows share moves all of them and selects none.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from iojoule.model.predictor import NORMAL_90

Floats = NDArray[np.float64]

MISS = 0.05
"""Share of misses on each side of a 90 % interval."""


def rivals(values: Floats, own_sd: Floats, chosen: int) -> int:
    """Rows that could as well have been chosen, the chosen one included.

    That is those whose difference from the chosen row could be error alone, judged for all rows at
    once: rows that only seem worse count, for they too might have been flattered most.

    Args:
        values: What was made small, shape (n,).
        own_sd: By how much each row errs by itself, in the same unit, shape (n,).
        chosen: The row that was chosen.
    """
    reach = NORMAL_90 * widening(len(values)) * np.hypot(own_sd, own_sd[chosen])
    able = values - reach <= values[chosen]
    able[chosen] = True
    return int(able.sum())


def widening(count: int) -> float:
    """Factor on a row's own sd so that its interval holds for the best of `count` rows."""
    return NormalDist().inv_cdf(1.0 - MISS / max(count, 1)) / NORMAL_90
