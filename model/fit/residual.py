"""What a surface's curve, and its laws of percentiles, miss: a grid of each host path.

Every session of a path has its own grid: sessions that differ stay sessions.
The reference, which a profile keeps, is their mean at each cell, weighted by how far each may err
there; where they disagree, that is part of how far the reference may err. Sessions that stand apart
count where a path has no others. Requests that the drive takes in one command, and those that are
split, have grids of their own: a split is a step, and nothing is interpolated across it.

Between measured rows: a grid of depths, jobs and sizes, filled from the rows on it.

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

Monotone cubic interpolation (PCHIP) between many series at once.

`scipy.interpolate.PchipInterpolator` makes one curve a series, which takes a hundred times as long
as asking it; a fit of 10^4 rows asks tens of thousands of short series. Between two neighbours the
curve depends on them and on one more on each side, so all answers are worked out together from
four points each. Slopes as in F. N. Fritsch and J. Butland, SIAM J. Sci. Stat. Comput. 5 (1984),
three-point ones at the ends, kept monotone as in C. Moler, Numerical Computing with MATLAB, 2004;
the same numbers as SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import ResidualTable
from iojoule.model.evaluate.bands import Codes, Floats
from iojoule.model.evaluate.surface import Points, TableLookup
from iojoule.model.fit.rows import Rows, join, stands_apart


def four_points(x: Floats, y: Floats, upper: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Positions and values around each interval, NaN beyond the ends of the series.

    Args:
        x: Positions of a series, increasing, at least two.
        y: Its values.
        upper: Of each of m answers the first position above it, 1 to len(x) - 1.

    Returns:
        Two arrays of shape (m, 4): before the interval, its two ends, after it.
    """
    nothing = [np.nan]
    place = upper[:, None] + np.arange(-1, 3)
    return np.concatenate([nothing, x, nothing])[place], np.concatenate([nothing, y, nothing])[
        place
    ]


def between(x: Floats, y: Floats, at: Floats) -> Floats:
    """The curve's value between the two middle points of each row.

    Args:
        x: Positions, shape (m, 4), as from `four_points`.
        y: Values, likewise.
        at: Where, shape (m,).
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        steps = np.diff(x, axis=1)
        slopes = np.diff(y, axis=1) / steps
        left = _slope(steps[:, 0], steps[:, 1], slopes[:, 0], slopes[:, 1])
        right = _slope(steps[:, 1], steps[:, 2], slopes[:, 1], slopes[:, 2])
        left = np.where(
            np.isnan(left), _end(steps[:, 1], steps[:, 2], slopes[:, 1], slopes[:, 2]), left
        )
        right = np.where(
            np.isnan(right), _end(steps[:, 1], steps[:, 0], slopes[:, 1], slopes[:, 0]), right
        )
    h = steps[:, 1]
    t = (at - x[:, 1]) / h
    return np.asarray(
        (1 + 2 * t) * (1 - t) ** 2 * y[:, 1]
        + t * (1 - t) ** 2 * h * left
        + t**2 * (3 - 2 * t) * y[:, 2]
        + t**2 * (t - 1) * h * right
    )


def _slope(h0: Floats, h1: Floats, m0: Floats, m1: Floats) -> Floats:
    """Between two intervals: a weighted harmonic mean of their slopes, 0 where they turn."""
    w0, w1 = 2 * h1 + h0, h1 + 2 * h0
    mean = (w0 + w1) / (w0 / m0 + w1 / m1)
    return np.where(m0 * m1 <= 0, 0.0, mean)


def _end(h0: Floats, h1: Floats, m0: Floats, m1: Floats) -> Floats:
    """At the end of a series, from its last two intervals; a line where there is but one."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    slope = np.where(np.sign(slope) != np.sign(m0), 0.0, slope)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3 * np.abs(m0))
    slope = np.where(steep, 3 * m0, slope)
    return np.where(np.isnan(m1), m0, slope)


Axes = tuple[Floats, Floats, Floats]

SD_PER_OCTAVE = 0.03
"""Log sd of a mean an octave from the nearer neighbour; a third of the public sets fitted in part
err so much beside what their irregularity says (`model.fit.in_part`)."""

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


