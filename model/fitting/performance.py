"""Fitting a performance surface: the physical curve first, then only what it misses.

The curve is fitted in log latency by robust least squares. Knots (one a command size) are held
near two physical shapes, unloaded latency = a + bytes / b and capacity = min(Imax, B / bytes),
so that a size with few rows borrows from the others. A measuring session may shift unloaded
latency, core time and sharpness a little (much, where it stands apart); the profile
keeps the reference, which is no shift.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.profile import Tail
from iojoule.model.curve import split_commands
from iojoule.model.fitting.knots import knot_positions, with_ends
from iojoule.model.fitting.parameters import Layout, PathKey, PathPrior, Priors
from iojoule.model.fitting.polish import polish
from iojoule.model.fitting.residual import (
    MEAN_BOUNDS,
    MEAN_VARIANCE,
    TAIL_BOUNDS,
    TAIL_VARIANCE,
    ResidualModel,
    SessionFeatures,
)
from iojoule.model.fitting.rows import PERCENTILES, Rows, sample, stands_apart
from iojoule.model.fitting.series import NEIGHBOURS_SHARE, STEP_SD, SeriesTrend
from iojoule.model.fitting.tails import fit_tail
from iojoule.model.performance import WAKEUP_EXPONENT
from iojoule.model.surface import CurveTerms, Knots, Points, evaluate_curve, log_tail_ratio

Floats = NDArray[np.float64]

BUSY_SD = 0.25
"""fio's CPU columns and the cost of a request agree within about a quarter (log)."""

INTERPOLATED = ("p99", "p999")
"""Percentiles that a row's own series may correct; the median keeps close to the mean."""

SIZE_ROOM_OCTAVES = 1.0
"""Residuals over request size fade this far beyond the sizes measured, where the curve's bytes a
second take over; over depth and jobs they stay as they are at the edge at once."""

CURVE_ROWS = 800
"""Rows that the curve and the laws of percentiles are fitted on: twenty for each of about forty
parameters. Residuals are learned from all."""

REFIT_ROWS = 300
"""As above where a whole depth or size is left out of more than `CURVE_ROWS` rows."""

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
    """

    path_priors: dict[PathKey, PathPrior]
    scheduler_priors: dict[str, tuple[float, float]]
    host_cores: int
    max_transfer_bytes: float
    priors: Priors


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
        features: Layout of the residuals' features.
        trends: Mean latency and percentiles of each series.
        neighbours: What the curve misses of mean latency, of each series.
        edges: Least and greatest log2 of depth, jobs and request bytes up to which residuals
            follow the process, shape (2, 3).
    """

    settings: Settings
    knots: Knots
    paths: dict[PathKey, tuple[float, float, float]]
    schedulers: dict[str, tuple[float, float]]
    sessions: dict[str, Floats]
    vector: Floats
    features: SessionFeatures = field(default_factory=lambda: SessionFeatures([], []))
    edges: Floats = field(default_factory=lambda: np.array([[-np.inf] * 3, [np.inf] * 3]))
    latency_residual: ResidualModel | None = None
    tails: dict[str, Tail] = field(default_factory=dict)
    tail_residuals: dict[str, ResidualModel] = field(default_factory=dict)
    trends: dict[str, SeriesTrend] = field(default_factory=dict)
    neighbours: SeriesTrend | None = None

    def curve(self, rows: Rows) -> tuple[Points, CurveTerms]:
        """Evaluate the curve alone, in each row's session."""
        cost = np.array([self.paths[path] for path in rows.path()])
        extra = np.array([self.schedulers.get(str(name), (0.0, 0.0)) for name in rows.scheduler])
        session = np.array([self.sessions.get(str(s), np.zeros(3)) for s in rows.session]).T
        points = _with_host(_points(rows, self.settings), _wakeup_share(rows), cost, extra)
        return points, evaluate_curve(self.knots, points, session)

    def evaluate(self, rows: Rows) -> dict[str, Floats]:
        """Predict rows in their sessions.

        Returns:
            `latency` and the percentiles, ns, `<name>_sd`, their local sd in log units, and
            `<name>_correction`, by how much (log units) a row's own series corrects the law, and
            `<name>_irregularity`, how irregular its neighbours are (log units, part of the sd).
        """
        points, terms = self.curve(rows)
        features = self.features.of(rows, _held(points, self.edges))
        log_latency = terms.log_latency
        out = {"latency_sd": np.zeros(len(rows))}
        if self.latency_residual is not None:
            shift, out["latency_sd"] = self.latency_residual.predict(features)
            log_latency = log_latency + shift
        smooth_sd = out["latency_sd"]
        if self.neighbours is not None and self.latency_residual is not None:
            where, series = _where(points), rows.series()
            told = self.neighbours.at(where, series)
            correction = NEIGHBOURS_SHARE * told.weight * (told.value - shift)
            log_latency = log_latency + correction
            irregular = np.hypot(
                self.trends["latency"].at(where, series).irregular, STEP_SD * told.step
            )
            out["latency_correction"], out["latency_irregularity"] = correction, irregular
            out["latency_sd"] = np.hypot(smooth_sd, irregular)
        out["latency"] = np.exp(log_latency)
        for name, tail in self.tails.items():
            ratio = log_tail_ratio(tail, self.knots, points, terms, log_latency)
            shift, sd = self.tail_residuals[name].predict(features)
            out[f"{name}_sd"] = np.hypot(sd, smooth_sd)  # the mean is uncertain too
            law = log_latency + ratio + shift
            correction = np.zeros(len(rows))
            if name in self.trends:
                told = self.trends[name].at(_where(points), rows.series())
                correction = told.weight * (told.value - law)
                out[f"{name}_correction"] = correction
                out[f"{name}_irregularity"] = told.irregular
                out[f"{name}_sd"] = np.hypot(out[f"{name}_sd"], told.irregular)
            out[name] = np.exp(law + correction)
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
        np.maximum(np.log2(rows.request_bytes), access),
        np.log2(rows.queue_depth),
        np.log2(rows.jobs),
        np.log(np.minimum(rows.jobs, rows.cores)),
        nothing,
        nothing,
    )


