"""Watts of the CPU packages and DRAM that serve I/O.

    P = idle + f (u uncore awake + s (core busy + job active)) + wake-up wake-ups/s + floor,
    awake = 1 - exp(-busy / 0.1)

busy: cores' worth of time spent on I/O; active: cores woken; f: what engine, completion and
scheduler do to the dynamic part; s, u: what the frequency does to a busy core and to an awake
package; floor: what sleep
states and NUMA add (`model.operating_point`). The first core time costs most, because it keeps the
package out of its sleep states; after that a busy core adds little. Linear in (idle, uncore, core,
job, wake-up). Profiles without a wake-up term have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import HostPower
from iojoule.model import linear_law

Floats = NDArray[np.float64]

PARAMETERS = ("idle_watts", "uncore_watts", "core_watts", "job_watts", "wakeup_joules")
"""Order of the parameters and of the regressors."""

UNITS = ("W", "W", "W", "W", "J")

WAKE_CORES = 0.1
"""Cores' worth of work that keeps a package awake: one core busy a tenth of the time reaches
63 % of the uncore power. Chosen so that the published 46 W (4 MiB requests, about 0.05 cores)
and 61 W (1 KiB requests, about 0.4 cores) of one host fit one law (000, 5.2)."""

MEMORY_TRANSFERS = 2.0
"""An I/O byte crosses the memory bus at least twice: the drive writes it, the application reads
it, or the other way round."""


@dataclass(frozen=True)
class Drawn:
    """What drives the law beyond cores and engine; shape (n,) or a number.

    Attributes:
        wakeups_per_second: How often a sleeping core is woken.
        scale: Power of a busy core, relative to the reference frequency.
        scale_sd: Relative sd of `scale`.
        uncore_scale: Power of an awake package likewise.
        uncore_scale_sd: Relative sd of `uncore_scale`.
        floor_watts: Added whatever the parameters.
        floor_sd: Sd of `floor_watts`, W.
    """

    wakeups_per_second: Floats | float = 0.0
    scale: Floats | float = 1.0
    scale_sd: Floats | float = 0.0
    uncore_scale: Floats | float = 1.0
    uncore_scale_sd: Floats | float = 0.0
    floor_watts: Floats | float = 0.0
    floor_sd: Floats | float = 0.0


PLAIN = Drawn()
"""No wake-ups, at the reference frequency."""


def awake_share(busy_cores: Floats) -> Floats:
    """Share of the time that a package is kept awake."""
    return np.asarray(-np.expm1(-busy_cores / WAKE_CORES))


def regressors(
    busy_cores: Floats, active_cores: Floats, factor: Floats, drawn: Drawn = PLAIN
) -> Floats:
    """Stack the regressors, shape (n, 5); `factor` multiplies the dynamic part."""
    scaled = factor * drawn.scale
    return np.stack(
        [
            np.ones_like(busy_cores),
            factor * drawn.uncore_scale * awake_share(busy_cores),
            scaled * busy_cores,
            scaled * active_cores,
            np.zeros_like(busy_cores) + drawn.wakeups_per_second,
        ]
    ).T


def theta(power: HostPower) -> Floats:
    """The parameters in their order, shape (5,); what a profile leaves out is zero."""
    values = [parameter.value for parameter in power.parameters]
    return np.array(values + [0.0] * (len(PARAMETERS) - len(values)))


def covariance(power: HostPower) -> Floats:
    """Covariance of the parameters, shape (5, 5)."""
    stated = np.array(power.covariance)
    full = np.zeros((len(PARAMETERS), len(PARAMETERS)))
    full[: len(stated), : len(stated)] = stated
    return full


def watts(
    power: HostPower,
    busy_cores: Floats,
    active_cores: Floats,
    factor: Floats,
    factor_sd: Floats,
    drawn: Drawn = PLAIN,
) -> tuple[Floats, Floats]:
    """Mean power and its standard deviation, shape (n,).

    Args:
        power: The fitted law.
        busy_cores: Cores' worth of time spent on I/O.
        active_cores: Cores woken for it.
        factor: Relative dynamic power of engine, completion and scheduler.
        factor_sd: Standard deviation of `factor`.
        drawn: Wake-ups, frequency and floor.
    """
    parameters = theta(power)
    x = regressors(busy_cores, active_cores, factor, drawn)
    value = linear_law.values(x, parameters)
    variance = linear_law.variances(x, covariance(power))
    woken = x[:, 4] * parameters[4]
    dynamic = (value - parameters[0] - woken) / np.maximum(factor, 1e-9)
    total = value + drawn.floor_watts
    variance = variance + (dynamic * factor_sd) ** 2 + clock_sd(x, parameters, drawn) ** 2
    variance = variance + np.square(drawn.floor_sd) + (power.relative_sd * total) ** 2
    return total, np.sqrt(variance)


def clock_sd(x: Floats, parameters: Floats, drawn: Drawn) -> Floats:
    """Sd of the power by what the frequency's effect leaves open, W, shape (n,)."""
    cores = (x[:, 2] * parameters[2] + x[:, 3] * parameters[3]) * drawn.scale_sd
    return np.asarray(np.hypot(cores, x[:, 1] * parameters[1] * drawn.uncore_scale_sd))


def dram_watts(power: HostPower, bytes_per_second: Floats) -> tuple[Floats, Floats] | None:
    """Mean power of the memory and its sd, shape (n,), for so many bytes of I/O a second.

    None where the memory is part of the CPU's figure, or nobody measured it.
    """
    if power.dram is None:
        return None
    idle, each = power.dram.idle_watts, power.dram.joules_per_byte
    moved = MEMORY_TRANSFERS * bytes_per_second
    return idle.value + each.value * moved, np.hypot(idle.sd, each.sd * moved)
