"""Power of an idle SATA drive by the state of its link, and of the port at its other end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.model.evaluate.bands import DATASHEET
from iojoule.model.evaluate.sata_link import PORT_WATTS, SLUMBER_SHARE
from iojoule.recommender.findings.estimate import Estimate

TRANSITION_SECONDS = (0.1, 1.2)
"""Into or out of Slumber: the link leaves it within 10 ms
(`model.evaluate.sata_link.EXIT_SECONDS`), the drive enters once its own work is done, up to a
second (assumption)."""


def at(idle: Estimate, state: Any) -> Estimate:
    """Idle power in a link state; an active link where none is stated."""
    if state != "slumber":
        return idle
    share, log_sd = SLUMBER_SHARE
    own = float(np.hypot(idle.own, log_sd))
    return replace(idle, value=share * idle.value, own=own)


def with_port(idle: Estimate) -> Estimate:
    """Idle power of the drive and of the port that it is plugged into, link active."""
    watts, log_sd = PORT_WATTS
    value = idle.value + watts
    own = float(np.hypot(idle.own * idle.value, log_sd * watts)) / value
    return replace(idle, value=value, own=own)


def transition() -> Estimate:
    """Seconds of a transition between the active link and Slumber."""
    seconds, log_sd = TRANSITION_SECONDS
    return Estimate(seconds, None, log_sd, DATASHEET)
