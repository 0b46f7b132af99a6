"""What a measured drive said of itself, stored beside its measurements as `drive.json`.

A profile of a drive that no catalogue knows takes its capacity, its largest transfer and the caps
of its power states from here.

The same is read from `nvme id-ctrl -o json` and `nvme id-ns -o json`, whose keys changed between
versions of nvme-cli: states carry `flags` (1.x) or `non-operational_state` and `max_power_scale`
(2.x); scales of idle and active power are the raw byte or its two bits. Meaning: NVM Express Base
Specification 2.1, figures 312 and 313.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import json_of, read_input
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
    """Read the file in a folder of measurements; None where there is none, or a profile's.

    Raises:
        InputError: It is damaged or of a newer version.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        data = json_of(read_input(path))
        return None if _is_profile(data) else MeasuredDrive.model_validate(data)
    except ValidationError as error:
        raise InputError(validation_error(error, str(path)).message) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None


def _is_profile(data: Any) -> bool:
    """Whether a file that bears the name is a profile, whose name is the user's to choose."""
    return isinstance(data, dict) and "defaults" in data and "block_bytes" not in data


_SCALES = {1: 1e-4, 2: 1e-2}
"""Watts a unit of idle and active power by its scale; 0 is not reported."""

_PAGE_BYTES = 4096


def read_identify(path: Path) -> MeasuredDrive:
    """What a drive said of itself.

    Args:
        path: A file of `nvme id-ctrl -o json`, a `drive.json` that a campaign kept, or a folder
            with either and perhaps a file of `nvme id-ns -o json`.

    Raises:
        InputError: No such file, or not what these commands print; says what to run.
    """
    if path.is_dir():
        drive = read_measured_drive(path)
        return drive if drive is not None else _from_folder(path)
    data = _load(path)
    if "schema_version" in data:
        if path.name != FILE_NAME:
            raise InputError(f"{path}: a campaign's drive file is called {FILE_NAME}")
        drive = read_measured_drive(path.parent)
        if drive is None:
            raise InputError(f"{path}: is a profile; pass what `nvme id-ctrl -o json` printed")
        return drive
    return _drive(data, None, str(path))


def _from_folder(folder: Path) -> MeasuredDrive:
    controller: dict[str, Any] | None = None
    namespace: dict[str, Any] | None = None
    where = str(folder)
    for path in sorted(folder.glob("*.json")):
        data = _load(path)
        if "psds" in data:
            controller, where = data, str(path)
        elif "lbafs" in data:
            namespace = data
    if controller is None:
        raise InputError(
            f"{folder}: holds neither {FILE_NAME} nor the output of `nvme id-ctrl /dev/nvme0 -o "
            "json`; write it there (and that of `nvme id-ns`)"
        )
    return _drive(controller, namespace, where)


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json_of(read_input(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
        raise InputError(
            f"{path}: is not JSON ({error}); run `nvme id-ctrl /dev/nvme0 -o json`"
        ) from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: is not what nvme id-ctrl prints with -o json")
    return data


def _drive(data: dict[str, Any], namespace: dict[str, Any] | None, where: str) -> MeasuredDrive:
    try:
        model, states = str(data["mn"]).strip(), list(data["psds"])
        exponent = int(data.get("mdts", 0))
        block = _block_bytes(namespace)
        size = int(namespace["nsze"]) * block if namespace else 0
        capacity = int(data.get("tnvmcap", 0)) or size
        power_states = tuple(_state(index, state) for index, state in enumerate(states))
        cache = bool(int(data["vwc"]) & 1) if "vwc" in data else None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(
            f"{where}: lacks or garbles a field of Identify Controller ({error!r}); run "
            "`nvme id-ctrl /dev/nvme0 -o json` again"
        ) from None
    if not model or capacity <= 0:
        missing = "model number (mn)" if not model else "capacity (tnvmcap); add `nvme id-ns` to it"
        raise InputError(f"{where}: does not state its {missing}")
    return MeasuredDrive(
        model=model,
        firmware=str(data.get("fr", "")).strip() or None,
        capacity_bytes=capacity,
        block_bytes=block,
        max_transfer_bytes=_PAGE_BYTES << exponent if exponent else None,
        volatile_write_cache=cache,
        power_states=power_states,
    )


def _block_bytes(namespace: dict[str, Any] | None) -> int:
    if namespace is None:
        return 512
    return 1 << int(namespace["lbafs"][int(namespace["flbas"]) & 0x0F]["ds"])


def _state(index: int, state: dict[str, Any]) -> DeclaredState:
    flags = int(state.get("flags", 0))
    fine = bool(int(state.get("max_power_scale", flags & 1)))
    asleep = bool(int(state.get("non-operational_state", flags & 2)))
    active_scale = state.get("active_scale", state.get("active_work_scale", 0))
    return DeclaredState(
        index=index,
        max_power_watts=int(state["max_power"]) * (1e-4 if fine else 1e-2),
        operational=not asleep,
        entry_latency_us=int(state["entry_lat"]),
        exit_latency_us=int(state["exit_lat"]),
        idle_power_watts=_watts(state.get("idle_power"), state.get("idle_scale")),
        active_power_watts=_watts(state.get("active_power"), active_scale),
    )


def _watts(value: Any, scale: Any) -> float | None:
    code = int(scale or 0)
    unit = _SCALES.get(code if code < 4 else code >> 6)
    return int(value) * unit if unit is not None and value else None


def measured_drive(paths: Sequence[Path]) -> MeasuredDrive | None:
    """What the drive said of itself when it was measured, if that was kept."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    return next(
        (drive for folder in folders if (drive := read_measured_drive(folder)) is not None), None
    )
