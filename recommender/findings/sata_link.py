"""Power of an idle SATA drive by the state of its link, and of the port at its other end.

In Slumber both sides of the link stop their transceivers, and a drive may stop its clocks as
well. Client drives then keep a tenth of what they draw with an active link (AnandTech, review
11571 of the Intel 545s, p6: device-initiated power management on and off); one that only stops
its transceivers, half of the 0.7 W below, keeps 0.4 of the 0.57 W that such drives are expected
to idle at.

The host's side shows in system power only. Link power management saves 0.8 W a drive in Slumber and
0.5 W in Partial on an ICH8M (FreeBSD, sys/dev/ata, commit 4c10f2e605), 0.5 to 1.5 W a disk (Intel's
lesswatts.org, Serial ATA) and 0.4 to 0.5 W (CompuLab's fit-PC wiki), both ends together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.model.evidence import DATASHEET
from iojoule.recommender.findings.estimate import Estimate

SLUMBER_SHARE = (0.2, 0.6)
"""Of the idle power with an active link, and sd of its logarithm: the middle of both."""

TRANSITION_SECONDS = (0.1, 1.2)
"""Into or out of Slumber: the link leaves it within 10 ms (sata-io.org, power management; 3.5 ms
were measured for the FreeBSD commit), the drive enters once its own work is done, up to a second
(assumption)."""

PORT_WATTS = (0.35, 0.5)
"""What a host's port with an active link draws, and sd of its logarithm: half of the 0.7 W that
both ends save together, since both have the same transceivers."""


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
