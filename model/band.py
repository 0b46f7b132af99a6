"""A predicted quantity with its 90 % interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.normal import NORMAL_90 as NORMAL_90

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Band:
    """A predicted quantity: value and 90 % interval, NaN where unknown; evidence codes."""

    value: Floats
    low: Floats
    high: Floats
    evidence: Codes


def linear_band(value: Floats, sd: Floats, evidence: Codes) -> Band:
    """A non-negative quantity whose error is of its own unit."""
    half = NORMAL_90 * sd
    return Band(value, np.maximum(value - half, 0.0), value + half, evidence)


def log_band(value: Floats, log_sd: Floats, evidence: Codes) -> Band:
    """A positive quantity whose error is a factor."""
    factor = np.exp(NORMAL_90 * log_sd)
    return Band(value, value / factor, value * factor, evidence)
