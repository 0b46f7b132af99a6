"""What a reader should know of gaps: race to idle or pace, and from which gap on."""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.equal_work import race_or_pace
from iojoule.recommender.screen import Judged


def notes(profile: DeviceProfile, judged: Judged, row: int) -> list[str]:
    """One note where the work comes in stated bursts and the drive's power is known, else none."""
    gap = float(judged.work.gap_seconds[row])
    if profile.device_power is None or not gap > 0:
        return []
    choice = race_or_pace(profile, judged.frame, judged.prediction, judged.work)
    saved, from_gap = float(choice.saved_joules[row]), float(choice.break_even_seconds[row])
    known = profile.idle.settle_seconds.evidence if profile.idle is not None else Evidence.DATASHEET
    pays = f"racing pays from {from_gap:.3g} s on" if np.isfinite(from_gap) else "racing never pays"
    if choice.races[row]:
        word = "race to idle: finish each burst at full speed and let the drive rest"
        more = f"saves {saved:.3g} J a gap over pacing" if saved > 0 else "as good as pacing"
    else:
        word = "pace the requests over the gap: it is shorter than settling and background work"
        more = f"saves {-saved:.3g} J a gap over racing"
    return [f"gaps of {gap:.3g} s: {word}; {more}; {pays} (evidence: {known.value})"]
