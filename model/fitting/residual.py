"""What a surface's curve, and its laws of percentiles, miss: a grid of each host path.

Every session of a path has its own grid (`model.fitting.grid`): sessions that differ stay sessions.
The reference, which a profile keeps, is their mean at each cell, weighted by how far each may err
there; where they disagree, that is part of how far the reference may err. Sessions that stand apart
count where a path has no others. Requests that the drive takes in one command, and those that are
split, have grids of their own: a split is a step, and nothing is interpolated across it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import ResidualTable
from iojoule.model.fitting import grid as between_rows
from iojoule.model.fitting.grid import (
    NEAREST_OCTAVES,
    SD_PER_OCTAVE,
    TAIL_NEAREST_OCTAVES,
    TAIL_SD_PER_OCTAVE,
    Axes,
    with_middles,
)
from iojoule.model.fitting.rows import Rows, join, stands_apart
from iojoule.model.surface import Points, TableLookup

Floats = NDArray[np.float64]
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
    sessions: Sequence[SessionRows],
    laws: Laws,
    max_transfer_bytes: float,
    *,
    finer: bool = True,
) -> dict[str, PathGrid]:
    """The grids of all paths, that with most rows first: the others differ from it at their rows.

    Args:
        sessions: All rows.
        laws: What is expected at any place.
        max_transfer_bytes: Larger requests are split.
        finer: Also keep values halfway between knots where they may err more.
    """
    members: dict[str, list[SessionRows]] = {}
    for one in sessions:
        members.setdefault(one.path, []).append(one)
    for own in members.values():
        own.sort(key=lambda one: (stands_apart(one.session), -len(one.rows), one.session))
    order = sorted(members, key=lambda path: (-sum(len(o.rows) for o in members[path]), path))
    found: dict[str, PathGrid] = {}
    for path in order:
        main = next(iter(found.values())).lookup() if found else None
        found[path] = _path_grid(
            members[path], laws, np.log2(max_transfer_bytes), main, _finer if finer else _filled
        )
    return found


def _path_grid(
    members: list[SessionRows],
    laws: Laws,
    limit: float,
    main: TableLookup | None,
    filled: Callable[[Axes, list[SessionRows], Laws, TableLookup | None], PathGrid],
) -> PathGrid:
    where = np.concatenate([one.where for one in members])
    depth, jobs = between_rows.knots(where[:, 0]), between_rows.knots(where[:, 1])
    if len(depth) > 1:
        depth = np.append(depth, depth[-1] + BEYOND_OCTAVES)
    split = where[:, 2] > limit + 1e-9
    parts: list[PathGrid] = []
    for is_split in (False, True):
        if not (split == is_split).any():
            continue
        sizes = between_rows.knots(where[split == is_split, 2])
        if split.any() and not split.all():
            edge = limit + SPLIT_OCTAVES if is_split else limit
            if np.abs(sizes - edge).min() > SPLIT_OCTAVES / 2:
                sizes = np.sort([*sizes, edge])
        masks = [(one.where[:, 2] > limit + 1e-9) == is_split for one in members]
        some = [one.take(at) for one, at in zip(members, masks, strict=True) if at.any()]
        parts.append(filled((depth, jobs, sizes), some, laws, main))
    if len(parts) == 1:
        return parts[0]
    return _joined(*parts)


def _joined(one: PathGrid, split: PathGrid) -> PathGrid:
    """Both sides of the split as one grid; a session of one side alone is the reference beyond."""
    depth, jobs = (np.union1d(one.axes[k], split.axes[k]) for k in (0, 1))
    one, split = (each.with_knots(depth, jobs) for each in (one, split))

    def beside(a: Mapping[str, Floats], b: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: np.concatenate([a[name], b[name]], axis=2) for name in one.reference}

    return PathGrid(
        (depth, jobs, np.concatenate([one.axes[2], split.axes[2]])),
        {
            name: beside(
                one.sessions.get(name, one.reference), split.sessions.get(name, split.reference)
            )
            for name in {*one.sessions, *split.sessions}
        },
        beside(one.reference, split.reference),
        np.concatenate([one.measured, split.measured], axis=2),
        _both(one.left_out, split.left_out),
    )


def _both(
    one: Mapping[str, tuple[Floats, Floats]], other: Mapping[str, tuple[Floats, Floats]]
) -> dict[str, tuple[Floats, Floats]]:
    nothing = (np.zeros(0), np.zeros(0))
    pairs = {name: (one.get(name, nothing), other.get(name, nothing)) for name in {*one, *other}}
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
    kept = [
        np.isin(each, axis) | _less_sure(fine.reference["latency_sd"], k)
        for k, (each, axis) in enumerate(zip(middles, axes, strict=True))
    ]
    at = np.ix_(*kept)

    def some(values: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: each[at] for name, each in values.items()}

    return PathGrid(
        (middles[0][kept[0]], middles[1][kept[1]], middles[2][kept[2]]),
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
    steady = [one for one in members if not stands_apart(one.session)]
    if len(steady) > 1 or len(steady) < len(members):
        # where a session has no rows, the others tell: all together between rows of any of them
        all_of = _session(_together(steady or members), place, elsewhere)
        elsewhere = {name: each.ravel() for name, each in all_of.values.items()}
    found = {one.session: _session(one, place, elsewhere) for one in members}
    told = [found[one.session] for one in steady]
    scores: dict[str, tuple[Floats, Floats]] = {}
    for session in told:
        scores = _both(scores, session.left_out)
    return PathGrid(
        axes,
        {name: session.values for name, session in found.items()},
        _reference([session.values for session in told or found.values()]),
        np.logical_or.reduce([np.zeros(place.shape, dtype=bool), *(s.measured for s in told)]),
        scores,
    )


def _together(members: list[SessionRows]) -> SessionRows:
    """Rows of several sessions as one."""
    levels = {
        name: np.concatenate([one.levels[name] for one in members]) for name in members[0].levels
    }
    return SessionRows(members[0].path, "", join([one.rows for one in members]), levels)


def _session(one: SessionRows, place: _Place, base: Mapping[str, Floats]) -> _Session:
    """Fill the grid of one session; `base` is what others miss, flat, with `_sd` where known."""
    at_cell = between_rows.places(place.axes, one.where)
    at_curve, at_ratios = place.laws(one.where, one.rows)
    none, shape = np.zeros(len(place.where)), place.shape
    values: dict[str, Floats] = {}
    scores: dict[str, tuple[Floats, Floats]] = {}
    level, seen = place.curve, np.zeros(shape, dtype=bool)
    for name, observed in one.levels.items():
        expected, at = place.curve, at_curve
        if name != "latency":
            expected = level + place.ratios[name](level)
            at = one.levels["latency"] + at_ratios[name](one.levels["latency"])
        missed = between_rows.cell_means(len(none), at_cell, observed - at)
        known, law = (expected + missed).reshape(shape), expected.reshape(shape)
        tail = name in TAILS
        rate = TAIL_SD_PER_OCTAVE if tail else SD_PER_OCTAVE
        filled = between_rows.fill(
            place.axes,
            known,
            law,
            base.get(name, none).reshape(shape),
            rate,
            base_sd=base.get(f"{name}_sd", none + np.inf).reshape(shape),
            nearest=TAIL_NEAREST_OCTAVES if tail else NEAREST_OCTAVES,
        )
        error, sd = between_rows.left_out(place.axes, known, law, rate)
        told = np.isfinite(error)
        scores[name] = np.abs(error[told]), sd[told]
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
        value = np.stack([one[name] for one in sessions])
        variance = np.stack([one[f"{name}_sd"] for one in sessions]) ** 2
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
