"""Fitting a performance surface: the physical curve first, then what it misses at the rows.

The curve is fitted in log latency by robust least squares. Knots (one a command size) are held
near two physical shapes, unloaded latency = a + bytes / b and capacity = min(Imax, B / bytes),
so that a size with few rows borrows from the others. A measuring session may shift unloaded
latency, core time and sharpness a little (much, where it stands apart); the profile
keeps the reference, which is no shift. What the curve misses is kept on a grid of every host path
and session, filled between its rows (`model.fit.residual`): inside what was measured the rows
answer, beyond it the curve.

The least-squares vector of a surface: what it holds, where it starts, what pulls it back.

Moves a least-squares solution onto the optimum itself, so that every machine fits the same.

A trust-region solver stops when a step gains little. Where an optimum is flat, that is up to 1e-4
away from it, in a direction that the rounding of the machine's linear algebra decides. Here
the iteration goes on until the step itself is nothing.

Where a surface's curve has its parameters: sizes of a command, as log2 of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.optimize import least_squares

from iojoule.datasets.profile import Tail
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.performance import WAKEUP_EXPONENT
from iojoule.model.evaluate.surface import (
    UNALIGNED,
    CurveTerms,
    Knots,
    Points,
    evaluate_curve,
    is_unaligned,
    log_smooth_max,
    log_tail_ratio,
    split_commands,
)
from iojoule.model.fit.residual import PathGrid, SessionRows, path_grids
from iojoule.model.fit.rows import PERCENTILES, Rows, sample, stands_apart
from iojoule.model.fit.tails import central_differences, fit_tail

PathKey = tuple[str, str, bool]


@dataclass(frozen=True)
class Priors:
    """Centres and log standard deviations of what data may not identify.

    Latencies in ns, rates in operations and bytes per second; sd in log units. `physical_sd`
    belongs to the four rates and latencies above it, `knot_sd` and `slope_sd` to the knots of
    unloaded latency, capacity and sharpness, `session_sd` to a session's unloaded latency, core
    time and sharpness; a session that stands apart has `apart_factor` times as much.
    `knots` are sizes (log2 bytes) at which the curve is wanted whether or not there are rows.
    """

    unloaded_ns: float = 60_000.0
    transfer_bytes_per_second: float = 3.2e9
    operations_per_second: float = 8e5
    bytes_per_second: float = 3.2e9
    physical_sd: tuple[float, float, float, float] = (1.5, 0.7, 1.0, 0.5)
    sharpness: float = 1.8
    sharpness_sd: float = 0.4
    host_sharpness: float = 6.0
    host_sharpness_sd: float = 0.6
    knot_sd: tuple[float, float, float] = (0.5, 0.3, 0.3)
    slope_sd: tuple[float, float] = (0.15, 0.3)
    session_sd: tuple[float, float, float] = (0.08, 0.056, 0.12)
    apart_factor: float = 5.0
    access_unit_bytes: int = 4096
    knots: tuple[float, ...] = ()


@dataclass(frozen=True)
class PathPrior:
    """What a host path is expected to cost: added latency, core time and wake-up, ns; log sd."""

    added_latency_ns: float
    core_time_ns: float
    wakeup_ns: float
    log_sd: float


def physical_unloaded(physical: Floats, size: Floats) -> Floats:
    """log(a + bytes / b), ns."""
    return np.asarray(np.log(np.exp(physical[..., 0:1]) + size / np.exp(physical[..., 1:2])))


def physical_capacity(physical: Floats, size: Floats) -> Floats:
    """Log min(Imax, B / bytes), smooth, commands per ns."""
    return -log_smooth_max(-physical[..., 2:3], np.log(size) - physical[..., 3:4], 4.0)


class Layout:
    """Names the slices of the vector and knows its start and its penalties.

    Slices: physical (4), log_k (2: drive, host), unloaded, capacity and sharpness (a knot each),
    added, core and wakeup (a path each), scheduler (2 each), session (3 rows).
    """

    def __init__(
        self,
        priors: Priors,
        knots: Floats,
        paths: list[PathPrior],
        schedulers: list[tuple[float, float]],
        apart: list[bool],
    ) -> None:
        self.priors = priors
        self.size = np.exp2(knots)
        self.step = np.sqrt(np.maximum(np.diff(knots), 0.25))
        self.path_sd = np.array([path.log_sd for path in paths])
        self.session_sd = np.outer(
            priors.session_sd, [priors.apart_factor if flag else 1.0 for flag in apart]
        ).ravel()
        physical = np.log(
            [
                priors.unloaded_ns,
                priors.transfer_bytes_per_second * 1e-9,
                priors.operations_per_second * 1e-9,
                priors.bytes_per_second * 1e-9,
            ]
        )
        parts = {
            "physical": physical,
            "log_k": np.log([priors.sharpness, priors.host_sharpness]),
            "unloaded": physical_unloaded(physical, self.size),
            "capacity": physical_capacity(physical, self.size),
            "sharpness": np.full(len(knots), np.log(priors.sharpness)),
            "added": np.log([path.added_latency_ns for path in paths]),
            "core": np.log([path.core_time_ns for path in paths]),
            "wakeup": np.log([path.wakeup_ns for path in paths]),
            "scheduler": np.log(np.maximum(np.array(schedulers).reshape(-1), 1.0)),
            "session": np.zeros(self.session_sd.size),
        }
        self.slices: dict[str, slice] = {}
        position = 0
        for name, part in parts.items():
            self.slices[name] = slice(position, position + part.size)
            position += part.size
        self.start: Floats = np.concatenate(list(parts.values()))

    def part(self, vector: Floats, name: str) -> Floats:
        """One named part of a vector, or of each of several, (..., parameters)."""
        return vector[..., self.slices[name]]

    def penalties(self, vector: Floats) -> Floats:
        """Distance of vectors, (..., parameters), from the priors, in standard deviations."""
        priors = self.priors
        physical = self.part(vector, "physical")
        unloaded = self.part(vector, "unloaded") - physical_unloaded(physical, self.size)
        capacity = self.part(vector, "capacity") - physical_capacity(physical, self.size)
        sharpness = self.part(vector, "sharpness") - self.part(vector, "log_k")[..., 0:1]
        moved = vector - self.start
        k_sd = np.array([priors.sharpness_sd, priors.host_sharpness_sd])
        return np.concatenate(
            [
                self.part(moved, "physical") / np.array(priors.physical_sd),
                self.part(moved, "log_k") / k_sd,
                unloaded / priors.knot_sd[0],
                capacity / priors.knot_sd[1],
                sharpness / priors.knot_sd[2],
                np.diff(capacity) / (priors.slope_sd[0] * self.step),
                np.diff(sharpness) / (priors.slope_sd[1] * self.step),
                self.part(moved, "added") / self.path_sd,
                self.part(moved, "core") / self.path_sd,
                self.part(moved, "wakeup") / self.path_sd,
                self.part(moved, "scheduler") / 0.6,
                self.part(moved, "session") / self.session_sd,
            ],
            axis=-1,
        )


STEP = 1e-8
"""Done when no parameter moves by more: some times what rounding leaves, a tenth of what profiles
keep."""

STEPS_MAX = 150
MEMORY = 15
"""Steps that the extrapolation looks back on."""

RANK = 1e-10
"""Directions of past steps that are shorter than this share of the longest are rounding."""

ROUNDING = 1e-9
"""Costs closer than this are the same."""


def polish(loss: Callable[[Floats], Floats], vector: Floats, f_scale: float) -> Floats:
    """Minimise the soft-L1 cost of `loss` from nearby, to eight digits.

    The fixed point of reweighted Gauss-Newton steps, found with Anderson's extrapolation (D. G.
    Anderson, J. ACM 12(4), 1965), which needs no values of the cost: those are flat to half of the
    digits around an optimum. What does not converge, or ends higher, is returned as it came.

    Args:
        loss: Residuals of parameter vectors, in standard deviations: from (..., parameters) to
            (..., residuals).
        vector: Where a solver stopped.
        f_scale: Residual at which squares become lines, as in `scipy.optimize.least_squares`.
    """
    at = vector
    visited: list[Floats] = []
    steps: list[Floats] = []
    for _ in range(STEPS_MAX):
        step = _gauss_newton_step(loss, at, f_scale)
        if step is None:
            break
        visited = [*visited, at][-MEMORY:]
        steps = [*steps, step][-MEMORY:]
        at = at + step
        if np.abs(step).max() < STEP:
            lower = _cost(loss, at, f_scale) <= _cost(loss, vector, f_scale) * (1.0 + ROUNDING)
            return at if lower else vector
        if len(steps) > 1:
            moved = np.diff(np.array(visited), axis=0).T
            changed = np.diff(np.array(steps), axis=0).T
            at = at - (moved + changed) @ np.linalg.lstsq(changed, step, rcond=RANK)[0]
    return vector


def _gauss_newton_step(
    loss: Callable[[Floats], Floats], at: Floats, f_scale: float
) -> Floats | None:
    residual, slopes = loss(at), jacobian(loss, at)
    if not (np.isfinite(residual).all() and np.isfinite(slopes).all()):
        return None
    weight = 1.0 / np.sqrt(1.0 + (residual / f_scale) ** 2)  # derivative of soft L1
    weighted = slopes * weight[:, None]
    step = np.linalg.lstsq(weighted.T @ slopes, -weighted.T @ residual, rcond=None)[0]
    return np.asarray(step, dtype=np.float64)


def jacobian(loss: Callable[[Floats], Floats], at: Floats) -> Floats:
    """Central differences.

    Args:
        loss: As in `polish`; asked for all vectors at once.
        at: The parameters, shape (p,).

    Returns:
        Shape (residuals, p).
    """
    # in a row of memory each, as the solver's products of matrices want them
    return np.ascontiguousarray(central_differences(loss, at).T)


def _cost(loss: Callable[[Floats], Floats], at: Floats, f_scale: float) -> float:
    return float(np.sum(np.sqrt(1.0 + (loss(at) / f_scale) ** 2) - 1.0))


LARGEST_COMMAND_BYTES = 1 << 20
"""Where no limit of one command is known, a surface of few figures ends here."""


def knot_positions(log2_bytes: Floats, wanted: tuple[float, ...] = ()) -> Floats:
    """One knot for every octave near which there are rows, else the rows' own sizes; and wanted."""
    octaves = np.unique(np.round(log2_bytes))
    near = [np.abs(log2_bytes - octave).min() < 0.25 for octave in octaves]
    own = octaves[near] if any(near) else np.unique(log2_bytes)
    return np.union1d(own, wanted)


