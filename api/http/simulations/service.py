"""From a question to a job."""

from __future__ import annotations

from iojoule import __version__
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.simulations.schemas import SimulatedDrives, SimulationRequest
from iojoule.api.http.stored import Named
from iojoule.api.state import jobs
from iojoule.api.state.callers import Caller
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State
from iojoule.sim.presets import preset_names


def drives() -> SimulatedDrives:
    """The drives that come with iojoule."""
    return SimulatedDrives(iojoule_version=__version__, drives=preset_names())


def refuse_impossible(_: ServedProfiles, request: SimulationRequest) -> bytes:
    """Return nothing where it can be run; for what computes, as many runs take long to judge.

    Raises:
        InputError: It cannot; names the field.
    """
    from iojoule.api.jobs.simulation import planned

    planned(request)
    return b""


def submit(store: State, asking: Caller, request: SimulationRequest, named: Named) -> Job:
    """Put a simulation that can be run (`refuse_impossible`) into the queue."""
    asked = request.model_dump(mode="json", exclude_unset=True)
    with store.database.write() as connection:
        return jobs.submit(connection, "simulation", asked, key=named.of(asked), caller=asking)
