"""How far a meter's joules are from a drive's own, which are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from iojoule.api.application.meter_basis import DriveState, in_state
from iojoule.datasets.profile import DeviceProfile
from iojoule.meter.counters import Snapshot
from iojoule.meter.meter import Meter
from iojoule.meter.readings import Basis

INSTRUMENT_SECONDS = 60.0
"""What comes before counts neither with an instrument nor without one."""
INSTRUMENT_RELATIVE_SD = 0.01


class Passed(NamedTuple):
    """What a host saw at the end of a stretch of time, and what one drive did in it."""

    look: Snapshot
    watts: float
    power_state: int


class Judged(NamedTuple):
    """Relative error of the joules, and whether the truth is in their interval."""

    error: float
    inside: bool


def judged(
    profile: DeviceProfile,
    source: str,
    said: DriveState,
    begin: Snapshot,
    after: Iterable[Passed],
    *,
    instrument: bool,
    sysfs: Path = Path("/sys"),
) -> Judged:
    """By a profile, helped by an instrument for the first minute or not."""
    (drive,) = begin.drives
    bases = [
        in_state(Basis(profile, source), drive, sysfs, replace(said, power_state=state))
        for state in range(3)
    ]
    meter = Meter(lambda _: bases[0])
    meter.step(begin)
    sums, seconds = np.zeros(4), 0.0
    for look, watts, state in after:
        meter.rebase(drive.key, bases[state])
        measured = {drive.name: (watts, INSTRUMENT_RELATIVE_SD)}
        (reading,) = meter.step(
            look, measured if instrument and seconds < INSTRUMENT_SECONDS else None
        )
        seconds += reading.seconds
        if seconds > INSTRUMENT_SECONDS:
            told = (reading.watts, reading.watts_low, reading.watts_high, watts)
            sums += reading.seconds * np.array(told)
    joules, low, high, truth = sums
    return Judged(float(joules / truth - 1.0), bool(low <= truth <= high))
