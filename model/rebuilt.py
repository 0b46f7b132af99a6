"""A drive that was built otherwise: the measured one's predictions times simulated ratios.

The simulator says how the drive's own latency L and power W change from its base to its changed
geometry, at the same requests in flight. A prediction P of the measured drive becomes

    P' = P x L_changed / L_base

in the drive's part of the latency; the host's part, and the wait for its cores, stay. What the
simulator errs at both geometries alike cancels. Power follows from the profile's law at the
changed rate, times what the simulated watts differ from the base's joules a request at that rate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, RatioError
from iojoule.model.columns import Codes
from iojoule.model.frame import PATTERNS, Frame
from iojoule.model.surface import Points, TableLookup

Floats = NDArray[np.float64]


class Ratios:
    """The ratios of a profile, ready to be asked; False where it has none."""

    def __init__(self, profile: DeviceProfile) -> None:
        section = profile.rebuilt
        self._tables = {
            (one.operation.value, PATTERNS.index(one.pattern.value)): TableLookup(one.table)
            for one in (section.tables if section else ())
        }
        self._errors = {one.quantity: one for one in (section.errors if section else ())}

    def __bool__(self) -> bool:
        return bool(self._tables)

    def told(
        self, frame: Frame, points: Points, operation: str
    ) -> dict[str, tuple[Floats, Floats]]:
        """Log ratio and its log sd by quantity, each of shape (n,).

        Rows of a pattern that was not simulated keep ratio 1, as unsure as the floor.
        """
        found: dict[str, tuple[Floats, Floats]] = {}
        none = np.zeros(len(frame))
        in_flight = replace(points, log2_depth=points.log2_depth + points.log2_jobs, log2_jobs=none)
        for (of, pattern), table in self._tables.items():
            rows = np.flatnonzero(frame.pattern == pattern)
            if of != operation or not len(rows):
                continue
            place = _states(table, frame.power_state[rows])
            for name, values in table(in_flight.take(rows), place).items():
                if name in self._errors:
                    error = self._errors[name]
                    nothing = np.zeros(len(frame)), np.full(len(frame), error.floor)
                    value, sd = found.setdefault(name, nothing)
                    value[rows] = values
                    sd[rows] = log_sd(error, values)
        return found

    def watts(self, frame: Frame, points: Points) -> tuple[Floats, Floats]:
        """Log of the factor on the law's watts and its log sd; of a mix by its share of reads."""
        value, sd = np.zeros(len(frame)), np.zeros(len(frame))
        for operation, share in (("read", frame.read_fraction), ("write", 1 - frame.read_fraction)):
            told = self.told(frame, points, operation).get("watts")
            if told is None:  # nobody simulated watts: the law alone, as unsure as the least
                floor = self._errors["watts"].floor if "watts" in self._errors else 0.0
                told = np.zeros(len(frame)), np.full(len(frame), floor)
            value += share * told[0]
            sd += share * told[1]
        return value, sd


def log_sd(error: RatioError, log_ratio: Floats) -> Floats:
    """How sure ratios are, shape (n,)."""
    moved = np.minimum(np.abs(log_ratio), error.most)
    return np.asarray(np.hypot(error.floor, error.share * moved))


def _states(table: TableLookup, power_state: Codes) -> Codes:
    """Places of the power states; one that was not simulated takes PS0's ratio."""
    first = table.paths["ps0"]
    return np.array([table.paths.get(f"ps{int(one)}", first) for one in power_state], dtype=np.intp)
