"""What a drive's relatives in the catalogue declare, where its own figure must not answer.

Relatives are drives of the same interface and class, of the same vendor where it has any. Their
median is the answer and their spread its doubt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.model.evidence import DATASHEET
from iojoule.recommender.findings.estimate import Estimate

LEAST_SD = 0.15
"""Log sd of a declared figure among relatives, at the least."""


def typical(drive: Drive, figure: Callable[[Drive], float | None]) -> Estimate | None:
    """A declared figure as the drive's relatives have it; None where it has none."""
    family = [one for one in load_catalogue() if _related(one, drive) and one.id != drive.id]
    for relatives in ([one for one in family if one.vendor == drive.vendor], family):
        found = [value for one in relatives if (value := figure(one))]
        if found:
            logs = np.log(found)
            sd = float(np.hypot(np.std(logs), LEAST_SD) * np.sqrt(1.0 + 1.0 / len(logs)))
            return Estimate(float(np.exp(np.median(logs))), None, sd, DATASHEET)
    return None


def cap(state: int) -> Callable[[Drive], float | None]:
    """Cap of one operational state, W."""

    def of(drive: Drive) -> float | None:
        return next(
            (one.max_power_watts for one in drive.operational_states if one.index == state), None
        )

    return of


def state_count(drive: Drive) -> float | None:
    """Declared states, operational and not."""
    return float(len(drive.power_states)) or None


def state_count_with(asleep: int) -> Callable[[Drive], float | None]:
    """Declared states of drives of which so many are no operational ones."""

    def of(drive: Drive) -> float | None:
        count = len(drive.power_states)
        return float(count) if count and count - len(drive.operational_states) == asleep else None

    return of


def _related(one: Drive, drive: Drive) -> bool:
    return one.interface == drive.interface and one.drive_class == drive.drive_class
