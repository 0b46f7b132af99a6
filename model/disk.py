"""The mechanics of a hard disk: seeking, rotation, transfer by zone, and queued commands.

A request to a random place waits for the arm and then for the platter:

    S(1) = seek + half a revolution + bytes / rate.

The time of a seek over a share d of the stroke grows as a + b sqrt(d) where the arm accelerates and
brakes (Ruemmler and Wilkes, An introduction to disk drive modeling, IEEE Computer 27(3), 1994; long
seeks go in a line, which the mean hides). Between two random places the mean of sqrt(d) is 8/15 of
the stroke's, so that track-to-track and average seek of a data sheet give a and b. The Hitachi
Travelstar 5K320's (1 and 12 ms) give 21.6 ms for its full stroke of 20 ms.

With n commands queued the drive takes the one that is positioned soonest: the mean service falls as
n^(-1/5) (`QUEUE_EXPONENT`); here the positioning does, for a transfer takes as long as ever. Tracks
further out hold more: the rate falls from the first address to the last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.links import NCQ_DEPTH

Floats = NDArray[np.float64]

MEAN_ROOT = 8.0 / 15.0
"""Mean of sqrt(d) over pairs of random places: the integral of 2 (1 - d) sqrt(d) from 0 to 1."""

QUEUE_EXPONENT = 0.2
"""Service over that of one command falls as depth^-0.2 with shortest access time first: the fifth
root that Thomasian gives (ACM SIGARCH Computer Architecture News 39(2), 2011). It was checked on no
measurement here, so its doubt is part of every interval (`model.prior.disk.EXPONENT_SD`). 32
queued commands then double the rate of one."""

INNER_OVER_OUTER = 0.5
"""Rate of the last track over that of the first: assumption, about the ratio of the radii."""

MEAN_OVER_OUTER = 0.5 * (1.0 + INNER_OVER_OUTER)
"""Rate at which a whole disk is read over that of the first track: bytes of a track go as its
radius r, so the mean time of a byte is the integral of r (1 / r) over that of r."""


def rotation_seconds(rpm: float) -> float:
    """Mean wait for the platter: half a revolution, s."""
    return 30.0 / rpm


_STEPS = 400
"""Places and angles at which the distribution of a single positioning is taken."""


def positioning_quantiles(
    track_to_track: float, average: float, rpm: float, levels: Floats
) -> Floats:
    """Quantiles of seek and rotation of a request to a random place, s, shape as `levels`.

    Distances between random places have the density 2 (1 - d); angles are all alike likely.

    Args:
        track_to_track: Seek to the next track, s.
        average: Between random places of the whole disk, s.
        rpm: Revolutions a minute.
        levels: From 0 to 1.
    """
    share = (np.arange(_STEPS) + 0.5) / _STEPS
    apart = 1.0 - np.sqrt(1.0 - share)
    seek = track_to_track + (average - track_to_track) / MEAN_ROOT * np.sqrt(apart)
    turn = 2.0 * rotation_seconds(rpm) * share
    return np.asarray(np.quantile(np.add.outer(seek, turn), levels))


def queued_share(commands: Floats) -> Floats:
    """Positioning time over that of a single command, by the commands in flight."""
    return np.asarray(np.clip(commands, 1.0, NCQ_DEPTH) ** -QUEUE_EXPONENT)
