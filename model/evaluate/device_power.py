"""Watts of the drive: it follows the work of the flash, not the bytes of the host alone.

While serving, P = base + e_byte bytes/s + e_io operations/s (by direction) + background watts
times the share of the time in which the flash moves data on the drive's own behalf. Joules of bytes
and operations hold in every power state; base and background watts are the state's own, and no
power is above its cap. The law is linear in its parameters, so the variance of a prediction, and of
the difference of two, is x' C x with the parameters' covariance C.

On the 980 PRO it explains what throughput alone does not. 16 KiB reads take more watts than large
ones at one rate (5.0 uJ a command, 0.58 nJ a byte; 000 5.5, 5.7 and powersensor3-results). Writes
that fill the drive's capacity draw 0.2 to 0.5 of the background watts on top of what the same rate
draws below it, in PS0 as under the caps of PS1 and PS2 (000 5.1, 5.4): `folding`. A drive that
collects draws 5.6, 3.4 and 3.0 W in these states, whatever the host sees of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DevicePower
from iojoule.model.evaluate import linear_law
from iojoule.model.evaluate.bands import Floats

States = NDArray[np.intp]

PARAMETERS = (
    "base_watts",
    "read_joules_per_byte",
    "read_joules_per_operation",
    "write_joules_per_byte",
    "write_joules_per_operation",
    "background_watts",
)
"""Order of the parameters and of the regressors."""

SEQUENTIAL_WRITE_OPERATION = 0.36
"""Joules of a sequential write command over those of a random one, whose place in the drive's map
is another each time: 1.5 and 4.2 uJ at 4 KiB, beside 0.8 nJ a byte (000 5.4 b; 980 PRO write
series of powersensor3-results)."""

MERGED_FROM_DEPTH = 64.0
"""Queue depth of a job from which sequential requests come back, and are sent again, several at a
time, so that the block layer merges them: at one rate the 980 PRO draws 5.58 W at depth 64 and
4.86 W at 256 (000 5.5), what a quarter of the commands explains."""

FOLDING_SHARE = 0.34
"""Share of the time in which a drive that is full of writes moves its cache on, fitted together
with the exponent to the writes of 000 5.1 and 5.4 in three power states: 0.2 at one request in
flight, 0.5 at 64 commands."""

FOLDING_SHARE_SD = 0.12
"""Its standard deviation over those runs."""

FOLDING_EXPONENT = 4.6
"""How the share grows with the load: at 70 % of the capacity a fifth of it."""

UNSEEN_STATE_SD = 0.12
"""Relative sd of the watts of a power state that no run was seen in; an assumption."""

WAITING_SD = 0.05
"""Relative sd of the watts of an awake drive between requests, which the law extrapolates from full
speed: with it 90 % intervals at part load hold 80 % of the watts of simulated drives
(`iojoule validate recommendations`), with 0 57 %."""

MOST_RELATIVE_SD = 0.35
"""No law is less sure than a guess, by which drives of a class differ; an assumption."""


def regressors(
    read_bytes: Floats,
    read_operations: Floats,
    write_bytes: Floats,
    write_operations: Floats,
    background: Floats,
) -> Floats:
    """Stack the regressors of the law, shape (n, 6).

    Args:
        read_bytes: Bytes a second read by device commands; likewise the other rates.
        read_operations: Device commands a second.
        write_bytes: Bytes a second written by the host.
        write_operations: Device commands a second, as `write_operations` counts them.
        background: Share of the time in which the drive moves data on its own behalf.
    """
    # stacked by regressor and seen by row, so that each regressor lies together in memory
    return np.stack(
        [
            np.ones_like(read_bytes),
            read_bytes,
            read_operations,
            write_bytes,
            write_operations,
            background,
        ]
    ).T


def merged(
    queue_depth: Floats, request_bytes: Floats, most_bytes: float, follow: NDArray[np.bool_]
) -> Floats:
    """Requests in one command of the drive, at least 1; arguments broadcast.

    Args:
        queue_depth: Of one job.
        request_bytes: What the host asks for at a time.
        most_bytes: Maximum transfer size of the drive.
        follow: Whether requests follow each other, and pass the block layer together.
    """
    room = np.maximum(most_bytes / request_bytes, 1.0)
    several = np.clip(queue_depth / MERGED_FROM_DEPTH, 1.0, room)
    return np.where(follow, several, 1.0)


def write_operations(commands: Floats, sequential: NDArray[np.bool_]) -> Floats:
    """Write commands a second in terms of random ones; arguments broadcast."""
    return np.where(sequential, SEQUENTIAL_WRITE_OPERATION * commands, commands)


def folding(load: Floats) -> Floats:
    """Share of the time in which writes at `load` of the drive's capacity make it fold its cache.

    Between no load, where what is to be folded waits for a gap (`model.evaluate.background_work`
    charges it), and full load, where there is none.
    """
    return np.asarray(FOLDING_SHARE * np.clip(load, 0.0, 1.0) ** FOLDING_EXPONENT)


def active_watts(power: DevicePower, x: Floats, power_state: States) -> tuple[Floats, Floats]:
    """Mean power while serving, and its standard deviation.

    Above the highest power published for the drive the law no longer holds (the controller
    throttles): values bend towards that peak, and no value exceeds the state's declared cap.

    Args:
        power: The fitted law.
        x: Regressors, shape (n, 6).
        power_state: Operational state of each row.
    """
    free = law_watts(power, x, power_state)
    value = np.minimum(free, limit_watts(power, power_state))
    variance = linear_law.variances(x, np.array(power.covariance))
    variance += (power.relative_sd * free) ** 2 + power.session_sd_watts**2
    # where only the share of folding makes the background, that share is what is unsure
    folds = np.where(x[:, 5] <= FOLDING_SHARE, x[:, 5] / FOLDING_SHARE, 0.0)
    variance += (FOLDING_SHARE_SD * folds * _by_state(power, "background_watts")[power_state]) ** 2
    # a capped value is known from the cap, not from the law that was cut off
    below = state_sd_watts(power, power_state, x[:, 5], value)
    return value, np.sqrt(np.minimum(variance, (MOST_RELATIVE_SD * value) ** 2) + below**2)


def active_value(power: DevicePower, x: Floats, power_state: States) -> Floats:
    """Mean power while serving without its standard deviation; arguments as `active_watts`."""
    return np.minimum(law_watts(power, x, power_state), limit_watts(power, power_state))


def law_watts(power: DevicePower, x: Floats, power_state: States) -> Floats:
    """The law alone, whatever limits the drive; arguments as `active_watts`."""
    theta = np.array([parameter.value for parameter in power.parameters])
    free = linear_law.values(x, theta)
    if power.states and power_state.any():
        for place, name in ((0, "base_watts"), (5, "background_watts")):
            free += x[:, place] * (_by_state(power, name)[power_state] - theta[place])
    return free


def fixed_watts(power: DevicePower, x: Floats, power_state: States) -> Floats:
    """What of the law does not follow the rate: base and background, shape (n,)."""
    return base_watts(power, power_state) + background_watts(power, x, power_state)


def background_watts(power: DevicePower, x: Floats, power_state: States) -> Floats:
    """What of the law is work on the drive's own behalf, shape (n,)."""
    return np.asarray(_by_state(power, "background_watts")[power_state] * x[:, 5])


