"""What a measured drive said of itself, stored beside its measurements as `drive.json`.

A profile of a drive that no catalogue knows takes its capacity, its largest transfer and the caps
of its power states from here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Count, NonNegative, PositiveInt, Section, validation_error

FILE_NAME = "drive.json"


class DeclaredState(Section):
    """A power state as the drive declares it; its cap is not the power drawn."""

    index: Count
    max_power_watts: NonNegative
    operational: bool
    entry_latency_us: Count
    exit_latency_us: Count
    idle_power_watts: NonNegative | None = None
    active_power_watts: NonNegative | None = None


class MeasuredDrive(Section):
    """The drive; None = it does not say, or has no controller that was asked."""

    schema_version: Literal[1] = 1
    model: str
    firmware: str | None = None
    capacity_bytes: PositiveInt
    block_bytes: PositiveInt
    max_transfer_bytes: PositiveInt | None = None
    volatile_write_cache: bool | None = None
    power_states: tuple[DeclaredState, ...] = ()

    @property
    def caps_watts(self) -> list[float]:
        """Caps of the operational states, where these come first and all declare one; else none."""
        caps = [state.max_power_watts for state in self.power_states if state.operational]
        first = [state.index for state in self.power_states if state.operational]
        return caps if first == list(range(len(first))) and all(caps) else []


def read_measured_drive(folder: Path) -> MeasuredDrive | None:
    """Read the file in a folder of measurements; None where there is none.

    Raises:
        InputError: It is damaged or of a newer version.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        return MeasuredDrive.model_validate(json.loads(path.read_bytes()))
    except ValidationError as error:
        raise InputError(validation_error(error, str(path)).message) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
