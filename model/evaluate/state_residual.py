"""What runs in several power states showed beside the physical model, ready to be added to it.

The model says what a power state does by a cap and two factors. What runs in all states show
beside that, at their very place or near it, stands in a table by state, and shifts the model's
answer: log value = model + residual. Where the table has a knot's neighbourhood, its standard
deviation takes the place of the model's.

A mix has tables of its own for several shares of reads, measured ones among them, beside what the
model makes of reads and writes. Between two shares the residual goes straight from one to the
other; at the ends, where nothing is mixed, it is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, StateResidual
from iojoule.model.evaluate.bands import (
    EXTRAPOLATED,
    INTERPOLATED,
    MEASURED,
    Codes,
    Direction,
    Floats,
)
from iojoule.model.evaluate.frame import PATTERNS, Frame
from iojoule.model.evaluate.operating_point import HostPaths
from iojoule.model.evaluate.power_limit import law_states
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.surface import Points, TableLookup

SD_PER_OCTAVE = 0.1
"""Log sd that an octave beyond the outermost runs adds."""


def state_path(path: str, power_state: int) -> str:
    """Name of a host path in a power state, as tables have it."""
    return f"{path} ps{power_state}"


@dataclass(frozen=True)
class Correction:
    """What the tables say of the rows that they reach.

    Attributes:
        rows: Indices of these rows, shape (k,).
        inside: Which of them lie within the measured range, shape (k,).
        values: By name of the table's values, shape (k,).
        beyond_sd: Log sd that the distance from the measured range adds, shape (k,).
        weight: How far the table counts, shape (k,); below 1 away from the share of reads that a
            mix was measured at.
        read_fraction: That share; None where nothing is mixed.
    """

    rows: Codes
    inside: NDArray[np.bool_]
    values: dict[str, Floats]
    beyond_sd: Floats
    weight: Floats
    read_fraction: float | None = None

    def sd(self, name: str) -> Floats:
        """Log sd of one of the values."""
        return np.hypot(self.values[f"{name}_sd"], self.beyond_sd)


class StateResiduals:
    """The tables of a profile; False where it has none."""

    def __init__(self, profile: DeviceProfile, paths: HostPaths) -> None:
        self._profile = profile
        self._loaded = [_Loaded(table, paths) for table in profile.state_residuals or []]

    def __bool__(self) -> bool:
        return bool(self._loaded)

    def corrections(
        self, frame: Frame, points: Points, code: Codes, operation: str
    ) -> list[Correction]:
        """What is known of the rows, one answer a pattern (of mixes, and a share of reads)."""
        corrections = []
        for table in self._loaded:
            if table.operation == operation:
                place = table.path_indices(law_states(self._profile, frame.power_state), code)
                reached = (place >= 0) & (frame.pattern == table.pattern)
                weight = self._weight(table, frame.read_fraction)
                if weight is not None:
                    reached &= weight > 0.0
                rows = np.flatnonzero(reached)
                if rows.size:
                    correction = table.correction(points, place, rows)
                    corrections.append(
                        correction if weight is None else replace(correction, weight=weight[rows])
                    )
        return corrections

    def least(self, name: str, frame: Frame) -> Floats:
        """Least of a value in a power state, reads and writes by their share.

        It holds where next to nothing is asked, whatever the configuration; 0 where no run tells.
        """
        watts = np.zeros(len(frame))
        shares = {"read": frame.read_fraction, "write": 1.0 - frame.read_fraction}
        for table in self._loaded:
            if table.operation in shares and name in table.least:
                levels = table.least[name]
                run_in = law_states(self._profile, frame.power_state)
                state = np.minimum(run_in, len(levels) - 1)
                at = (frame.pattern == table.pattern) & (state == run_in)
                watts += shares[table.operation] * np.where(at, levels[state], 0.0)
        return watts

    def _weight(self, table: _Loaded, fraction: Floats) -> Floats | None:
        """How far a table of a mix counts at these shares of reads: 1 at its own."""
        if table.read_fraction is None:
            return None
        known = [loaded.read_fraction for loaded in self._loaded if loaded.pattern == table.pattern]
        nodes = np.array(
            sorted({0.0, 1.0, *(fraction for fraction in known if fraction is not None)})
        )
        return np.asarray(np.interp(fraction, nodes, nodes == table.read_fraction), dtype=float)

    def correct_mix(self, result: Direction, frame: Frame, points: Points, code: Codes) -> None:
        """Shift what the model makes of a mix by what runs of mixes showed."""
        every = self.corrections(frame, points, code, "mixed")
        if not every:
            return
        total = self.mixed_weight(frame, every)
        before = {name: half.copy() for name, half in result.half_width.items()}
        for name, log_value in result.log_value.items():
            half = (1.0 - total) * before[name]
            for correction in every:
                rows, source = correction.rows, name if name in correction.values else "latency"
                log_value[rows] += correction.weight * correction.values[source]
                learned = NORMAL_90 * correction.sd(source)
                chosen = correction.inside & (source == name)
                learned = np.where(chosen, learned, np.maximum(before[name][rows], learned))
                half[rows] += correction.weight * learned
            result.half_width[name][:] = half
        result.put_in_order()
        between = self._between_measured(frame) & (total > 1.0 - 1e-9)
        for correction in every:
            seen = (
                correction.inside
                & (correction.values["on_knot"] > 0)
                & (correction.values["measured"] > 0.5)
            )
            result.evidence[correction.rows[correction.inside & between[correction.rows]]] = (
                INTERPOLATED
            )
            result.evidence[correction.rows[seen & (correction.weight > 1.0 - 1e-9)]] = MEASURED

    def _between_measured(self, frame: Frame) -> NDArray[np.bool_]:
        """Rows whose share of reads lies between measured ones of the pattern; shape (n,)."""
        between = np.zeros(len(frame), dtype=bool)
        for pattern in {table.pattern for table in self._loaded}:
            seen = [
                table.read_fraction
                for table in self._loaded
                if table.pattern == pattern
                and table.read_fraction is not None
                and table.is_measured
            ]
            if seen:
                inside = (frame.read_fraction >= min(seen) - 1e-9) & (
                    frame.read_fraction <= max(seen) + 1e-9
                )
                between |= inside & (frame.pattern == pattern)
        return between

    @staticmethod
    def mixed_weight(frame: Frame, every: Sequence[Correction]) -> Floats:
        """How far tables of mixes count, shape (n,); 0 where no table reaches."""
        total = np.zeros(len(frame))
        for correction in every:
            total[correction.rows] += correction.weight
        return total

    def correct(
        self,
        result: Direction,
        frame: Frame,
        points: Points,
        code: Codes,
        operation: str,
        at_ps0: Mapping[str, Floats],
    ) -> None:
        """Shift latency and percentiles of one direction, and put the learned sds in place.

        Between runs no state is surer than PS0 is there: `at_ps0` are its half widths.
        """
        for correction in self.corrections(frame, points, code, operation):
            rows = correction.rows
            seen = (
                correction.inside
                & (correction.values["on_knot"] > 0)
                & (correction.values["measured"] > 0.5)
            )
            for name, log_value in result.log_value.items():
                # a percentile that was not measured keeps its ratio to the mean
                own = name if name in correction.values else "latency"
                log_value[rows] += correction.values[own]
                learned, before = NORMAL_90 * correction.sd(own), result.half_width[name][rows]
                chosen = correction.inside & (own == name)
                least = np.where(chosen, at_ps0[name][rows], before)
                result.half_width[name][rows] = np.where(
                    chosen & seen, learned, np.maximum(least, learned)
                )
            result.put_in_order()
            evidence = np.where(seen, MEASURED, INTERPOLATED)
            result.evidence[rows] = np.where(
                correction.inside, evidence, np.maximum(result.evidence[rows], EXTRAPOLATED)
            )


def _least_by_state(values: Floats, states: Codes) -> Floats:
    """Least of a table's values by power state; 0 in states that it does not have.

    `states` are those of its paths, shape (paths,); the values of each path stand together.
    """
    least = np.full(1 + states.max(), np.inf)
    np.minimum.at(least, states, values.reshape(len(states), -1).min(axis=1))
    return np.where(np.isfinite(least), least, 0.0)


class _Loaded:
    """One table with its arrays built."""

    def __init__(self, table: StateResidual, paths: HostPaths) -> None:
        self.operation = table.operation.value
        self.read_fraction = table.read_fraction
        self.pattern = PATTERNS.index(table.pattern.value)
        self.is_measured = any(table.table.values.get("measured", []))
        self._lookup = TableLookup(table.table)
        split = [name.rpartition(" ps") for name in table.table.paths]
        states = np.array([int(state) for *_, state in split])
        self.least = {
            name: _least_by_state(values, states)
            for name, values in zip(self._lookup.names, self._lookup.grid, strict=True)
        }
        self._place = np.full(
            (1 + max(int(state) for *_, state in split), len(paths.keys)), -1, dtype=np.intp
        )
        for place, (key, _, state) in enumerate(split):
            if key in paths.keys:
                self._place[int(state), paths.keys.index(key)] = place

    def path_indices(self, power_state: Codes, code: Codes) -> Codes:
        """The table's path of each row; -1 where it has none."""
        known = power_state < len(self._place)
        return np.where(known, self._place[np.where(known, power_state, 0), code], -1)

    def correction(self, points: Points, place: Codes, rows: Codes) -> Correction:
        own = points if len(rows) == len(place) else points.take(rows)
        values = self._lookup(own, place[rows])
        distance = np.zeros(len(rows))
        coordinates = (own.log2_depth, own.log2_jobs, own.log2_request)
        for axis, x in zip(self._lookup.axes, coordinates, strict=True):
            distance = np.maximum(distance, np.maximum(axis[0] - x, x - axis[-1]))
        # the axes are those of all states; a state's own runs may end before
        distance = np.maximum(distance, values.get("beyond", 0.0))
        distance[distance < 1e-6] = 0.0
        beyond = SD_PER_OCTAVE * distance
        weight = np.ones(len(rows))
        return Correction(rows, distance == 0.0, values, beyond, weight, self.read_fraction)
