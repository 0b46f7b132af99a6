"""From a situation and its changes to an outcome, or to the job that simulates."""

from __future__ import annotations

from iojoule.api.application.what_if import what_if
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.stored import Named
from iojoule.api.http.what_if.schemas import WhatIfAnswer, WhatIfRequest
from iojoule.api.jobs.what_if_request import of_change
from iojoule.api.state import jobs
from iojoule.api.state.callers import Caller
from iojoule.api.state.jobs import Job
from iojoule.api.state.place import State


def simulated(request: WhatIfRequest) -> bool:
    """Whether an answer needs the simulator; raises InputError where nothing can be so changed."""
    with of_change(request):
        return request.simulated()


def ask(profiles: ServedProfiles, request: WhatIfRequest) -> WhatIfAnswer:
    """What the changes change.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive.
        InputError: A change is not what it must be.
    """
    return what_if(request.situation(profiles.profile_of), request.changes, profiles.profile_of)


def refuse_impossible(profiles: ServedProfiles, request: WhatIfRequest) -> bytes:
    """Return nothing where it can be asked; for what computes, as a drive is built to see that.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive.
        InputError: A change is not what it must be.
    """
    from iojoule.api.jobs.what_if import refuse_impossible

    refuse_impossible(request, profiles.profile_of)
    return b""


def submit(store: State, asking: Caller, request: WhatIfRequest, named: Named) -> Job:
    """Put a what-if that simulates and can be asked (`refuse_impossible`) into the queue."""
    asked = request.model_dump(mode="json", exclude_unset=True)
    with store.database.write() as connection:
        return jobs.submit(connection, "what-if", asked, key=named.of(asked), caller=asking)
