"""GET and POST /simulations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from iojoule.api.http.computing import Computed
from iojoule.api.http.gate import Asking
from iojoule.api.http.jobs.schemas import JobStatus
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.simulations import service
from iojoule.api.http.simulations.schemas import EXAMPLE, SimulatedDrives, SimulationRequest
from iojoule.api.http.stored import Idempotency, Store, off_loop
from iojoule.api.http.strict_json import StrictRoute

router = APIRouter(
    prefix="/simulations", tags=["simulations"], responses=RESPONSES, route_class=StrictRoute
)

SimulationBody = Annotated[
    SimulationRequest,
    Body(
        openapi_examples={
            "worked": {"summary": "Random reads at three queue depths", "value": EXAMPLE}
        }
    ),
]


@router.get("", summary="Which drives can be simulated?")
async def list_drives() -> SimulatedDrives:
    """List the drives that come with iojoule."""
    return service.drives()


@router.post("", summary="What would a drive do?", status_code=202)
async def simulate(
    store: Store,
    asking: Asking,
    computed: Computed,
    request: SimulationBody,
    named: Idempotency,
    response: Response,
) -> JobStatus:
    """Put a simulation into the queue; the answer is the job to follow."""
    await computed(service.refuse_impossible, request)
    job = await off_loop(service.submit, store, asking, request, named)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobStatus.of(job)
