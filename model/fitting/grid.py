"""Between measured rows: a grid of depths, jobs and sizes, filled from the rows on it.

Along a line of the grid (two of three coordinates alike, one host path, one session) a cell lies
between two known neighbours. Three answers are fair there: a monotone curve through the times, one
through the rates (requests or bytes over time), and the physical curve with what it misses at both
neighbours interpolated. Their mean is taken (forecasts with errors of like size are best averaged:
Clemen, International Journal of Forecasting 5, 1989), held between the two neighbours in time and
in rate, so that there is no dip or bump that the rows do not show. Both bounds hold a saturating
drive: over size, time per request then lies between those of a drive bound by commands and of one
bound by bytes; over depth, between an unloaded and a saturated one.

How far the answers lie apart says how irregular the neighbours are, and with the distance to them
how far the cell may err. Cells between neighbours that were filled themselves follow; what has no
neighbours on both sides takes the physical curve, with what it misses at the nearest rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.model.fitting.monotone import between

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Axes = tuple[Floats, Floats, Floats]

SD_PER_OCTAVE = 0.03
"""Log sd of a mean an octave from the nearer neighbour; a third of the public sets fitted in part
err so much beside what their irregularity says (`model.fitting.in_part`)."""

TAIL_SD_PER_OCTAVE = 0.15
"""Likewise of a percentile beyond the median."""

FAR = 2.5
"""So many times as much where there is no neighbour on the other side."""

STEP_SD = 24.0**-0.5
"""What the curve misses may change from one neighbour's to the other's anywhere between them: sd
of a value between two bounds whose middle is likeliest (a triangular distribution), in units of
their distance."""

NOTHING_SD = 0.3
"""Log sd where a session shows nothing of a quantity that others do: assumption."""

NEAREST_OCTAVES = 0.5
"""Rows count for a cell outside by exp(-distance / this): what the curve misses of a mean at the
last depth it misses at the next."""

TAIL_NEAREST_OCTAVES = 2.0
"""Likewise of a percentile, which strays from row to row."""

KNOTS_MAX = 72
"""Positions on one axis; more are put together to quarters, halves or whole octaves."""

ROWS_MAX = 600
"""So many measured cells tell of the cells that have none on both sides."""

PASSES = 3
"""Once for every axis: cells between cells between rows."""


@dataclass(frozen=True)
class Filled:
    """A grid of log values.

    Attributes:
        axes: log2 of depth, jobs and request bytes.
        level: Log values, shape of the grid.
        sd: Log sd of each cell beside the chance of one row, likewise.
        measured: Which cells hold rows, likewise.
    """

    axes: Axes
    level: Floats
    sd: Floats
    measured: NDArray[np.bool_]


def knots(positions: Floats) -> Floats:
    """Where an axis has its knots: the measured positions, and whole octaves between them."""
    for step in (1e-6, 0.25, 0.5, 1.0):
        own = np.unique(np.round(positions / step) * step)
        if len(own) <= KNOTS_MAX:
            break
    whole = np.arange(np.ceil(own[0] - 1e-6), np.floor(own[-1] + 1e-6) + 1.0)
    away = np.abs(whole[:, None] - own).min(axis=1) > 0.02 if len(whole) else np.zeros(0, bool)
    return np.sort(np.concatenate([own, whole[away]]))


def with_middles(axis: Floats) -> Floats:
    """The knots, and one halfway between any two that lie more than half an octave apart."""
    gap = np.diff(axis)
    return np.sort(np.concatenate([axis, (axis[:-1] + gap / 2)[gap > 0.5]]))


def places(axes: Axes, where: Floats) -> Codes:
    """Flat index of the nearest cell of each of n positions, shape (n, 3)."""
    index = [np.abs(where[:, k, None] - axis).argmin(axis=1) for k, axis in enumerate(axes)]
    return np.asarray(np.ravel_multi_index(index, [len(axis) for axis in axes]))


def cell_means(size: int, place: Codes, values: Floats) -> Floats:
    """Mean of the values in each of so many cells; NaN where there are none."""
    seen = np.isfinite(values)
    count = np.bincount(place[seen], minlength=size)
    total = np.bincount(place[seen], values[seen], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def fill(
    axes: Axes,
    known: Floats,
    curve: Floats,
    base: Floats | float = 0.0,
    per_octave: float = SD_PER_OCTAVE,
    *,
    base_sd: Floats | float = np.inf,
    nearest: float = NEAREST_OCTAVES,
) -> Filled:
    """Fill a grid.

    Args:
        axes: log2 of depth, jobs and request bytes.
        known: Log values of measured cells, NaN elsewhere; shape of the grid.
        curve: The physical curve, likewise.
        base: What it is expected to miss, likewise: what other sessions or paths say.
        per_octave: Log sd an octave from the nearer neighbour.
        base_sd: How far `base` may err (log), where that is known; likewise.
        nearest: Octaves over which rows count for cells that lie between none.
    """
    measured = np.isfinite(known)
    level, variance = known.copy(), np.where(measured, 0.0, np.nan)
    for _ in range(PASSES):
        empty = ~np.isfinite(level)
        if not empty.any():
            break
        told, spread = _between_neighbours(axes, level, variance, curve, empty, per_octave)
        level = np.where(empty, told, level)
        variance = np.where(empty, spread, variance)
    empty = ~np.isfinite(level)
    if empty.any():
        missed = known - curve - base
        told, scatter, distance = _near(axes, missed, empty, nearest)
        level[empty] = (curve + base)[empty] + told
        known_to = np.broadcast_to(base_sd, empty.shape)[empty]
        variance[empty] = scatter + np.minimum(FAR * per_octave * distance, known_to) ** 2
    return Filled(axes, level, np.sqrt(variance), measured)


def left_out(
    axes: Axes, known: Floats, curve: Floats, per_octave: float = SD_PER_OCTAVE
) -> tuple[Floats, Floats]:
    """Error and log sd of every measured cell as if it had none, from its neighbours on its lines.

    Returns:
        Two arrays of the grid's shape, NaN where a cell was not measured or lies between none.
    """
    measured = np.isfinite(known)
    told, variance = _between_neighbours(
        axes, known, np.where(measured, 0.0, np.nan), curve, measured, per_octave
    )
    return known - told, np.sqrt(variance)


def _between_neighbours(
    axes: Axes,
    level: Floats,
    variance: Floats,
    curve: Floats,
    asked: NDArray[np.bool_],
    per_octave: float,
) -> tuple[Floats, Floats]:
    """Levels and variances of the asked cells from their known neighbours on each axis."""
    shape, total, weight = level.shape, np.zeros(level.shape), np.zeros(level.shape)
    nearest = np.full(shape, np.inf)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for k, axis in enumerate(axes):
        if len(axis) < 3:
            continue
        levels, variances, laws = (
            np.moveaxis(each, k, -1).reshape(-1, len(axis)) for each in (level, variance, curve)
        )
        wanted = np.moveaxis(asked, k, -1).reshape(-1, len(axis))
        found = _on_lines(axis, levels, variances, laws, wanted, per_octave)
        moved = np.moveaxis(level, k, -1).shape
        value, spread, least, most, near = (
            np.moveaxis(each.reshape(moved), -1, k) for each in found
        )
        seen = np.isfinite(value)
        share = np.where(seen, 1.0 / (spread + 1e-8), 0.0)
        total += np.where(seen, value, 0.0) * share
        weight += share
        # the nearest neighbours bind, the others as far as they leave room
        closer = seen & (near < nearest)
        first_low, first_high = np.where(closer, least, low), np.where(closer, most, high)
        other_low, other_high = np.where(closer, low, least), np.where(closer, high, most)
        other_low = np.where(np.isfinite(other_low), other_low, -np.inf)
        other_high = np.where(np.isfinite(other_high), other_high, np.inf)
        low = np.clip(other_low, first_low, first_high)
        high = np.clip(other_high, first_low, first_high)
        nearest = np.where(closer, near, nearest)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.clip(total / weight, low, high)
        return np.where(weight > 0, value, np.nan), np.where(weight > 0, 1.0 / weight, np.nan)


def _on_lines(
    x: Floats,
    level: Floats,
    variance: Floats,
    curve: Floats,
    asked: NDArray[np.bool_],
    per_octave: float,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Level, variance, bounds and distance along lines, shape (lines, cells); NaN elsewhere."""
    count, cells = level.shape
    known = np.isfinite(level)
    index = np.where(known, np.arange(cells), -1)
    edge = np.full((count, 1), -1)
    before = np.concatenate([edge, np.maximum.accumulate(index, axis=1)[:, :-1]], axis=1)
    index = np.where(known, np.arange(cells), cells)
    edge = np.full((count, 1), cells)
    after = np.concatenate(
        [np.minimum.accumulate(index[:, ::-1], axis=1)[:, ::-1][:, 1:], edge], axis=1
    )
    out = [np.full(level.shape, np.nan) for _ in range(5)]
    line, cell = np.nonzero(asked & (before >= 0) & (after < cells))
    if not len(line):
        return out[0], out[1], out[2], out[3], out[4]
    left, right = before[line, cell], after[line, cell]
    columns = np.stack([before[line, left], left, right, after[line, right]], axis=1)
    there = (columns >= 0) & (columns < cells)
    safe = np.where(there, columns, 0)
    xs = np.where(there, x[safe], np.nan)
    ys = np.where(there, level[line[:, None], safe], np.nan)
    at = x[cell]
    by_time = between(xs, ys, at)
    rates = np.log(2.0)
    by_rate = at * rates - between(xs, xs * rates - ys, at)
    t = (at - xs[:, 1]) / (xs[:, 2] - xs[:, 1])
    missed = ys[:, 1:3] - curve[line[:, None], columns[:, 1:3]]
    by_curve = curve[line, cell] + missed[:, 0] * (1 - t) + missed[:, 1] * t
    straight = ys[:, 1] * (1 - t) + ys[:, 2] * t
    rise, step = (at - xs[:, 1]) * rates, (xs[:, 2] - at) * rates
    low, high = np.minimum(ys[:, 1], ys[:, 2]), np.maximum(ys[:, 1], ys[:, 2])
    ends = ys[:, 1] + rise, ys[:, 2] - step  # what either neighbour's rate would make of it
    low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
    low, high = np.minimum(low, straight), np.maximum(high, straight)
    answers = np.clip(np.stack([by_time, by_rate, by_curve]), low, high)
    value = answers.mean(axis=0)
    apart = np.hypot(answers.std(axis=0), straight - value)
    near = np.minimum(at - xs[:, 1], xs[:, 2] - at)
    shared = variance[line, left] * (1 - t) + variance[line, right] * t
    jump = STEP_SD * (missed[:, 1] - missed[:, 0])
    spread = apart**2 + jump**2 + (per_octave * near) ** 2 + shared
    for place, values in enumerate((value, spread, low, high, near)):
        out[place][line, cell] = values
    return out[0], out[1], out[2], out[3], out[4]


