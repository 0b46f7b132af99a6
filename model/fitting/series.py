"""Percentiles between the neighbours of one series, where a smooth law knows less than they do.

A percentile is read off a histogram and bends where the mean does not, so between two neighbours an
octave away plain interpolation of the row's own series beats any law fitted to all of them. It
counts the less the further the neighbours lie apart, and the less the more the rows scatter:
interpolation follows every stray value.

How far apart three ways of interpolating lie says how irregular the neighbours are, and so how far
any answer between them may err: a curved surface says little about that by itself. What the
physical curve misses is interpolated in the same way; where it steps from one neighbour to the
next, the step may lie anywhere between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.fitting.monotone import between, four_points

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

DENSE_OCTAVES = 2.0
"""Neighbours this far from each other, a row's own place an octave from both, are interpolated."""

NEIGHBOURS_SHARE = 0.5
"""How much neighbours' residuals count for mean latency beside the process that smooths over all of
them: two forecasts with errors of like size are best averaged (Clemen, International Journal of
Forecasting 5, 1989)."""

STEP_SD = 24.0**-0.5
"""Sd of a value between two bounds whose middle is likeliest (a triangular distribution), in units
of their distance."""

SMOOTH_SD = 0.05
"""Log sd of single rows at which interpolation counts half: three of fio's histogram bins."""


@dataclass(frozen=True)
class Told:
    """What the neighbours of m rows say; log units, shapes (m,).

    Attributes:
        value: Interpolated values.
        weight: How much they count, 0 to 1.
        irregular: How irregular the neighbours are (`_interpolate`).
        step: How far the two nearest of them are apart.
    """

    value: Floats
    weight: Floats
    irregular: Floats
    step: Floats


@dataclass(frozen=True)
class SeriesTrend:
    """Log values of rows that share host path, session and two of three coordinates.

    Attributes:
        lines: By axis (depth, jobs, size): positions and values of every series.
        reliability: 0 to 1, how much interpolation counts between dense neighbours.
    """

    lines: tuple[dict[tuple[object, ...], tuple[Floats, Floats]], ...]
    reliability: float

    @classmethod
    def of(
        cls, where: Floats, keys: Sequence[object], values: Floats, noise_variance: float
    ) -> SeriesTrend:
        """Collect the series of n rows.

        Args:
            where: log2 of depth, jobs and request bytes, shape (n, 3).
            keys: What else tells series apart: host path and session.
            values: Log values, shape (n,).
            noise_variance: How much single rows scatter, log units squared.
        """
        lines: list[dict[tuple[object, ...], tuple[Floats, Floats]]] = []
        for axis in range(3):
            members: dict[tuple[object, ...], list[int]] = {}
            for index, name in enumerate(_names(where, keys, axis)):
                members.setdefault(name, []).append(index)
            found = {}
            for name, rows in members.items():
                x, place = np.unique(where[rows, axis], return_inverse=True)
                if len(x) > 1:
                    found[name] = x, np.bincount(place, values[rows]) / np.bincount(place)
            lines.append(found)
        return cls(tuple(lines), 1.0 / (1.0 + noise_variance / SMOOTH_SD**2))

    def at(self, where: Floats, keys: Sequence[object]) -> Told:
        """Interpolate along the axis with the nearest neighbours; zeros where there are none."""
        value, gap = np.zeros(len(where)), np.full(len(where), np.inf)
        irregular, step = np.zeros(len(where)), np.zeros(len(where))
        for axis, lines in enumerate(self.lines):
            asked: dict[tuple[object, ...], list[int]] = {}
            for index, name in enumerate(_names(where, keys, axis)):
                if name in lines:
                    asked.setdefault(name, []).append(index)
            known: list[tuple[Codes, Floats, Floats]] = []
            for name, members in asked.items():
                rows = np.array(members)
                x, y = lines[name]
                at = where[rows, axis]
                upper = np.clip(np.searchsorted(x, at, side="right"), 1, len(x) - 1)
                apart = x[upper] - x[upper - 1]
                inside = (at > x[0] + 1e-9) & (at < x[-1] - 1e-9)
                inside &= np.abs(at[:, None] - x).min(axis=1) > 1e-9  # else the row itself counts
                better = inside & (apart < gap[rows])
                if better.any():
                    known.append((rows[better], *four_points(x, y, upper[better])))
                    gap[rows[better]] = apart[better]
                    step[rows[better]] = np.abs(y[upper] - y[upper - 1])[better]
            if known:
                rows, x, y = (np.concatenate(part) for part in zip(*known, strict=True))
                value[rows], irregular[rows] = _interpolate(x, y, where[rows, axis])
        weight = self.reliability * np.minimum(1.0, DENSE_OCTAVES / gap)
        return Told(value, weight, irregular, step)


def _interpolate(x: Floats, y: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Interpolated log times, and how far they may err, log units.

    A monotone curve through times is not one through the rates N / time or bytes / time, though
    both are fair answers: half their distance, or the distance of their middle from a straight
    line if that is more, says how irregular the neighbours are.

    Args:
        x: log2 positions around each answer, shape (m, 4), as from `monotone.four_points`.
        y: Log times there, likewise.
        at: Where between the two in the middle to answer, shape (m,).
    """
    by_time = between(x, y, at)
    by_rate = at * np.log(2.0) - between(x, x * np.log(2.0) - y, at)
    middle = (by_time + by_rate) / 2
    straight = y[:, 1] + (y[:, 2] - y[:, 1]) * (at - x[:, 1]) / (x[:, 2] - x[:, 1])
    apart = np.maximum(np.abs(by_time - by_rate) / 2, np.abs(straight - middle))
    return by_time, apart


def _names(where: Floats, keys: Sequence[object], axis: int) -> list[tuple[object, ...]]:
    """What every row shares with the others of its series along one axis."""
    others = np.round(np.delete(where, axis, axis=1), 6)
    return [(key, *pair) for key, pair in zip(keys, others.tolist(), strict=True)]