def with_ends(knots: Floats, access_unit_bytes: float, max_transfer_bytes: float) -> Floats:
    """Knots with the smallest and the largest command added.

    Where a surface rests on a few published figures, the physical shapes carry it from one end to
    the other: below the smallest size known, commands a second are not held at that size's.
    """
    least = np.log2(access_unit_bytes)
    most = np.log2(min(max_transfer_bytes, LARGEST_COMMAND_BYTES))
    ends = [end for end in (least, most) if np.abs(knots - end).min() >= 0.25]
    return np.sort(np.append(knots, ends))


BUSY_SD = 0.25
"""fio's CPU columns and the cost of a request agree within about a quarter (log)."""

CURVE_ROWS = 800
"""Rows that the curve and the laws of percentiles are fitted on: twenty for each of about forty
parameters. Residuals are learned from all."""

REFIT_ROWS = 300
"""As above where a whole depth or size is left out of more than `CURVE_ROWS` rows."""

FEWEST_PERCENTILES = 2
"""With fewer rows of a percentile its law stays that of other drives."""

F_SCALE = 3.0
"""Residuals beyond so many standard deviations count by their size, not by its square."""


@dataclass(frozen=True)
class Settings:
    """What a fit assumes.

    Attributes:
        path_priors: For every host path; those without rows keep their prior.
        scheduler_priors: Added latency and core time (ns) by scheduler other than none.
        host_cores: Cores of the reference host.
        max_transfer_bytes: Larger requests are split.
        priors: What to assume where the data are silent.
        known_paths: Whose costs another surface has told: they are as in `path_priors`.
        known_schedulers: Likewise.
        host_sharpness: Of the host's bend, where another surface has told it.
    """

    path_priors: dict[PathKey, PathPrior]
    scheduler_priors: dict[str, tuple[float, float]]
    host_cores: int
    max_transfer_bytes: float
    priors: Priors
    known_paths: frozenset[PathKey] = frozenset()
    known_schedulers: frozenset[str] = frozenset()
    host_sharpness: float | None = None


