"""Jobs that calibrate: a profile fitted to datasets, with the simulator's tables, published."""

from __future__ import annotations

import os
from typing import Any

import orjson
from sqlalchemy import Connection

from iojoule import __version__
from iojoule.api.application.calibrate import Calibrated, Wishes, calibrate_datasets
from iojoule.api.jobs.calibration_request import Calibration, checked
from iojoule.api.jobs.running import Outcome, Running, Watched
from iojoule.api.state import datasets, profiles
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError
from iojoule.sim.calibration.calibrate import Settings
from iojoule.sim.workers import cores, open_pool

STAGES = ("designs", "comparing", "tables")
"""In the order in which they come; each is given a third of the progress."""

DASK_VARIABLE = "IOJOULE_DASK"
"""Names a Dask scheduler whose workers simulate; without it, processes of this machine do."""


def run(running: Running) -> Outcome:
    """Calibrate, going on where an interrupted attempt stopped.

    Raises:
        InputError: The datasets cannot be used for this device; says what to measure.
    """
    asked = Calibration.model_validate(running.request)
    drive, held = checked(asked)
    with running.state.database.read() as connection:
        kept = [datasets.find(connection, id_) for id_ in asked.datasets]
    paths = [datasets.laid_out(running.state, one, running.folder / "datasets") for one in kept]
    settings = Settings(
        rounds=asked.rounds, designs=asked.designs, folder=running.folder / "designs"
    )
    wishes = Wishes(
        hold_out=held, parameters=asked.parameters, settings=settings, tables=asked.tables
    )
    with open_pool(cores(), dask=os.environ.get(DASK_VARIABLE)) as pool:
        found = calibrate_datasets(
            paths,
            drive,
            asked.drive,
            asked.device,
            wishes,
            pool=pool,
            watch=_watch(running.watched),
        )
    running.watched.go_on()
    if found.profile.device != asked.device:
        raise InputError(
            f"the datasets are of {found.profile.device}, not of {asked.device}; calibrate that "
            "device, or name other datasets",
            field="datasets",
        )

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