def state_sd_watts(
    power: DevicePower, power_state: States, background: Floats, value: Floats
) -> Floats:
    """How far the watts of a lower state may be from the law of PS0, sd; 0 at PS0.

    Args:
        power: The fitted law.
        power_state: Operational state of each row, shape (n,).
        background: Share of the time in which the drive moves data on its own behalf.
        value: Watts of which those of a state that no run was seen in may be off by a share.
    """
    sd = np.where(power_state > 0, UNSEEN_STATE_SD * value, 0.0)
    for state in power.states:
        rows = power_state == state.power_state
        if rows.any():
            share = background[rows]
            sd[rows] = np.hypot(state.base_watts.sd, state.background_watts.sd * share)
    return sd


def base_watts(power: DevicePower, power_state: States) -> Floats:
    """Watts of the drive awake and without work, by power state."""
    return _by_state(power, "base_watts")[power_state]


def _by_state(power: DevicePower, name: str) -> Floats:
    """A parameter that power states have of their own, by state."""
    place = PARAMETERS.index(name)
    values = np.full(len(power.cap_watts), power.parameters[place].value)
    for state in power.states:
        values[state.power_state] = getattr(state, name).value
    return values


def limit_watts(power: DevicePower, power_state: States) -> Floats:
    """The most that the drive draws while it serves, by power state."""
    return np.asarray(np.minimum(np.array(power.cap_watts)[power_state], power.peak_watts.value))


def idle_watts(power: DevicePower, power_state: States) -> tuple[Floats, Floats]:
    """Idle power by power state and its standard deviation."""
    values = np.array([parameter.value for parameter in power.idle_watts])
    deviations = np.array([parameter.sd for parameter in power.idle_watts])
    return values[power_state], deviations[power_state]
