"""From a request to a job, and the jobs of a device."""

from __future__ import annotations

from iojoule.api.http.stored import Named
from iojoule.api.jobs.calibration_request import Calibration, CalibrationRequest, checked, exclusive
from iojoule.api.state import datasets, jobs
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.jobs import Job
from iojoule.api.state.pages import Page
from iojoule.api.state.place import State
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError


def submit(
    store: State, asking: Caller, device: str, request: CalibrationRequest, named: Named
) -> Job:
    """Put a calibration into the queue, once its parts are known to be there.

    Raises:
        UnknownDeviceError: No such drive.
        InputError: A field is not what it must be, or a dataset is of another drive.
    """
    id_ = load_catalogue().get(device).id
    asked = Calibration(device=id_, **request.model_dump())
    checked(asked)
    plain = asked.model_dump(mode="json")
    with store.database.write() as connection:
        for index, name in enumerate(asked.datasets):
            place = f"datasets.{index}"
            try:
                of = datasets.find(connection, name, asking, hold=True).device
            except NotFoundError as error:
                raise InputError(error.message, field=place) from None
            if of is not None and of != id_:
                raise InputError(f"dataset {name} is of {of}, not of {id_}", field=place)
        return jobs.submit(
            connection, "calibration", plain, exclusive(id_), named.of(plain), asking
        )


def page(store: State, asking: Caller, device: str, limit: int, cursor: str | None) -> Page[Job]:
    """Calibrations of a device that the caller may read, the newest first.

    Raises:
        UnknownDeviceError: No such drive.
    """
    id_ = load_catalogue().get(device).id
    with store.database.read() as connection:
        return jobs.listed(
            connection, limit, cursor, asking, kind="calibration", exclusive=exclusive(id_)
        )