def _held(points: Points, edges: Floats) -> Points:
    """The points moved to the nearest edge of what was measured.

    Beyond it the residual stays what it was there, as in a profile's table: a drive whose plateau
    lies 3 % below the curve at the last depth lies so at the next.
    """
    return replace(
        points,
        log2_depth=np.clip(points.log2_depth, *edges[:, 0]),
        log2_jobs=np.clip(points.log2_jobs, *edges[:, 1]),
        log2_request=np.clip(points.log2_request, *edges[:, 2]),
    )


def _where(points: Points) -> Floats:
    """log2 of depth, jobs and request bytes, shape (n, 3)."""
    return np.stack([points.log2_depth, points.log2_jobs, points.log2_request], axis=1)


def _wakeup_share(rows: Rows) -> Floats:
    """Share of a wake-up that one request pays."""
    return np.asarray(rows.queue_depth**-WAKEUP_EXPONENT)


def _with_host(points: Points, wakeup_share: Floats, cost: Floats, extra: Floats) -> Points:
    """Add the host's costs: `cost` (n, 3) by path, `extra` (n, 2) by scheduler."""
    return replace(
        points,
        added_latency_ns=cost[:, 0] + extra[:, 0],
        core_ns=cost[:, 1] + cost[:, 2] * wakeup_share + extra[:, 1],
    )


