"""Watts of the CPU packages and DRAM that serve I/O.

    P = idle + f (uncore (1 - exp(-busy / 0.1)) + core busy + job active)
busy: cores' worth of time spent on I/O; active: cores woken; f: what engine, completion and
scheduler do to the dynamic part. The first core time costs most, because it keeps the package
out of its sleep states; after that a busy core adds little. Linear in (idle, uncore, core, job).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import HostPower
from iojoule.model import linear_law

Floats = NDArray[np.float64]

PARAMETERS = ("idle_watts", "uncore_watts", "core_watts", "job_watts")
"""Order of the parameters and of the regressors."""

WAKE_CORES = 0.1
"""Cores' worth of work that keeps a package awake: one core busy a tenth of the time reaches
63 % of the uncore power. Chosen so that the published 46 W (4 MiB requests, about 0.05 cores)
and 61 W (1 KiB requests, about 0.4 cores) of one host fit one law (000, 5.2)."""


def regressors(busy_cores: Floats, active_cores: Floats, factor: Floats) -> Floats:
    """Stack the regressors, shape (n, 4); `factor` multiplies the dynamic part."""
    return np.stack(
        [
            np.ones_like(busy_cores),
            factor * -np.expm1(-busy_cores / WAKE_CORES),
            factor * busy_cores,
            factor * active_cores,
        ]
    ).T


def watts(
    power: HostPower, busy_cores: Floats, active_cores: Floats, factor: Floats, factor_sd: Floats
) -> tuple[Floats, Floats]:
    """Mean power and its standard deviation, shape (n,).

    Args:
        power: The fitted law.
        busy_cores: Cores' worth of time spent on I/O.
        active_cores: Cores woken for it.
        factor: Relative dynamic power of engine, completion and scheduler.
        factor_sd: Standard deviation of `factor`.
    """
    theta = np.array([parameter.value for parameter in power.parameters])
    x = regressors(busy_cores, active_cores, factor)
    value = linear_law.values(x, theta)
    variance = linear_law.variances(x, np.array(power.covariance))
    dynamic = (value - theta[0]) / np.maximum(factor, 1e-9)
    return value, np.sqrt(variance + (dynamic * factor_sd) ** 2)