def nearest_cells(axes: Axes, where: Floats) -> Codes:
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
        predicted, spread = _between_neighbours(axes, level, variance, curve, empty, per_octave)
        level = np.where(empty, predicted, level)
        variance = np.where(empty, spread, variance)
    empty = ~np.isfinite(level)
    if empty.any():
        missed = known - curve - base
        predicted, scatter, distance = _near(axes, missed, empty, nearest)
        level[empty] = (curve + base)[empty] + predicted
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
    predicted, variance = _between_neighbours(
        axes, known, np.where(measured, 0.0, np.nan), curve, measured, per_octave
    )
    return known - predicted, np.sqrt(variance)


def _between_neighbours(
    axes: Axes,
    level: Floats,
    variance: Floats,
    curve: Floats,
    wanted_cells: NDArray[np.bool_],
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
        wanted = np.moveaxis(wanted_cells, k, -1).reshape(-1, len(axis))
        interpolated = _on_lines(axis, levels, variances, laws, wanted, per_octave)
        moved = np.moveaxis(level, k, -1).shape
        value, spread, least, most, near = (
            np.moveaxis(each.reshape(moved), -1, k) for each in interpolated
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
    wanted_cells: NDArray[np.bool_],
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
    line, cell = np.nonzero(wanted_cells & (before >= 0) & (after < cells))
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
    candidates = np.clip(np.stack([by_time, by_rate, by_curve]), low, high)
    value = candidates.mean(axis=0)
    apart = np.hypot(candidates.std(axis=0), straight - value)
    near = np.minimum(at - xs[:, 1], xs[:, 2] - at)
    shared = variance[line, left] * (1 - t) + variance[line, right] * t
    jump = STEP_SD * (missed[:, 1] - missed[:, 0])
    spread = apart**2 + jump**2 + (per_octave * near) ** 2 + shared
    for place, values in enumerate((value, spread, low, high, near)):
        out[place][line, cell] = values
    return out[0], out[1], out[2], out[3], out[4]


def _near(
    axes: Axes, missed: Floats, wanted_cells: NDArray[np.bool_], nearest: float
) -> tuple[Floats, Floats, Floats]:
    """What the curve misses at the asked cells by the rows near them, their scatter and distance.

    Depth and jobs count together as well: requests in flight are their product.
    """
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    grid = np.concatenate([grid, grid[..., :1] + grid[..., 1:2]], axis=-1)
    seen = np.isfinite(missed)
    rows, values = grid[seen], missed[seen]
    if len(values) == 0:
        none = np.zeros(int(wanted_cells.sum()))
        return none, none + NOTHING_SD**2, none
    if len(values) > ROWS_MAX:
        some = np.linspace(0, len(values) - 1, ROWS_MAX).astype(int)
        rows, values = rows[some], values[some]
    cells = grid[wanted_cells]
    predicted, scatter, far = np.empty(len(cells)), np.empty(len(cells)), np.empty(len(cells))
    for start in range(0, len(cells), 2048):
        part = cells[start : start + 2048]
        squares = ((part[:, None, :] - rows[None, :, :]) ** 2).sum(axis=-1)
        distance = np.sqrt(squares)
        closest = distance.min(axis=1, keepdims=True)
        weight = np.exp(-(distance - closest) / nearest)
        weight /= weight.sum(axis=1, keepdims=True)
        mean = weight @ values
        predicted[start : start + 2048] = mean
        scatter[start : start + 2048] = (weight * (values - mean[:, None]) ** 2).sum(axis=1)
        far[start : start + 2048] = closest[:, 0]
    return predicted, scatter, far


Bools = NDArray[np.bool_]

Ratio = Callable[[Floats], Floats]
"""Log of a percentile over the mean latency by its law, from log mean latency."""

Laws = Callable[[Floats, Rows], tuple[Floats, dict[str, Ratio]]]
"""Log mean latency by the curve, and the laws of the percentiles, at positions of shape (n, 3) on
the host path of some rows."""

SAME_SD = 0.02
"""Log sd at which two sessions of one place count nearly alike: what single rows scatter."""

TAILS = ("p99", "p999")
"""Percentiles that stray more than the mean does."""

LESS_SURE_SD = 0.03
"""Halfway between two knots a table keeps a value of its own where it may err by so much more (log
sd) than both: where what the laws miss changes from one to the next, and may do so anywhere."""

BEYOND_OCTAVES = 1.0
"""A table over depth reaches so far beyond the last one measured, and holds from there on."""

SPLIT_OCTAVES = 1e-3
"""The first knot of split requests lies so far above the largest that is not."""


@dataclass(frozen=True)
class SessionRows:
    """The rows of one host path and session, with their log latency and percentiles."""

    path: str
    session: str
    rows: Rows
    levels: Mapping[str, Floats]

    @property
    def where(self) -> Floats:
        """log2 of depth, jobs and request bytes, shape (n, 3)."""
        return coordinates(self.rows)

    def take(self, mask: Bools) -> SessionRows:
        """Some of the rows."""
        levels = {name: values[mask] for name, values in self.levels.items()}
        return SessionRows(self.path, self.session, self.rows.take(mask), levels)


@dataclass(frozen=True)
class PathGrid:
    """What the laws miss on one host path.

    Attributes:
        axes: log2 of depth, jobs and request bytes.
        sessions: Values by name (`latency`, percentiles, and their `_sd`) of every session, each
            of the grid's shape.
        reference: Likewise of the path.
        measured: Where steady sessions have rows.
        left_out: By name, error and log sd of the rows of steady sessions, each from the others on
            its lines; a row that lies between none is not among them.
    """

    axes: Axes
    sessions: dict[str, dict[str, Floats]]
    reference: dict[str, Floats]
    measured: Bools
    left_out: dict[str, tuple[Floats, Floats]]

    def with_knots(self, depth: Floats, jobs: Floats) -> PathGrid:
        """The same surface with further knots of depth and jobs, which hold nothing measured."""
        along_depth, along_jobs = _weights(self.axes[0], depth), _weights(self.axes[1], jobs)

        def at(values: Mapping[str, Floats]) -> dict[str, Floats]:
            return {
                name: np.einsum("ai,bj,abk->ijk", along_depth, along_jobs, each)
                for name, each in values.items()
            }

        measured = np.zeros((len(depth), len(jobs), len(self.axes[2])), dtype=bool)
        measured[np.ix_(np.isin(depth, self.axes[0]), np.isin(jobs, self.axes[1]))] = self.measured
        return PathGrid(
            (depth, jobs, self.axes[2]),
            {name: at(own) for name, own in self.sessions.items()},
            at(self.reference),
            measured,
            self.left_out,
        )

    def lookup(self, session: str | None = None) -> TableLookup:
        """Interpolate in a session's grid; in the reference where it has none."""
        values = self.sessions.get(session or "", self.reference)
        return TableLookup(
            ResidualTable.model_construct(
                log2_queue_depth=self.axes[0],
                log2_jobs=self.axes[1],
                log2_request_bytes=self.axes[2],
                paths=[""],
                values={name: each.ravel() for name, each in values.items()},
            )
        )


def _weights(knots: Floats, axis: Floats) -> Floats:
    """How much each knot counts at each position of an axis, shape (knots, positions)."""
    return np.stack([np.interp(axis, knots, unit) for unit in np.eye(len(knots))])


def coordinates(rows: Rows) -> Floats:
    """log2 of depth, jobs and request bytes, shape (n, 3)."""
    return np.stack(
        [np.log2(rows.queue_depth), np.log2(rows.jobs), np.log2(rows.request_bytes)], axis=1
    )


def path_grids(
    sessions: Sequence[SessionRows], laws: Laws, max_transfer_bytes: float, *, finer: bool = True
) -> dict[str, PathGrid]:
    """The grids of all paths, that with most rows first: the others differ from it at their rows.

    Args:
        sessions: All rows.
        laws: What is expected at any place.
        max_transfer_bytes: Larger requests are split.
        finer: Also keep values halfway between knots where they may err more.
    """
    members: dict[str, list[SessionRows]] = {}
    for session in sessions:
        members.setdefault(session.path, []).append(session)
    for own in members.values():
        own.sort(key=lambda path: (stands_apart(path.session), -len(path.rows), path.session))
    order = sorted(members, key=lambda path: (-sum(len(o.rows) for o in members[path]), path))
    grids: dict[str, PathGrid] = {}
    for path in order:
        main = next(iter(grids.values())).lookup() if grids else None
        grids[path] = _path_grid(
            members[path], laws, np.log2(max_transfer_bytes), main, _finer if finer else _filled
        )
    return grids


def _path_grid(
    members: list[SessionRows],
    laws: Laws,
    limit: float,
    main: TableLookup | None,
    filled: Callable[[Axes, list[SessionRows], Laws, TableLookup | None], PathGrid],
) -> PathGrid:
    where = np.concatenate([session.where for session in members])
    depth, jobs = knots(where[:, 0]), knots(where[:, 1])
    if len(depth) > 1:
        depth = np.append(depth, depth[-1] + BEYOND_OCTAVES)
    split = where[:, 2] > limit + 1e-9
    parts: list[PathGrid] = []
    for is_split in (False, True):
        if not (split == is_split).any():
            continue
        sizes = knots(where[split == is_split, 2])
        if split.any() and not split.all():
            edge = limit + SPLIT_OCTAVES if is_split else limit
            if np.abs(sizes - edge).min() > SPLIT_OCTAVES / 2:
                sizes = np.sort([*sizes, edge])
        masks = [(session.where[:, 2] > limit + 1e-9) == is_split for session in members]
        some = [session.take(at) for session, at in zip(members, masks, strict=True) if at.any()]
        parts.append(filled((depth, jobs, sizes), some, laws, main))
    if len(parts) == 1:
        return parts[0]
    return _joined(*parts)


def _joined(grid: PathGrid, split: PathGrid) -> PathGrid:
    """Both sides of the split as one grid; a session of one side alone is the reference beyond."""
    depth, jobs = (np.union1d(grid.axes[k], split.axes[k]) for k in (0, 1))
    grid, split = (each.with_knots(depth, jobs) for each in (grid, split))

    def beside(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: np.concatenate([a[name], b[name]], axis=2) for name in grid.reference}

    return PathGrid(
        (depth, jobs, np.concatenate([grid.axes[2], split.axes[2]])),
        {
            name: beside(
                grid.sessions.get(name, grid.reference), split.sessions.get(name, split.reference)
            )
            for name in {*grid.sessions, *split.sessions}
        },
        beside(grid.reference, split.reference),
        np.concatenate([grid.measured, split.measured], axis=2),
        _both(grid.left_out, split.left_out),
    )


def _both(
    first: Mapping[str, tuple[Floats, Floats]], other: Mapping[str, tuple[Floats, Floats]]
) -> dict[str, tuple[Floats, Floats]]:
    nothing = (np.zeros(0), np.zeros(0))
    pairs = {
        name: (first.get(name, nothing), other.get(name, nothing)) for name in {*first, *other}
    }
    return {
        name: (np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]))
        for name, (a, b) in sorted(pairs.items())
    }


