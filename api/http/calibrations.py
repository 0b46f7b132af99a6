"""GET and POST /devices/{id}/calibrations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from iojoule.api.http.access import CurrentCaller
from iojoule.api.http.devices import DeviceId, device_id
from iojoule.api.http.jobs import accepted
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import (
    Cursor,
    Idempotency,
    IdempotencyKey,
    Limit,
    Store,
    StrictRoute,
    off_loop,
    read_store,
)
from iojoule.api.http.schemas import JobList, JobStatus
from iojoule.api.jobs.calibration_request import Calibration, CalibrationRequest, checked, exclusive
from iojoule.api.state import datasets, jobs
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State
from iojoule.datasets.errors import InputError

EXAMPLE: dict[str, Any] = {
    "datasets": ["019c1d2e3f405a6b7c8d9e0f1a2b"],
    "drive": "samsung-980-pro-1tb",
    "rounds": 1,
}

router = APIRouter(
    prefix="/devices/{id}/calibrations",
    tags=["calibrations"],
    responses=RESPONSES,
    route_class=StrictRoute,
)

CalibrationBody = Annotated[
    CalibrationRequest,
    Body(openapi_examples={"worked": {"summary": "One round on one dataset", "value": EXAMPLE}}),
]


@router.get("", summary="Which calibrations of a device are there?")
async def list_calibrations(
    store: Store,
    caller: CurrentCaller,
    id: DeviceId,  # noqa: A002 - the name in the path
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobList:
    """List the calibrations of a device, the newest first."""
    queue = exclusive(await off_loop(device_id, id))
    page = await read_store(
        store, jobs.listed, limit, cursor, caller, kind="calibration", exclusive=queue
    )
    return JobList.of(page)


@router.post("", summary="Calibrate a device's profile", status_code=202)
async def calibrate(
    store: Store,
    caller: CurrentCaller,
    id: DeviceId,  # noqa: A002
    request: CalibrationBody,
    idempotency: Idempotency,
    response: Response,
) -> JobStatus:
    """Fit a profile to datasets and make it current; those of one device run one by one."""
    job = await off_loop(submit_calibration, store, caller, id, request, idempotency)
    return accepted(job, response)


def submit_calibration(
    store: State,
    caller: Caller,
    device: str,
    request: CalibrationRequest,
    idempotency: IdempotencyKey,
) -> Job:
    """Put a calibration into the queue, once its datasets are known to exist.

    Raises:
        UnknownDeviceError: No such drive.
        InputError: A field is invalid, or a dataset is of another drive.
    """
    id_ = device_id(device)
    calibration = Calibration(device=id_, **request.model_dump())
    checked(calibration)
    document = calibration.model_dump(mode="json")
    with store.database.write() as connection:
        for index, name in enumerate(calibration.datasets):
            field = f"datasets.{index}"
            try:
                measured = datasets.find(connection, name, caller, hold=True).device
            except NotFoundError as error:
                raise InputError(error.message, field=field) from None
            if measured is not None and measured != id_:
                raise InputError(f"dataset {name} is of {measured}, not of {id_}", field=field)
        key = idempotency.of(document)
        return jobs.submit(connection, "calibration", document, exclusive(id_), key, caller)
