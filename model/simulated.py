"""Answers from the tables of a calibrated simulator, where nothing measured is near.

The simulator itself is not needed: what it says, with the residual that was learned on the
measurements, stands in the profile. A row is answered from it where the profile would extrapolate,
the tables reach, and their interval is narrower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, SimulatedTable
from iojoule.model.columns import Codes
from iojoule.model.frame import PATTERNS, Frame
from iojoule.model.host_paths import HostPaths
from iojoule.model.normal import NORMAL_90
from iojoule.model.surface import Points, TableLookup

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedAnswer:
    """What the tables say of the rows that they reach.

    Attributes:
        rows: Indices of these rows, shape (k,).
        log_value: Log of latency, p50, p99 and p99.9 in ns, and of watts where known, shape (k,).
        half_width: Log half widths of 90 %, likewise.
    """

    rows: Codes
    log_value: dict[str, Floats]
    half_width: dict[str, Floats]


class SimulatedTables:
    """The tables of a profile, ready to be asked; False where it has none."""

    def __init__(self, profile: DeviceProfile, paths: HostPaths) -> None:
        section = profile.simulated
        self.base_watts = section.base_watts if section else None
        self._loaded = {
            (one.operation.value, PATTERNS.index(one.pattern.value)): _Loaded(one, paths)
            for one in (section.tables if section else ())
        }

    def __bool__(self) -> bool:
        return bool(self._loaded)

    def answer(
        self, frame: Frame, points: Points, code: Codes, operation: str, wanted: NDArray[np.bool_]
    ) -> list[SimulatedAnswer]:
        """What the tables say of the wanted rows, one answer a pattern.

        Args:
            frame: The questions.
            points: Their coordinates.
            code: Their host paths.
            operation: read or write.
            wanted: Rows that are asked for, shape (n,).
        """
        found = []
        for (of, pattern), table in self._loaded.items():
            if of == operation:
                rows = np.flatnonzero(wanted & (frame.pattern == pattern))
                rows = rows[table.reaches(points, code, frame.power_state, rows)]
                if rows.size:
                    found.append(table.answer(points, code, frame.power_state, rows))
        return found


class _Loaded:
    """One table with its arrays built."""

    def __init__(self, one: SimulatedTable, paths: HostPaths) -> None:
        self.lookup = TableLookup(one.table)
        self._places: dict[tuple[int, int], int] = {}
        for place, name in enumerate(one.table.paths):
            key, _, state = name.rpartition(" ps")
            if key in paths.keys:
                self._places[paths.keys.index(key), int(state)] = place

    def reaches(self, points: Points, code: Codes, power_state: Codes, rows: Codes) -> Codes:
        """Which of the rows lie within the axes, on a path and in a state that were simulated."""
        inside = np.array(
            [pair in self._places for pair in zip(code[rows], power_state[rows], strict=True)],
            dtype=bool,
        )
        for axis, x in zip(
            self.lookup.axes,
            (points.log2_depth, points.log2_jobs, points.log2_request),
            strict=True,
        ):
            inside &= (x[rows] >= axis[0] - 1e-9) & (x[rows] <= axis[-1] + 1e-9)
        return np.asarray(inside)

    def answer(
        self, points: Points, code: Codes, power_state: Codes, rows: Codes
    ) -> SimulatedAnswer:
        own = Points(*(getattr(points, name)[rows] for name in Points.__dataclass_fields__))
        place = np.array(
            [self._places[pair] for pair in zip(code[rows], power_state[rows], strict=True)],
            dtype=np.intp,
        )
        told = self.lookup(own, place)
        value = {"latency": told["latency"]}
        half = {"latency": NORMAL_90 * told["latency_sd"]}
        for name in ("p50", "p99", "p999"):
            value[name] = told["latency"] + told[name]
            half[name] = NORMAL_90 * np.hypot(told["latency_sd"], told[f"{name}_sd"])
        value["p99"] = np.maximum(value["p99"], value["p50"])
        value["p999"] = np.maximum(value["p999"], value["p99"])
        if "watts" in told:
            value["watts"], half["watts"] = told["watts"], NORMAL_90 * told["watts_sd"]
        return SimulatedAnswer(rows, value, half)