@dataclass
class FittedSurface:
    """A fitted surface that can still see sessions; `evaluate` is its prediction.

    Attributes:
        settings: What the fit assumed.
        knots: The curve.
        paths: Added latency, core time and wake-up by host path, ns.
        schedulers: Added latency and core time by scheduler, ns.
        sessions: Log factors of unloaded latency, core time and sharpness by session.
        vector: The least-squares solution, to start the next one from.
        tails: Laws of the percentiles.
        grids: What the curve misses on each host path, the path with most rows first; none where
            nothing is learned from the rows.
    """

    settings: Settings
    knots: Knots
    paths: dict[PathKey, tuple[float, float, float]]
    schedulers: dict[str, tuple[float, float]]
    sessions: dict[str, Floats]
    vector: Floats
    tails: dict[str, Tail] = field(default_factory=dict)
    grids: dict[str, PathGrid] = field(default_factory=dict)

    def curve(self, rows: Rows) -> tuple[Points, CurveTerms]:
        """Evaluate the curve alone, in each row's session."""
        cost = np.array([self.paths[path] for path in rows.path()])
        extra = np.array([self.schedulers.get(str(name), (0.0, 0.0)) for name in rows.scheduler])
        session = np.array([self.sessions.get(str(s), np.zeros(3)) for s in rows.session]).T
        points = _with_host(_points(rows, self.settings), _wakeup_share(rows), cost, extra)
        return points, evaluate_curve(self.knots, points, session)

    def reference(self, rows: Rows) -> tuple[Points, CurveTerms]:
        """Evaluate the curve alone, in no session."""
        return self.curve(replace(rows, session=np.full(len(rows), None, dtype=object)))

    def evaluate(self, rows: Rows) -> dict[str, Floats]:
        """Predict rows in their sessions; in a session that the fit did not see, the reference.

        Returns:
            `latency` and the percentiles, ns, and `<name>_sd`, their local sd in log units.
        """
        points, terms = self.reference(rows)
        missed = self._missed(rows, points)
        log_latency = terms.log_latency + missed["latency"]
        out = {"latency": np.exp(log_latency), "latency_sd": missed["latency_sd"]}
        for name, tail in self.tails.items():
            ratio = log_tail_ratio(tail, self.knots, points, terms, log_latency)
            out[name] = np.exp(log_latency + ratio + missed[name])
            out[f"{name}_sd"] = missed[f"{name}_sd"]
        return out

    def series(self, rows: Rows) -> list[tuple[str, str]]:
        """Host path, with whether requests are unaligned, and session of each row."""
        odd = is_unaligned(np.log2(rows.request_bytes), self.knots.access_unit_log2)
        return [
            (path + UNALIGNED if apart else path, session)
            for (path, session), apart in zip(rows.series(), odd.tolist(), strict=True)
        ]

    def grid_of(self, path: str) -> PathGrid:
        """The grid of a path; of unaligned requests nobody measured, that of the others."""
        main = next(iter(self.grids.values()))
        return self.grids.get(path) or self.grids.get(path.removesuffix(UNALIGNED)) or main

    def _missed(self, rows: Rows, points: Points) -> dict[str, Floats]:
        """What the curve misses at rows, by the grid of their path and session."""
        names = [f"{name}{end}" for name in ("latency", *self.tails) for end in ("", "_sd")]
        out = {name: np.zeros(len(rows)) for name in names}
        if not self.grids:
            return out
        keys = self.series(rows)
        main = next(iter(self.grids.values())).lookup()
        for key in sorted(set(keys)):
            at = np.array([other == key for other in keys])
            grid = self.grid_of(key[0]).lookup(key[1])
            residual = grid(points.take(at), np.zeros(int(at.sum()), dtype=np.intp), main)
            for name in names:
                out[name][at] = residual[name]
        return out