def _finer(
    axes: Axes, members: list[SessionRows], laws: Laws, main: TableLookup | None
) -> PathGrid:
    """One path on one side of the split, finer where a value between two knots may err more."""
    middles = with_middles(axes[0]), with_middles(axes[1]), with_middles(axes[2])
    fine = _filled(middles, members, laws, main)
    chosen = [
        np.isin(each, axis) | _less_sure(fine.reference["latency_sd"], k)
        for k, (each, axis) in enumerate(zip(middles, axes, strict=True))
    ]
    at = np.ix_(*chosen)

    def some(values: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: each[at] for name, each in values.items()}

    return PathGrid(
        (middles[0][chosen[0]], middles[1][chosen[1]], middles[2][chosen[2]]),
        {name: some(own) for name, own in fine.sessions.items()},
        some(fine.reference),
        fine.measured[at],
        fine.left_out,
    )


def _less_sure(sd: Floats, axis: int) -> Bools:
    """Positions on an axis where some value may err more than its neighbours on both sides."""
    along = np.moveaxis(sd, axis, 0).reshape(sd.shape[axis], -1)
    more = np.zeros(len(along), dtype=bool)
    rise = along[1:-1] - (along[:-2] + along[2:]) / 2
    more[1:-1] = (rise > LESS_SURE_SD).any(axis=1)
    return more


