"""GET and POST /devices/{id}/calibrations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from iojoule.api.http.calibrations import service
from iojoule.api.http.devices.endpoints import DeviceId
from iojoule.api.http.gate import Asking
from iojoule.api.http.jobs.schemas import JobList, JobStatus
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import Cursor, Idempotency, Limit, Store, off_loop
from iojoule.api.http.strict_json import StrictRoute
from iojoule.api.jobs.calibration_request import CalibrationRequest

router = APIRouter(
    prefix="/devices/{id}/calibrations", tags=["calibrations"], responses=RESPONSES,
    route_class=StrictRoute,
)  # fmt: skip

EXAMPLE: dict[str, Any] = {
    "datasets": ["019c1d2e3f405a6b7c8d9e0f1a2b"],
    "drive": "samsung-980-pro-1tb",
    "waves": 2,
}

CalibrationBody = Annotated[
    CalibrationRequest,
    Body(openapi_examples={"worked": {"summary": "Two waves on one dataset", "value": EXAMPLE}}),
]


@router.get("", summary="Which calibrations of a device are there?")
async def list_calibrations(
    store: Store,
    asking: Asking,
    id: DeviceId,  # noqa: A002 - the name in the path
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobList:
    """List the calibrations of a device, the newest first."""
    return JobList.of(await off_loop(service.page, store, asking, id, limit, cursor))


@router.post("", summary="Calibrate a device's profile", status_code=202)
async def calibrate(
    store: Store,
    asking: Asking,
    id: DeviceId,  # noqa: A002
    request: CalibrationBody,
    named: Idempotency,
    response: Response,
) -> JobStatus:
    """Fit a profile to datasets and let it answer; those of one device run one after the other."""
    job = await off_loop(service.submit, store, asking, id, request, named)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobStatus.of(job)