def _points(rows: Rows, settings: Settings) -> Points:
    """Where rows lie; the host costs nothing yet (see `_with_host`)."""
    access = np.log2(settings.priors.access_unit_bytes)
    commands, log2_bytes = split_commands(rows.request_bytes, settings.max_transfer_bytes)
    nothing = np.zeros(len(rows))
    return Points(
        np.log(rows.queue_depth * rows.jobs),
        commands,
        np.maximum(log2_bytes, access),
        np.log2(rows.request_bytes),
        np.log2(rows.queue_depth),
        np.log2(rows.jobs),
        np.log(np.minimum(rows.jobs, rows.cores)),
        nothing,
        nothing,
    )


def _wakeup_share(rows: Rows) -> Floats:
    """Share of a wake-up that one request pays."""
    return np.asarray(rows.queue_depth**-WAKEUP_EXPONENT)


def _with_host(points: Points, wakeup_share: Floats, cost: Floats, extra: Floats) -> Points:
    """Add the host's costs: `cost` (..., n, 3) by path, `extra` (..., n, 2) by scheduler."""
    return replace(
        points,
        added_latency_ns=cost[..., 0] + extra[..., 0],
        core_ns=cost[..., 1] + cost[..., 2] * wakeup_share + extra[..., 1],
    )


