"""Watts of the drive: it follows the work of the flash, not the bytes of the host alone.

While serving, P = base + e_byte bytes/s + e_io operations/s (by direction) + background work
while the drive collects; never above the cap of the power state. The law is linear in its
parameters, so the variance of a prediction, and of the difference of two, is x' C x with the
parameters' covariance C.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DevicePower
from iojoule.model import linear_law

Floats = NDArray[np.float64]

PARAMETERS = (
    "base_watts",
    "read_joules_per_byte",
    "read_joules_per_operation",
    "write_joules_per_byte",
    "write_joules_per_operation",
    "background_watts",
)
"""Order of the parameters and of the regressors."""


def regressors(
    read_bytes: Floats,
    read_operations: Floats,
    write_bytes: Floats,
    write_operations: Floats,
    collecting: Floats,
) -> Floats:
    """Stack the regressors of the law, shape (n, 6).

    Args:
        read_bytes: Bytes a second read by device commands; likewise the other rates.
        read_operations: Device commands a second.
        write_bytes: Bytes a second written by the host.
        write_operations: Device commands a second.
        collecting: 1 where the drive moves data on its own behalf, else 0.
    """
    # stacked by regressor and seen by row, so that each regressor lies together in memory
    return np.stack(
        [
            np.ones_like(read_bytes), read_bytes, read_operations, write_bytes,
            write_operations, collecting,
        ]
    ).T  # fmt: skip


def active_watts(
    power: DevicePower, x: Floats, power_state: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Mean power while serving, and its standard deviation.

    Above the highest power published for the drive the law no longer holds (the controller
    throttles): values bend towards that peak, and no value exceeds the state's declared cap.

    Args:
        power: The fitted law.
        x: Regressors, shape (n, 6).
        power_state: Operational state of each row.
    """
    free, value = _active(power, x, power_state)
    covariance = np.array(power.covariance)
    variance = linear_law.variances(x, covariance) + (power.relative_sd * free) ** 2
    # a capped value is known from the cap, not from the law that was cut off
    below = np.where(power_state > 0, 0.12 * value, 0.0)
    return value, np.sqrt(np.minimum(variance, (0.35 * value) ** 2) + below**2)


def active_value(power: DevicePower, x: Floats, power_state: NDArray[np.intp]) -> Floats:
    """Mean power while serving without its standard deviation; arguments as `active_watts`."""
    return _active(power, x, power_state)[1]


def _active(power: DevicePower, x: Floats, power_state: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Power by the law alone, and within the drive's limits."""
    theta = np.array([parameter.value for parameter in power.parameters])
    free = linear_law.values(x, theta)
    return free, np.minimum(free, limit_watts(power, power_state))


def limit_watts(power: DevicePower, power_state: NDArray[np.intp]) -> Floats:
    """The most that the drive draws while it serves, by power state."""
    return np.asarray(np.minimum(np.array(power.cap_watts)[power_state], power.peak_watts.value))


def idle_watts(power: DevicePower, power_state: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Idle power by power state and its standard deviation."""
    values = np.array([parameter.value for parameter in power.idle_watts])
    deviations = np.array([parameter.sd for parameter in power.idle_watts])
    return values[power_state], deviations[power_state]
