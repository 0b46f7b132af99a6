"""What the drive draws, and how what was written changes its state."""

from __future__ import annotations

from iojoule.datasets.profile.numbers import Parameter
from iojoule.datasets.schema import Section


class DevicePower(Section):
    """Watts of the drive: a linear law in its parameters, with their covariance.

    Parameter order of `parameters` and of both axes of `covariance`: base_watts,
    read_joules_per_byte, read_joules_per_operation, write_joules_per_byte,
    write_joules_per_operation, background_watts.
    """

    parameters: list[Parameter]
    covariance: list[list[float]]
    idle_watts: list[Parameter]
    cap_watts: list[float]
    peak_watts: Parameter
    measured_read_operations_per_second_max: float
    measured_bytes_per_second_max: float
    relative_sd: float
    condition: str


class WriteState(Section):
    """How the drive's state follows from the bytes written since it was purged."""

    cached_bytes: Parameter
    transition_bytes: Parameter
    collecting_bytes_per_second: Parameter
    recovery_bytes_per_second_per_byte: Parameter
    background_joules_per_byte: Parameter
    background_seconds_after_write: dict[int, Parameter]
