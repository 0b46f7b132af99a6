"""Drives of the lab's own: in slow motion, so that the host's noise hardly counts."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.measure.errors import LabError
from iojoule.sim.formats.files import DriveFile, read_drive
from iojoule.sim.presets import drive_path
from iojoule.sim.result import Mode

DEFAULT = "lab-nvme"
_SUFFIX = ".toml"


def names() -> list[str]:
    """Every drive of the lab's own."""
    file_names = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in file_names if name.endswith(_SUFFIX))


def find(name: str) -> DriveFile:
    """A drive by name (the lab's own, or a preset of the simulator) or by its file.

    Raises:
        LabError: It is a drive of MQSim's mode, without watts and power states.
        InputError: It does not exist or is invalid.
    """
    if name in names():
        return read_drive(Path(str(files(__name__).joinpath(name + _SUFFIX))))
    try:
        drive = read_drive(drive_path(name))
    except InputError as error:
        raise InputError(
            f"{error.message}; drives of the lab's own are {', '.join(names())}"
        ) from None
    if drive.device.mode is not Mode.PHYSICAL:
        raise LabError(
            f"{name}: is a drive in compat mode, which has no watts; say mode = physical"
        )
    return drive