@dataclass(frozen=True)
class _Place:
    """The grid of one path, and what the laws say there."""

    axes: Axes
    where: Floats
    curve: Floats
    ratios: dict[str, Ratio]
    laws: Laws

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


@dataclass(frozen=True)
class _Session:
    """What the laws miss in one session, where it has rows, and its left-out rows."""

    values: dict[str, Floats]
    measured: Bools
    left_out: dict[str, tuple[Floats, Floats]]


def _filled(
    axes: Axes, members: list[SessionRows], laws: Laws, main: TableLookup | None
) -> PathGrid:
    """The grids of one path's sessions on some axes."""
    where = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    place = _Place(axes, where, *laws(where, members[0].rows), laws)
    base = main(_points(where), np.zeros(len(where), dtype=np.intp)) if main else {}
    elsewhere = {name: each for name, each in base.items() if not name.endswith("_sd")}
    steady = [session for session in members if not stands_apart(session.session)]
    if len(steady) > 1 or len(steady) < len(members):
        # where a session has no rows, the others tell: all together between rows of any of them
        all_of = _session(_together(steady or members), place, elsewhere)
        elsewhere = {name: each.ravel() for name, each in all_of.values.items()}
    filled_sessions = {session.session: _session(session, place, elsewhere) for session in members}
    grids = [filled_sessions[session.session] for session in steady]
    scores: dict[str, tuple[Floats, Floats]] = {}
    for session in grids:
        scores = _both(scores, session.left_out)
    return PathGrid(
        axes,
        {name: session.values for name, session in filled_sessions.items()},
        _reference([session.values for session in grids or filled_sessions.values()]),
        np.logical_or.reduce([np.zeros(place.shape, dtype=bool), *(s.measured for s in grids)]),
        scores,
    )