def _near(
    axes: Axes, missed: Floats, asked: NDArray[np.bool_], nearest: float
) -> tuple[Floats, Floats, Floats]:
    """What the curve misses at the asked cells by the rows near them, their scatter and distance.

    Depth and jobs count together as well: requests in flight are their product.
    """
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    grid = np.concatenate([grid, grid[..., :1] + grid[..., 1:2]], axis=-1)
    seen = np.isfinite(missed)
    rows, values = grid[seen], missed[seen]
    if len(values) == 0:
        none = np.zeros(int(asked.sum()))
        return none, none + NOTHING_SD**2, none
    if len(values) > ROWS_MAX:
        some = np.linspace(0, len(values) - 1, ROWS_MAX).astype(int)
        rows, values = rows[some], values[some]
    cells = grid[asked]
    told, scatter, far = np.empty(len(cells)), np.empty(len(cells)), np.empty(len(cells))
    for start in range(0, len(cells), 2048):
        part = cells[start : start + 2048]
        squares = ((part[:, None, :] - rows[None, :, :]) ** 2).sum(axis=-1)
        distance = np.sqrt(squares)
        closest = distance.min(axis=1, keepdims=True)
        weight = np.exp(-(distance - closest) / nearest)
        weight /= weight.sum(axis=1, keepdims=True)
        mean = weight @ values
        told[start : start + 2048] = mean
        scatter[start : start + 2048] = (weight * (values - mean[:, None]) ** 2).sum(axis=1)
        far[start : start + 2048] = closest[:, 0]
    return told, scatter, far