class _Problem:
    """The least-squares problem of one set of rows."""

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
        self.layout = Layout(
            settings.priors,
            self.knots,
            [settings.path_priors[path] for path in self.paths],
            [settings.scheduler_priors[name] for name in self.schedulers],
            [stands_apart(name) for name in self.sessions],
        )
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
        """Costs by path (p, 3) and scheduler (s + 1, 2, none last), shifts (3, sessions)."""
        part = self.layout.part
        cost = np.exp(np.stack([part(vector, n) for n in ("added", "core", "wakeup")], axis=1))
        extra = np.vstack([np.exp(part(vector, "scheduler").reshape(-1, 2)), np.zeros((1, 2))])
        return cost, extra, part(vector, "session").reshape(3, -1)

    def curve_knots(self, vector: Floats) -> Knots:
        """The curve's parameters."""
        part, physical = self.layout.part, self.layout.part(vector, "physical")
        return Knots(
            self.knots,
            part(vector, "unloaded"),
            part(vector, "capacity"),
            part(vector, "sharpness"),
            float(np.exp(physical[1])),
            float(np.log2(self.settings.priors.access_unit_bytes)),
            float(np.exp(np.clip(part(vector, "log_k")[1], 0.0, 4.0))),
        )

    def loss(self, vector: Floats) -> Floats:
        """Misfit of latency and core time, and the priors, in standard deviations."""
        cost, extra, session = self.costs(vector)
        points = _with_host(
            self.points, self.wakeup_share, cost[self.path_index], extra[self.scheduler_index]
        )
        terms = evaluate_curve(self.curve_knots(vector), points, session[:, self.session_index])
        misfit = (terms.log_latency - self.log_latency) / self.rows.relative_sd
        core = (np.log(points.core_ns[self.busy]) - self.log_busy_ns) / BUSY_SD
        return np.concatenate([misfit, core, self.layout.penalties(vector)])

    def solve(self, start: Floats | None, *, exact: bool = True) -> FittedSurface:
        """Find the solution; from `start`, where it fits, with a looser tolerance.

        `exact` goes on to where every machine ends at the same digits.
        """
        warm = start is not None and start.shape == self.layout.start.shape
        solution = least_squares(
            self.loss,
            start if warm and start is not None else self.layout.start,
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
        like: Start from this fit and take the residuals' hyperparameters from it.
    """
    many, span = len(rows) > CURVE_ROWS, not learn
    if like is not None and many:  # one of many refits, whose digits nobody keeps
        problem = _Problem(sample(rows, REFIT_ROWS), settings, span=span)
        fitted = problem.solve(like.vector, exact=False)
    else:
        problem = _Problem(sample(rows, CURVE_ROWS), settings, span=span)
        fitted = problem.solve(like.vector if like else None)
    if learn:
        learn_residuals(fitted, rows, like)
    return fitted


def _tail(fitted: FittedSurface, name: str, rows: Rows) -> Tail:
    """The law of one percentile."""
    some = sample(rows, CURVE_ROWS)
    points, terms = fitted.curve(some)
    log_latency = np.log(some.latency_ns)
    target = np.log(some.percentile(name)) - log_latency
    return fit_tail(name, fitted.knots, points, terms, log_latency, target)


def refit(fitted: FittedSurface, rows: Rows) -> FittedSurface:
    """Fit other rows as before, keeping the residuals' length scales (much faster)."""
    return fit_surface(rows, fitted.settings, like=fitted)


def learn_residuals(fitted: FittedSurface, rows: Rows, like: FittedSurface | None = None) -> None:
    """Learn what the curve misses, and the latency percentiles, from the same rows."""
    points, terms = fitted.curve(rows)
    where = _where(points)
    room = np.array([0.0, 0.0, SIZE_ROOM_OCTAVES])
    fitted.edges = np.stack([where.min(axis=0) - room, where.max(axis=0) + room])
    fitted.features = (
        like.features
        if like is not None
        else SessionFeatures(
            sorted(set(rows.path_keys())), sorted({str(name) for name in rows.session})
        )
    )
    fitted.latency_residual = ResidualModel.fit(
        fitted.features.of(rows, points),
        np.log(rows.latency_ns) - terms.log_latency,
        fitted.features,
        MEAN_VARIANCE,
        MEAN_BOUNDS,
        like.latency_residual if like else None,
    )
    fitted.trends["latency"] = SeriesTrend.of(
        where, rows.series(), np.log(rows.latency_ns), fitted.latency_residual.noise_variance
    )
    fitted.neighbours = SeriesTrend.of(
        where,
        rows.series(),
        np.log(rows.latency_ns) - terms.log_latency,
        fitted.latency_residual.noise_variance,
    )
    for name in PERCENTILES:
        seen = np.isfinite(rows.percentile(name))
        if seen.sum() < 5:
            continue
        some = rows.take(seen)
        points, terms = fitted.curve(some)
        log_latency = np.log(some.latency_ns)
        target = np.log(some.percentile(name)) - log_latency
        tail = _tail(fitted, name, some)
        fitted.tails[name] = tail
        fitted.tail_residuals[name] = ResidualModel.fit(
            fitted.features.of(some, points),
            target - log_tail_ratio(tail, fitted.knots, points, terms, log_latency),
            fitted.features,
            TAIL_VARIANCE,
            TAIL_BOUNDS,
            like.tail_residuals.get(name) if like else None,
        )
        if name in INTERPOLATED:
            fitted.trends[name] = SeriesTrend.of(
                _where(points),
                some.series(),
                np.log(some.percentile(name)),
                fitted.tail_residuals[name].noise_variance,
            )
