"""Watts at the wall: floor + slope x P + quadratic x P^2, P = CPU + DRAM + drive.

What the wall draws beyond P is a + b P + c P^2, with a the rest of the machine and what a supply
takes without load, b what its converters lose in proportion, and c what grows with the square of
the current. An 80 PLUS Gold supply of 500 W (87, 90 and 87 % at 20, 50 and 100 %) has a = 12.6 W,
b = 0 and c = 0.00025 1/W. Measured machines lose less in proportion at higher load (000, 5.2 and
7.1: 20-68 % on top); below the measured range the wall never draws less than the parts.
"""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import SystemPower
from iojoule.model.evaluate import linear_law
from iojoule.model.evaluate.bands import Floats

LEAST_LOSS = 0.05
"""No supply delivers more than 95 % of what it draws."""


def regressors(parts: Floats) -> Floats:
    """Stack the regressors of (floor, slope, quadratic), shape (n, 3)."""
    return np.stack([np.ones_like(parts), parts, parts**2], axis=1)


def covariance(power: SystemPower) -> Floats:
    """Covariance of (floor, slope, quadratic), shape (3, 3)."""
    if power.covariance is not None:
        return np.array(power.covariance)
    return np.diag([power.floor_watts.sd**2, power.slope.sd**2, 0.0])


def slope(power: SystemPower, parts: Floats) -> Floats:
    """Watts at the wall for one more watt of the parts, shape (n,)."""
    bend = power.quadratic.value if power.quadratic else 0.0
    return np.asarray(power.slope.value + 2.0 * bend * parts)


def watts(power: SystemPower, parts: Floats, parts_sd: Floats) -> tuple[Floats, Floats]:
    """Wall power and its standard deviation from the summed parts, W."""
    bend = power.quadratic.value if power.quadratic else 0.0
    law = power.floor_watts.value + power.slope.value * parts + bend * parts**2
    value = np.maximum(law, (1.0 + LEAST_LOSS) * parts)
    variance = (slope(power, parts) * parts_sd) ** 2 + (power.relative_sd * value) ** 2
    if power.covariance is not None:
        variance = variance + linear_law.variances(regressors(parts), np.array(power.covariance))
    return value, np.sqrt(variance)


def overhead(power: SystemPower, parts: Floats) -> Floats:
    """Share that the wall draws on top of the parts, shape (n,): 0.2 to 0.68 in 000, 7.1."""
    value, _ = watts(power, parts, np.zeros_like(parts))
    return value / parts - 1.0
