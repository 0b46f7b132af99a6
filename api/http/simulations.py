"""GET and POST /simulations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from iojoule import __version__
from iojoule.api.http.access import CurrentCaller
from iojoule.api.http.jobs import accepted, submit_job
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import Idempotency, Store, StrictRoute
from iojoule.api.http.schemas import JobStatus, SimulatedDrives
from iojoule.api.http.served_profiles import ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.jobs.simulation_request import SimulationRequest
from iojoule.sim.presets import preset_names

EXAMPLE: dict[str, Any] = {
    "drive": "samsung-980-pro-1tb",
    "scenario": {
        "flows": [
            {
                "read_percent": 100,
                "queue_depth": 4,
                "size_mean_sectors": 8,
                "total_requests": 2000,
            }
        ]
    },
    "vary": {"flows.queue_depth": [1, 4, 16]},
}

router = APIRouter(
    prefix="/simulations", tags=["simulations"], responses=RESPONSES, route_class=StrictRoute
)

_SUMMARY = "Random reads at three queue depths"
SimulationBody = Annotated[
    SimulationRequest, Body(openapi_examples={"worked": {"summary": _SUMMARY, "value": EXAMPLE}})
]


@router.get("", summary="Which drives can be simulated?")
async def list_drives() -> SimulatedDrives:
    """List the drives that come with iojoule."""
    return SimulatedDrives(iojoule_version=__version__, drives=preset_names())


@router.post("", summary="What would a drive do?", status_code=202)
async def simulate(
    store: Store,
    caller: CurrentCaller,
    workers: Workers,
    request: SimulationBody,
    idempotency: Idempotency,
    response: Response,
) -> JobStatus:
    """Put a simulation into the queue; the response is the job to follow."""
    await workers(refuse_impossible, request)
    job = await submit_job(store, caller, "simulation", request, idempotency)
    return accepted(job, response)


def refuse_impossible(_: ServedProfiles, request: SimulationRequest) -> bytes:
    """Check that a simulation can be run; empty. For a worker, as many runs take long to check.

    Raises:
        InputError: It cannot; names the field.
    """
    from iojoule.api.jobs.simulation import planned  # the simulator, slow to import

    planned(request)
    return b""