def _together(members: list[SessionRows]) -> SessionRows:
    """Rows of several sessions as one."""
    levels = {
        name: np.concatenate([session.levels[name] for session in members])
        for name in members[0].levels
    }
    return SessionRows(members[0].path, "", join([session.rows for session in members]), levels)


def _session(session: SessionRows, place: _Place, base: Mapping[str, Floats]) -> _Session:
    """Fill the grid of one session; `base` is what others miss, flat, with `_sd` where known."""
    at_cell = nearest_cells(place.axes, session.where)
    at_curve, at_ratios = place.laws(session.where, session.rows)
    none, shape = np.zeros(len(place.where)), place.shape
    values: dict[str, Floats] = {}
    scores: dict[str, tuple[Floats, Floats]] = {}
    level, seen = place.curve, np.zeros(shape, dtype=bool)
    for name, observed in session.levels.items():
        expected, at = place.curve, at_curve
        if name != "latency":
            expected = level + place.ratios[name](level)
            at = session.levels["latency"] + at_ratios[name](session.levels["latency"])
        missed = cell_means(len(none), at_cell, observed - at)
        known, law = (expected + missed).reshape(shape), expected.reshape(shape)
        tail = name in TAILS
        rate = TAIL_SD_PER_OCTAVE if tail else SD_PER_OCTAVE
        filled = fill(
            place.axes,
            known,
            law,
            base.get(name, none).reshape(shape),
            rate,
            base_sd=base.get(f"{name}_sd", none + np.inf).reshape(shape),
            nearest=TAIL_NEAREST_OCTAVES if tail else NEAREST_OCTAVES,
        )
        error, sd = left_out(place.axes, known, law, rate)
        is_known = np.isfinite(error)
        scores[name] = np.abs(error[is_known]), sd[is_known]
        values[name] = filled.level - law
        values[f"{name}_sd"] = filled.sd
        if name == "latency":
            level, seen = filled.level.ravel(), filled.measured
    return _Session(values, seen, scores)


def _reference(sessions: list[dict[str, Floats]]) -> dict[str, Floats]:
    """The mean of sessions at every cell, and how far it may err."""
    if len(sessions) == 1:
        return sessions[0]
    out: dict[str, Floats] = {}
    for name in (name for name in sessions[0] if not name.endswith("_sd")):
        value = np.stack([session[name] for session in sessions])
        variance = np.stack([session[f"{name}_sd"] for session in sessions]) ** 2
        weight = 1.0 / (variance + SAME_SD**2)
        weight /= weight.sum(axis=0)
        mean = (weight * value).sum(axis=0)
        apart = (weight * (value - mean) ** 2).sum(axis=0)
        out[name] = mean
        out[f"{name}_sd"] = np.sqrt((weight * variance).sum(axis=0) + apart)
    return out


def _points(where: Floats) -> Points:
    """Positions as a lookup takes them; nothing else is asked of them."""
    nothing = np.zeros(len(where))
    return Points(
        log_requests=nothing,
        commands=nothing,
        log2_bytes=nothing,
        log2_request=where[:, 2],
        log2_depth=where[:, 0],
        log2_jobs=where[:, 1],
        log_cores=nothing,
        added_latency_ns=nothing,
        core_ns=nothing,
    )
