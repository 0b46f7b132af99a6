"""The options of every command that works on a drive, and the consent it asks for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from iojoule.measure.campaign.rig import DriveFacts

DriveOption = Annotated[
    Path,
    # whether it may be read is said where the remedy is known
    typer.Option(metavar="/dev/X", help="The block device of a whole drive.", readable=False),
]
ControllerOption = Annotated[
    Path | None,
    typer.Option(
        metavar="/dev/Y",
        help="Its NVMe controller; default: found for an NVMe drive, else none.",
        readable=False,
    ),
]
PowerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--power",
        metavar="SENSOR",
        help="An instrument, for instance powersensor3:/dev/ttyACM0,pairs=0+1. May be repeated.",
    ),
]
RaplOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Root of the powercap tree; read where it is there."),
]
SerialOption = Annotated[
    str | None,
    typer.Option(metavar="SERIAL", help="Agrees to overwrite the drive with this serial number."),
]
OverwriteOption = Annotated[
    list[str] | None,
    typer.Option(metavar="SIGNATURE", help="A signature on the drive that is worthless."),
]


def sensors_of(power: list[str] | None, rapl_root: Path | None) -> list[str]:
    """The instruments that were named, in the syntax of `open_sensor`."""
    return [*(power or []), *([f"rapl:{rapl_root}"] if rapl_root is not None else [])]


def ask_serial(drive: DriveFacts, what: str) -> str | None:
    """Read the serial number from standard input: typed, or piped by a script that means it."""
    device = drive.device
    console.warn(
        f"{what} overwrites {device.path} ({drive.model}, {device.size_bytes / 1e9:.1f} GB); "
        "everything on it will be lost"
    )
    sys.stderr.write("Type its serial number to go on: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or None