class _Problem:
    """The least-squares problem of one set of rows.

    What depends on the vector of parameters takes several at once, (..., parameters): a Jacobian by
    differences asks for many, and one call for all costs little more than for one.
    """

    def __init__(self, rows: Rows, settings: Settings, *, span: bool) -> None:
        self.rows, self.settings = rows, settings
        self.points, self.wakeup_share = _points(rows, settings), _wakeup_share(rows)
        self.knots = knot_positions(self.points.log2_bytes, settings.priors.knots)
        if span:
            self.knots = with_ends(
                self.knots, settings.priors.access_unit_bytes, settings.max_transfer_bytes
            )
        keys = rows.path()
        self.paths = sorted(set(keys))
        self.schedulers = sorted({str(name) for name in rows.scheduler} - {"none"})
        self.sessions = sorted({str(name) for name in rows.session})
        known_sharpness, priors = settings.host_sharpness, settings.priors
        if known_sharpness is not None:
            priors = replace(priors, host_sharpness=known_sharpness)
        self.layout = Layout(
            priors,
            self.knots,
            [settings.path_priors[path] for path in self.paths],
            [settings.scheduler_priors[name] for name in self.schedulers],
            [stands_apart(name) for name in self.sessions],
        )
        known = np.array([path in settings.known_paths for path in self.paths], dtype=bool)
        settled = np.array(
            [name in settings.known_schedulers for name in self.schedulers], dtype=bool
        )
        self.held = np.zeros(self.layout.start.size, dtype=bool)
        for name, which in (
            *((cost, known) for cost in ("added", "core", "wakeup")),
            ("scheduler", np.repeat(settled, 2)),
            ("log_k", [False, known_sharpness is not None]),
        ):
            self.held[self.layout.slices[name]] = which
        self.path_index = np.array([self.paths.index(key) for key in keys])
        none_last = [*self.schedulers, "none"]
        self.scheduler_index = np.array([none_last.index(str(s)) for s in rows.scheduler])
        self.session_index = np.array([self.sessions.index(str(s)) for s in rows.session])
        self.log_latency = np.log(rows.latency_ns)
        # larger requests also pay for mapping their pages, and pollers are always busy
        small = rows.request_bytes <= settings.priors.access_unit_bytes
        self.busy = np.isfinite(rows.cpu_cores) & (rows.completion == "interrupt") & small
        self.log_busy_ns = np.log(rows.cpu_cores[self.busy] / rows.iops[self.busy] * 1e9)

    def costs(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        """Costs by path (..., p, 3) and scheduler (..., s + 1, 2, none last), shifts of sessions.

        The shifts have the shape (3, ..., sessions).
        """
        part, several = self.layout.part, vector.shape[:-1]
        vector = np.where(self.held, self.layout.start, vector)
        cost = np.exp(np.stack([part(vector, n) for n in ("added", "core", "wakeup")], axis=-1))
        extra = np.exp(part(vector, "scheduler").reshape(*several, -1, 2))
        extra = np.concatenate([extra, np.zeros((*several, 1, 2))], axis=-2)
        session = part(vector, "session").reshape(*several, 3, -1)
        return cost, extra, np.moveaxis(session, -2, 0)

    def curve_knots(self, vector: Floats) -> Knots:
        """The curve's parameters, or those of several curves."""
        part, physical = self.layout.part, self.layout.part(vector, "physical")
        vector = np.where(self.held, self.layout.start, vector)
        second = 1 if vector.ndim == 1 else slice(1, 2)
        return Knots(
            self.knots,
            part(vector, "unloaded"),
            part(vector, "capacity"),
            part(vector, "sharpness"),
            np.exp(physical[..., second]),
            float(np.log2(self.settings.priors.access_unit_bytes)),
            np.exp(np.clip(part(vector, "log_k")[..., second], 0.0, 4.0)),
        )

    def loss(self, vector: Floats) -> Floats:
        """Misfit of latency and core time, and the priors, in standard deviations."""
        cost, extra, session = self.costs(vector)
        points = _with_host(
            self.points,
            self.wakeup_share,
            cost[..., self.path_index, :],
            extra[..., self.scheduler_index, :],
        )
        terms = evaluate_curve(self.curve_knots(vector), points, session[..., self.session_index])
        misfit = (terms.log_latency - self.log_latency) / self.rows.relative_sd
        core = (np.log(points.core_ns[..., self.busy]) - self.log_busy_ns) / BUSY_SD
        return np.concatenate([misfit, core, self.layout.penalties(vector)], axis=-1)

    def solve(self, start: Floats | None, *, exact: bool = True) -> FittedSurface:
        """Find the solution; from `start`, where it fits, with a looser tolerance.

        `exact` goes on to where every machine ends at the same digits.
        """
        warm = start is not None and start.shape == self.layout.start.shape
        solution = least_squares(
            self.loss,
            start if warm and start is not None else self.layout.start,
            jac=partial(jacobian, self.loss),
            loss="soft_l1",
            f_scale=F_SCALE,
            x_scale="jac",
            ftol=1e-5 if warm else 1e-7,
            xtol=1e-5 if warm else 1e-7,
            max_nfev=200,
        )
        vector = polish(self.loss, solution.x, F_SCALE) if exact else solution.x
        cost, extra, session = self.costs(vector)
        paths: dict[PathKey, tuple[float, float, float]] = {
            path: (prior.added_latency_ns, prior.core_time_ns, prior.wakeup_ns)
            for path, prior in self.settings.path_priors.items()
        }
        for path, values in zip(self.paths, cost, strict=True):
            paths[path] = (float(values[0]), float(values[1]), float(values[2]))
        schedulers = dict(self.settings.scheduler_priors)
        for name, pair in zip(self.schedulers, extra, strict=False):
            schedulers[name] = (float(pair[0]), float(pair[1]))
        return FittedSurface(
            self.settings,
            self.curve_knots(vector),
            paths,
            schedulers,
            {name: session[:, index] for index, name in enumerate(self.sessions)},
            vector,
        )


def fit_surface(
    rows: Rows, settings: Settings, *, learn: bool = True, like: FittedSurface | None = None
) -> FittedSurface:
    """Fit one operation and pattern.

    Args:
        rows: At least one row.
        settings: What to assume.
        learn: Also learn residuals and tails (off where a row is not a measurement).
        like: Start from this fit: a refit for left-out rows.
    """
    many, span = len(rows) > CURVE_ROWS, not learn
    if like is not None and many:  # one of many refits, whose digits nobody keeps
        problem = _Problem(sample(rows, REFIT_ROWS), settings, span=span)
        fitted = problem.solve(like.vector, exact=False)
    else:
        problem = _Problem(sample(rows, CURVE_ROWS), settings, span=span)
        fitted = problem.solve(like.vector if like else None)
    if learn:
        learn_residuals(fitted, rows, finer=like is None)
    return fitted


def _tail(fitted: FittedSurface, name: str, rows: Rows) -> Tail:
    """The law of one percentile."""
    some = sample(rows, CURVE_ROWS)
    points, terms = fitted.curve(some)
    log_latency = np.log(some.latency_ns)
    target = np.log(some.percentile(name)) - log_latency
    return fit_tail(name, fitted.knots, points, terms, log_latency, target)


def refit(fitted: FittedSurface, rows: Rows) -> FittedSurface:
    """Fit other rows, starting from an earlier fit (faster)."""
    return fit_surface(rows, fitted.settings, like=fitted)


def learn_residuals(fitted: FittedSurface, rows: Rows, *, finer: bool) -> None:
    """Learn the laws of the percentiles, and what the curve and they miss, from the same rows.

    Args:
        fitted: The curve; tails and grids are added to it.
        rows: What it was fitted on.
        finer: As `residual.path_grids` has it; refits for left-out rows do without.
    """
    for name in PERCENTILES:
        seen = np.isfinite(rows.percentile(name))
        if seen.sum() >= FEWEST_PERCENTILES:
            fitted.tails[name] = _tail(fitted, name, rows.take(seen))
    levels = {"latency": np.log(rows.latency_ns)}
    levels |= {name: np.log(rows.percentile(name)) for name in fitted.tails}

    def laws(where: Floats, like: Rows) -> tuple[Floats, dict[str, Callable[[Floats], Floats]]]:
        example = like.take(np.zeros(len(where), dtype=np.intp))
        depth, jobs, size = np.exp2(where.T)
        points, terms = fitted.reference(
            replace(example, queue_depth=depth, jobs=jobs, request_bytes=size)
        )

        def ratio(tail: Tail) -> Callable[[Floats], Floats]:
            return lambda level: log_tail_ratio(tail, fitted.knots, points, terms, level)

        return terms.log_latency, {name: ratio(tail) for name, tail in fitted.tails.items()}

    series = fitted.series(rows)
    sessions = [
        SessionRows(path, session, rows.take(at), {n: y[at] for n, y in levels.items()})
        for path, session in sorted(set(series))
        for at in [np.array([label == (path, session) for label in series])]
    ]
    fitted.grids = path_grids(sessions, laws, fitted.settings.max_transfer_bytes, finer=finer)
