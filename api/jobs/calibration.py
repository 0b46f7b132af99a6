"""Jobs that calibrate: a profile fitted to datasets, with the simulator's tables, published."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from iojoule import __version__
from iojoule.api.calibrating import Calibrated, Wishes, calibrate_datasets
from iojoule.api.jobs.running import Outcome, Running, Watched
from iojoule.api.state import datasets, profiles
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.sim.calibration.calibrate import Settings
from iojoule.sim.calibration.hold_out import parse_hold_out
from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.sweep import with_values
from iojoule.sim.workers import cores, open_pool
from iojoule.sim.workload import FlowConfig, Scenario

STAGES = ("designs", "comparing", "tables")
"""In the order in which they come; each is given a third of the progress."""

DASK_VARIABLE = "IOJOULE_DASK"
"""Names a Dask scheduler whose workers simulate; without it, processes of this machine do."""

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
        default=[], max_length=20,
        description="Measurements to leave out and to judge by: FIELD=VALUE,... or "
        "FIELD=LOW..HIGH.",
    )  # fmt: skip
    parameters: list[Word] = Field(
        default=[], max_length=100, description="Timing parameters; none: the usual ones."
    )
    waves: int = Field(default=3, ge=1, le=20, description="Of history matching.")
    designs: int | None = Field(
        default=None, ge=8, le=1000, description="A wave; none: eight for each parameter."
    )
    tables: bool = Field(default=True, description="Whether the profile answers by simulation.")


class Calibration(CalibrationRequest):
    """A request with the device it is for."""

    device: str


def checked(asked: Calibration) -> tuple[DeviceConfig, Wishes]:
    """The drive and the wishes of a request.

    Raises:
        InputError: One of its fields is not what it must be; names it.
    """
    try:
        device = read_drive(preset_path(asked.drive)).device
    except InputError as error:
        raise InputError(error.message, field="drive") from None
    nothing = Scenario(flows=(FlowConfig(stop_ns=1),))
    try:
        device = with_values(device, nothing, asked.set)[0]
    except IojouleError as error:
        raise InputError(error.message, field="set") from None
    held = []
    for index, text in enumerate(asked.hold_out):
        try:
            held.append(parse_hold_out(text))
        except InputError as error:
            raise InputError(error.message, field=f"hold_out.{index}") from None
    settings = Settings(waves=asked.waves, designs=asked.designs)
    return device, Wishes(
        hold_out=held, parameters=asked.parameters, settings=settings, tables=asked.tables
    )


def exclusive(device: str) -> str:
    """Calibrations of one device are made one after the other."""
    return f"calibration:{device}"


def run(running: Running) -> Outcome:
    """Calibrate, going on where an interrupted attempt stopped.

    Raises:
        InputError: The datasets cannot be used for this device; says what to measure.
    """
    asked = Calibration.model_validate(running.request)
    drive, wishes = checked(asked)
    with running.state.database.read() as connection:
        kept = [datasets.find(connection, id_) for id_ in asked.datasets]
    paths = [datasets.laid_out(running.state, one, running.folder / "datasets") for one in kept]
    settings = replace(wishes.settings, folder=running.folder / "designs")
    with open_pool(cores(), dask=os.environ.get(DASK_VARIABLE)) as pool:
        found = calibrate_datasets(
            paths, drive, asked.drive, asked.device, replace(wishes, settings=settings),
            pool=pool, watch=_watch(running.watched),
        )  # fmt: skip
    running.watched.go_on()
    if found.profile.device != asked.device:
        raise InputError(
            f"the datasets are of {found.profile.device}, not of {asked.device}; calibrate that "
            "device, or name other datasets", field="datasets",
        )  # fmt: skip

    def publish(connection: Connection, state: State) -> None:
        profiles.publish(connection, state, found.profile, running.id)

    return Outcome(orjson.dumps(_told(asked, found)), publish)


def _watch(watched: Watched) -> Any:
    def watch(stage: str, done: int, of: int) -> None:
        before = STAGES.index(stage) if stage in STAGES else 0
        watched.say((before + done / max(of, 1)) / len(STAGES), stage)
        watched.go_on()

    return watch


def _told(asked: Calibration, found: Calibrated) -> dict[str, Any]:
    """What the calibration found, without the tables that the profile holds."""
    section = found.profile.simulated
    return {
        "iojoule_version": __version__,
        "device": asked.device,
        "datasets": asked.datasets,
        "notes": found.notes,
        "excluded": [{"what": one.what, "reason": one.reason} for one in found.excluded],
        "calibration": section and section.model_dump(mode="json", exclude={"tables"}),
    }
