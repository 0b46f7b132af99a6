"""Watts of the CPU packages and DRAM that serve I/O.

P = idle + p awake + u active + s core busy + s awake-core awake cores + wake-up wake-ups/s + floor

awake: share of the time that some core is out of its deep sleep state, which keeps every package
out of its own; active: share of the time in which no core has slept for long enough to let caches
and mesh slow down; busy: cores' worth of time spent on I/O (`host_work.activity` finds all of them
from the rate). s, p, u: what the frequency does to cores and packages; floor: what sleep states
and NUMA add (`model.evaluate.operating_point`). Linear in its first six parameters; the last two
are the gaps from which a core sleeps (`host_work.load_of`). What an engine changes is core time,
wake-ups and what spins; the power of an awake package is that of the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iojoule.datasets.profile import POWER_PARAMETERS, HostPower
from iojoule.model.evaluate import linear_law
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.operating_point import Load

PARAMETERS = tuple(POWER_PARAMETERS)
"""Order of the parameters and of their gradients."""

UNITS = tuple(POWER_PARAMETERS.values())

LINEAR = PARAMETERS[:6]
"""Parameters in which the law is linear, in the order of the regressors."""

THRESHOLDS = PARAMETERS[6:]
"""Idle gaps from which a core enters its deep, and its shallow, sleep state."""

IOWAIT_FACTOR = 11.0
"""Linux' menu governor enters a sleep state only if its exit latency is at most the expected gap
over 1 + 10 x the tasks of this CPU that wait for I/O (`performance_multiplier` in
drivers/cpuidle/governors/menu.c until "cpuidle: menu: Remove iowait influence", Linux 6.12)."""

DEEP_EXIT_SECONDS = 133e-6
"""Exit latency of C6: Linux, drivers/idle/intel_idle.c, skx_cstates."""

SHALLOW_EXIT_SECONDS = 10e-6
"""Exit latency of C1E, likewise."""

GAPS = (IOWAIT_FACTOR * DEEP_EXIT_SECONDS, IOWAIT_FACTOR * SHALLOW_EXIT_SECONDS)
"""The thresholds where a profile says nothing: 1.5 ms and 0.11 ms. Kernels without that factor
sleep from the residency on (0.6 ms), hence `GAP_LOG_SD`."""

GAP_LOG_SD = 0.4
"""Log sd of `GAPS`: governors and kernels differ by a factor of two."""

MEMORY_TRANSFERS = 2.0
"""An I/O byte crosses the memory bus at least twice: the drive writes it, the application reads
it, or the other way round."""


@dataclass(frozen=True)
class Drawn:
    """What the host's settings do to the law; shape (n,) or a number.

    Attributes:
        scale: Power of a busy core, relative to the reference frequency.
        scale_sd: Relative sd of `scale`.
        uncore_scale: Power of an awake package likewise.
        uncore_scale_sd: Relative sd of `uncore_scale`.
        floor_watts: Added whatever the parameters.
        floor_sd: Sd of `floor_watts`, W.
    """

    scale: Floats | float = 1.0
    scale_sd: Floats | float = 0.0
    uncore_scale: Floats | float = 1.0
    uncore_scale_sd: Floats | float = 0.0
    floor_watts: Floats | float = 0.0
    floor_sd: Floats | float = 0.0


PLAIN = Drawn()
"""At the reference frequency."""


def regressors(load: Load, drawn: Drawn = PLAIN) -> Floats:
    """Stack the regressors of the linear parameters, shape (n, 6)."""
    x = np.empty((len(load.busy_cores), len(LINEAR)))
    x[:, 0] = 1.0
    x[:, 1] = drawn.uncore_scale * load.package_awake
    x[:, 2] = drawn.uncore_scale * load.package_active
    x[:, 3] = drawn.scale * load.busy_cores
    x[:, 4] = drawn.scale * load.awake_cores
    x[:, 5] = load.wakeups_per_second
    return x


def gaps(power: HostPower | None) -> tuple[float, float]:
    """The thresholds of a host, seconds; `GAPS` where it states none."""
    stated = (
        {} if power is None else {parameter.name: parameter.value for parameter in power.parameters}
    )
    deep, shallow = (stated.get(name, usual) for name, usual in zip(THRESHOLDS, GAPS, strict=True))
    return deep, shallow


def theta(power: HostPower) -> Floats:
    """The linear parameters in their order, shape (6,); what a profile leaves out is zero."""
    stated = {parameter.name: parameter.value for parameter in power.parameters}
    return np.array([stated.get(name, 0.0) for name in LINEAR])


def covariance(power: HostPower) -> Floats:
    """Covariance of all parameters, shape (8, 8); unstated thresholds have their usual sd."""
    indices = [PARAMETERS.index(parameter.name) for parameter in power.parameters]
    full = np.zeros((len(PARAMETERS), len(PARAMETERS)))
    for place, usual in zip((6, 7), GAPS, strict=True):
        full[place, place] = (GAP_LOG_SD * usual) ** 2
    full[np.ix_(indices, indices)] = np.array(power.covariance)
    return full


def gradients(power: HostPower, load: Load, drawn: Drawn = PLAIN) -> Floats:
    """Derivatives of the power by all parameters, shape (n, 8)."""
    values, (deep, shallow) = theta(power), gaps(power)
    slopes = np.empty((len(load.busy_cores), len(PARAMETERS)))
    slopes[:, : len(LINEAR)] = regressors(load, drawn)
    slopes[:, 6] = (
        values[1] * drawn.uncore_scale * load.package_awake_slope
        + values[4] * drawn.scale * load.awake_cores_slope
    ) / deep
    slopes[:, 7] = values[2] * drawn.uncore_scale * load.package_active_slope / shallow
    return slopes


def value(power: HostPower, load: Load, drawn: Drawn = PLAIN) -> Floats:
    """Mean power, W, shape (n,)."""
    law = linear_law.values(regressors(load, drawn), theta(power))
    return np.asarray(law + drawn.floor_watts)


def watts(
    power: HostPower, load: Load, drawn: Drawn = PLAIN, busy_log_sd: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Mean power and its standard deviation, W, shape (n,)."""
    slopes = gradients(power, load, drawn)
    total = linear_law.values(slopes[:, : len(LINEAR)], theta(power)) + drawn.floor_watts
    variance = linear_law.variances(slopes, covariance(power))
    return total, np.sqrt(variance + own_sd(power, slopes, total, drawn, busy_log_sd) ** 2)


