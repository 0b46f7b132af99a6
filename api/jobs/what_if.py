"""Jobs that answer a what-if whose drive nobody built: it and the one as it is are simulated."""

from __future__ import annotations

from iojoule.api.application.profiles import profile_of
from iojoule.api.application.what_if import what_if
from iojoule.api.jobs.admission import refuse_flows
from iojoule.api.jobs.running import Outcome, Running
from iojoule.api.jobs.simulation import LIMITS
from iojoule.api.jobs.what_if_request import WhatIfRequest, of_change
from iojoule.api.state import profiles
from iojoule.api.state.place import State
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.what_if.changes import changed
from iojoule.recommender.what_if.situation import ProfileOf
from iojoule.sim.engines.bounded import BoundedEngine
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.modified_drive import Simulating, base_drive, changed_drive

_ENGINE = EmbeddedEngine()
"""One for all jobs, so that what one of them simulated another one need not."""


def refuse_impossible(request: WhatIfRequest, named: ProfileOf) -> None:
    """Return where the changed drive can be built.

    Raises:
        IojouleError: It cannot; names the change.
    """
    base = request.situation(named)
    with of_change(request):
        other = changed(base, request.changes, named)
        refuse_flows(name for name, _ in other.geometry)
        changed_drive(base_drive(other.profile, other.preset), other.geometry)


def run(running: Running) -> Outcome:
    """Answer with the profiles that answer now; raises what a run raises."""
    request = WhatIfRequest.model_validate(running.request)
    named = _served(running.state)
    request.simulated()  # refuses presets that are files, also of what waits since before it did
    refuse_impossible(request, named)
    stop = running.watched.stop

    def watch(share: float) -> None:
        running.watched.say(share, "simulating")
        running.watched.go_on()

    simulating = Simulating(BoundedEngine(_ENGINE, LIMITS, stop.is_set), watch)
    found = what_if(request.situation(named), request.changes, named, simulating)
    return Outcome(found.model_dump_json().encode())


def _served(state: State) -> ProfileOf:
    """Finds profiles as the service does: those made current, else those that iojoule brings."""
    with state.database.read() as connection:
        shown = profiles.all_shown(connection)

    def named(device: str) -> DeviceProfile:
        id_ = load_catalogue().get(device).id
        return profiles.read(state, shown[id_]) if id_ in shown else profile_of(id_)

    return named
