"""From a situation and its changes to an outcome."""

from __future__ import annotations

from iojoule.api.http.places import within
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.what_if.schemas import WhatIfAnswer, WhatIfRequest
from iojoule.api.what_ifs import what_if
from iojoule.datasets.errors import InputError
from iojoule.recommender.what_if.changes import kind_of
from iojoule.recommender.what_if.changes.geometry import PRESET
from iojoule.recommender.what_if.situation import Situation


def ask(profiles: ServedProfiles, request: WhatIfRequest) -> WhatIfAnswer:
    """What the changes change.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive.
        InputError: A change is not what it must be, or needs the simulator.
    """
    with within("changes"):
        for field in request.changes:
            kind = kind_of(field)
            if kind.simulated or kind is PRESET:
                raise InputError(
                    f"{field}: needs the simulator, for which nobody should wait on a connection; "
                    "ask `iojoule what-if` on the command line"
                )
    with within("device"):
        profile = profiles.profile_of(request.device)
    base = Situation(profile, request.workload_profile, drives=request.drives)
    return what_if(base, request.changes, profiles.profile_of)