def own_sd(
    power: HostPower, slopes: Floats, total: Floats, drawn: Drawn, busy_log_sd: Floats | float
) -> Floats:
    """Sd of the power of one configuration that no parameter explains, W, shape (n,).

    Args:
        power: The fitted law.
        slopes: Of `gradients`.
        total: The power, W.
        drawn: What the host's settings do.
        busy_log_sd: Log sd of the cores' busy time.
    """
    parameters = theta(power)
    work = slopes[:, 3] * parameters[3] * busy_log_sd
    cores = (slopes[:, 3] * parameters[3] + slopes[:, 4] * parameters[4]) * drawn.scale_sd
    package = slopes[:, 1] * parameters[1] + slopes[:, 2] * parameters[2]
    clocked = np.hypot(cores, package * drawn.uncore_scale_sd)
    variance = (power.relative_sd * total) ** 2 + work**2 + clocked**2 + np.square(drawn.floor_sd)
    return np.asarray(np.sqrt(variance))


def dram_watts(power: HostPower, bytes_per_second: Floats) -> tuple[Floats, Floats] | None:
    """Mean power of the memory and its sd, shape (n,), for so many bytes of I/O a second.

    None where the memory is part of the CPU's figure, or nobody measured it.
    """
    if power.dram is None:
        return None
    idle, each = power.dram.idle_watts, power.dram.joules_per_byte
    moved = MEMORY_TRANSFERS * bytes_per_second
    return idle.value + each.value * moved, np.hypot(idle.sd, each.sd * moved)
