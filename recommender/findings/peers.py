"""What a drive's relatives in the catalogue declare, where its own figure must not answer.

Relatives are drives of the same interface and class, of the same vendor where it has any, and with
as many sleep states where those of the drive are known. Their median is the answer and their spread
its doubt.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.model.evaluate.bands import DATASHEET
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


def _related(one: Drive, drive: Drive) -> bool:
    told = drive.fact("sleep_states")
    alike = told is None or _asleep(one) == int(float(told.value))
    return one.interface == drive.interface and one.drive_class == drive.drive_class and alike


def _asleep(drive: Drive) -> int | None:
    """Declared states that serve nothing; None where none are declared at all."""
    return len(drive.power_states) - len(drive.operational_states) if drive.power_states else None
