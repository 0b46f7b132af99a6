"""Power of an idle SATA drive by the state of its link.

In Slumber both sides of the link stop their transceivers and the drive may stop its clocks. Data
sheets of SATA SSDs state 30 to 100 mW with Slumber and 0.1 to 0.5 W with an active link: a share
of about 0.3 that strays by a factor of two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.model.evidence import DATASHEET
from iojoule.recommender.findings.estimate import Estimate

SLUMBER_SHARE = (0.3, 0.45)
"""Of the idle power with an active link, and sd of its logarithm."""

TRANSITION_SECONDS = (0.1, 1.2)
"""Into or out of Slumber: the link leaves it within 10 ms (Serial ATA specification), the drive
enters once its own work is done, up to a second."""


def at(idle: Estimate, state: Any) -> Estimate:
    """Idle power in a link state; an active link where none is stated."""
    if state != "slumber":
        return idle
    share, log_sd = SLUMBER_SHARE
    own = float(np.hypot(idle.own, log_sd))
    return replace(idle, value=share * idle.value, own=own)


def transition() -> Estimate:
    """Seconds of a transition between the active link and Slumber."""
    seconds, log_sd = TRANSITION_SECONDS
    return Estimate(seconds, None, log_sd, DATASHEET)
