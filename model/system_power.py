"""Watts at the wall: floor + slope x (CPU + DRAM + drive).

Supplies lose less in proportion at higher load (000, 5.2 and 7.1: 20-68 % on top), which a
line with a floor says in the measured range; below it the wall never draws less than the parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import SystemPower

Floats = NDArray[np.float64]


def watts(power: SystemPower, parts: Floats, parts_sd: Floats) -> tuple[Floats, Floats]:
    """Wall power and its standard deviation from the summed parts, W."""
    value = np.maximum(power.floor_watts.value + power.slope.value * parts, 1.05 * parts)
    variance = (power.slope.value * parts_sd) ** 2 + (power.relative_sd * value) ** 2
    return value, np.sqrt(variance)
