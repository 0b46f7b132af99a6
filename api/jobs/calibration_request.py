"""What is asked of a job that calibrates; light to import, as what runs it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from iojoule.datasets.errors import within
from iojoule.datasets.schema import number

if TYPE_CHECKING:
    from iojoule.sim.calibration.judge import HoldOut
    from iojoule.sim.device import DeviceConfig

Word = Annotated[str, Field(min_length=1, max_length=200)]


class CalibrationRequest(BaseModel):
    """Which measurements a device's profile is fitted to, and how."""

    model_config = ConfigDict(extra="forbid")

    datasets: list[Word] = Field(min_length=1, max_length=32, description="Ids of datasets.")
    drive: str = Field(description="Drive that comes with iojoule; its geometry is kept.")
    set: dict[str, Any] = Field(
        default={}, max_length=100, description="Fields of the drive that are changed."
    )
    hold_out: list[Word] = Field(
        default=[],
        max_length=20,
        description="Measurements to leave out and to judge by: FIELD=VALUE,... or "
        "FIELD=LOW..HIGH.",
    )
    parameters: list[Word] = Field(
        default=[], max_length=100, description="Timing parameters; none: the usual ones."
    )
    rounds: Annotated[
        int,
        Field(
            ge=1,
            le=20,
            validation_alias=AliasChoices("rounds", "waves"),
            description="Of steps; each measures the slopes anew.",
        ),
        number,
    ] = 2
    designs: Annotated[
        int, Field(ge=8, le=1000, description="Spread over the ranges at first."), number
    ] = 12
    tables: bool = Field(default=True, description="Whether the profile answers by simulation.")


class Calibration(CalibrationRequest):
    """A request with the device it is for."""

    device: str


def checked(asked: Calibration) -> tuple[DeviceConfig, list[HoldOut]]:
    """The drive of a request, and which measurements it leaves out.

    Raises:
        InputError: One of its fields is not what it must be; names it.
    """
    from iojoule.api.jobs.admission import changed_drive, drive_of
    from iojoule.sim.calibration.judge import parse_hold_out
    from iojoule.sim.calibration.parameters import ParameterSpace

    device = changed_drive(drive_of(asked.drive), asked.set, "set")
    for index, name in enumerate(asked.parameters):
        with within(f"parameters.{index}"):
            ParameterSpace(device, [name], [""])
    held = []
    for index, text in enumerate(asked.hold_out):
        with within(f"hold_out.{index}"):
            held.append(parse_hold_out(text))
    return device, held


def exclusive(device: str) -> str:
    """Calibrations of one device are made one after the other."""
    return f"calibration:{device}"
