"""Fitting a performance surface: the physical curve first, then only what it misses.

The curve is fitted in log latency by bounded robust least squares. Knots (one a command size)
are held near two physical shapes, unloaded latency = a + bytes / b and capacity = min(Imax,
B / bytes), so that a size with few rows borrows from the others. A measuring session may shift
unloaded latency, core time and sharpness a little (much, where it is labelled unsteady); the
profile keeps the reference, which is no shift.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.profile import Tail
from iojoule.model.curve import log_smooth_max, split_commands
from iojoule.model.fitting.residual import ResidualModel, SessionFeatures
from iojoule.model.fitting.rows import PERCENTILES, UNSTEADY, Rows
from iojoule.model.surface import (
    CurveTerms,
    Knots,
    Points,
    evaluate_curve,
    log_tail_ratio,
)

Floats = NDArray[np.float64]

WAKEUP_EXPONENT = 0.6
"""Core time per request falls as wake-up x depth^-0.6 with the depth of a job: deeper jobs reap
several completions a wake-up. Fitted by eye on the CPU columns of the 980 PRO sweeps, where
it brings 7.7, 4.9, 3.2 and 2.6 us at depths 1, 4, 16 and 64 within 10 %."""


@dataclass(frozen=True)
class Priors:
    """Centres and log standard deviations of what data may not identify.

    Latencies in ns, rates in operations and bytes per second; sd in log units.
    """

    unloaded_ns: float = 60_000.0
    transfer_bytes_per_second: float = 3.2e9
    operations_per_second: float = 8e5
    bytes_per_second: float = 3.2e9
    physical_sd: tuple[float, float, float, float] = (1.5, 0.7, 1.0, 0.5)
    sharpness: float = 1.8
    sharpness_sd: float = 0.4
    host_sharpness: float = 6.0
    knot_sd: tuple[float, float, float] = (0.5, 0.3, 0.3)
    slope_sd: tuple[float, float] = (0.15, 0.3)
    session_sd: tuple[float, float, float] = (0.08, 0.056, 0.12)
    unsteady_factor: float = 5.0
    access_unit_bytes: int = 4096


@dataclass(frozen=True)
class PathPrior:
    """What a host path is expected to cost: added latency, core time and wake-up, ns; log sd."""

    added_latency_ns: float
    core_time_ns: float
    wakeup_ns: float
    log_sd: float


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

    path_priors: dict[tuple[str, str, bool], PathPrior]
    scheduler_priors: dict[str, tuple[float, float]]
    host_cores: int
    max_transfer_bytes: float
    priors: Priors


@dataclass
class FittedSurface:
    """A fitted surface that can still see sessions; `evaluate` is its prediction."""

    settings: Settings
    knots: Knots
    paths: dict[tuple[str, str, bool], tuple[float, float, float]]
    schedulers: dict[str, tuple[float, float]]
    sessions: dict[str, Floats]
    physical: dict[str, float]
    features: SessionFeatures
    latency_residual: ResidualModel | None = None
    tails: dict[str, Tail] = field(default_factory=dict)
    tail_residuals: dict[str, ResidualModel] = field(default_factory=dict)

    def points(self, rows: Rows) -> Points:
        """Place rows on the surface's coordinates."""
        commands, log2_bytes = split_commands(
            rows.request_bytes, self.settings.max_transfer_bytes
        )
        cost = np.array([self.paths[path] for path in rows.path()])
        extra = np.array([self.schedulers.get(str(name), (0.0, 0.0)) for name in rows.scheduler])
        core = cost[:, 1] + cost[:, 2] * rows.queue_depth**-WAKEUP_EXPONENT + extra[:, 1]
        return Points(
            np.log(rows.queue_depth * rows.jobs),
            commands,
            np.maximum(log2_bytes, self.knots.access_unit_log2),
            np.maximum(np.log2(rows.request_bytes), self.knots.access_unit_log2),
            np.log2(rows.queue_depth),
            np.log2(rows.jobs),
            np.log(np.minimum(rows.jobs, rows.cores)),
            np.maximum(cost[:, 0] + extra[:, 0], 1.0),
            core,
        )

    def session_shift(self, rows: Rows) -> Floats:
        """Log factors of the rows' sessions, shape (3, n); zero for one never seen."""
        return np.array([self.sessions.get(str(name), np.zeros(3)) for name in rows.session]).T

    def curve(self, rows: Rows) -> tuple[Points, CurveTerms]:
        """Evaluate the curve alone, in each row's session."""
        points = self.points(rows)
        return points, evaluate_curve(self.knots, points, self.session_shift(rows))

    def evaluate(self, rows: Rows) -> dict[str, Floats]:
        """Predict rows in their sessions.

        Returns:
            `latency` and the percentiles, ns; `<name>_sd`, their local sd in log units; and
            `curve`, the latency without the learned residual.
        """
        points, terms = self.curve(rows)
        features = self.features.of(rows, points)
        log_latency = terms.log_latency
        out = {"curve": np.exp(log_latency), "latency_sd": np.zeros(len(rows))}
        if self.latency_residual is not None:
            shift, out["latency_sd"] = self.latency_residual.predict(features)
            log_latency = log_latency + shift
        out["latency"] = np.exp(log_latency)
        for name, tail in self.tails.items():
            ratio = log_tail_ratio(tail, self.knots, points, terms, log_latency)
            shift, out[f"{name}_sd"] = self.tail_residuals[name].predict(features)
            out[name] = np.exp(log_latency + ratio + shift)
        return out


class _Packing:
    """Names for the slices of the least-squares vector."""

    def __init__(self) -> None:
        self.slices: dict[str, slice] = {}
        self.start: list[Floats] = []
        self.size = 0
        self.path_sd: Floats = np.zeros(0)

    def add(self, name: str, start: Floats) -> None:
        self.slices[name] = slice(self.size, self.size + start.size)
        self.start.append(start.ravel())
        self.size += start.size

    def __call__(self, vector: Floats, name: str) -> Floats:
        return vector[self.slices[name]]


def refit(fitted: FittedSurface, rows: Rows) -> FittedSurface:
    """Fit other rows as before, keeping the residuals' length scales (much faster)."""
    return fit_surface(rows, fitted.settings, like=fitted)


def fit_surface(
    rows: Rows, settings: Settings, *, learn: bool = True, like: FittedSurface | None = None
) -> FittedSurface:
    """Fit one operation and pattern.

    Args:
        rows: At least one row.
        settings: What to assume.
        learn: Also learn residuals and tails (off where a row is not a measurement).
        like: Take the residuals' hyperparameters from this fit.
    """
    priors, max_transfer_bytes = settings.priors, settings.max_transfer_bytes
    path_priors, scheduler_priors = settings.path_priors, settings.scheduler_priors
    access = float(np.log2(priors.access_unit_bytes))
    _, log2_bytes = split_commands(rows.request_bytes, max_transfer_bytes)
    log2_bytes = np.maximum(log2_bytes, access)
    knots_x = _knot_positions(log2_bytes)
    paths = sorted(set(path_priors))
    schedulers = sorted(set(scheduler_priors) - {"none"})
    sessions = sorted({str(name) for name in rows.session})
    pack = _start(priors, knots_x, [path_priors[p] for p in paths],
                  [scheduler_priors[s] for s in schedulers], len(sessions))
    start = np.concatenate(pack.start)
    session_sd = np.outer(
        priors.session_sd,
        [priors.unsteady_factor if UNSTEADY in name else 1.0 for name in sessions],
    )

    def build(vector: Floats) -> FittedSurface:
        return _unpack(vector, pack, settings, knots_x, paths, schedulers, sessions)

    def loss(vector: Floats) -> Floats:
        fitted = build(vector)
        points, terms = fitted.curve(rows)
        misfit = (terms.log_latency - np.log(rows.latency_ns)) / rows.relative_sd
        spent = np.log(rows.iops * points.core_ns * 1e-9)
        busy = np.isfinite(rows.cpu_cores) & (rows.completion == "interrupt")
        core = (spent[busy] - np.log(rows.cpu_cores[busy])) / 0.1
        return np.concatenate(
            [misfit, core, _penalties(vector, start, pack, priors, knots_x, session_sd)]
        )

    solution = least_squares(loss, start, loss="soft_l1", f_scale=3.0, max_nfev=400)
    fitted = build(solution.x)
    if learn:
        learn_residuals(fitted, rows, like)
    return fitted


def _knot_positions(log2_bytes: Floats) -> Floats:
    """One knot for every octave near which there are rows, else the rows' own sizes."""
    octaves = np.unique(np.round(log2_bytes))
    near = [np.abs(log2_bytes - octave).min() < 0.25 for octave in octaves]
    return octaves[near] if any(near) else np.unique(log2_bytes)


def _start(
    priors: Priors,
    knots_x: Floats,
    paths: list[PathPrior],
    schedulers: list[tuple[float, float]],
    sessions: int,
) -> _Packing:
    size = np.exp2(knots_x)
    pack = _Packing()
    pack.add("physical", np.log([priors.unloaded_ns, priors.transfer_bytes_per_second * 1e-9,
                                 priors.operations_per_second * 1e-9,
                                 priors.bytes_per_second * 1e-9]))
    pack.add("log_k", np.log([priors.sharpness, priors.host_sharpness]))
    pack.add("unloaded", np.log(priors.unloaded_ns + size / (priors.transfer_bytes_per_second
                                                             * 1e-9)))
    pack.add("capacity", _physical_capacity(np.log(priors.operations_per_second * 1e-9),
                                            np.log(priors.bytes_per_second * 1e-9), size))
    pack.add("sharpness", np.full(len(knots_x), np.log(priors.sharpness)))
    pack.add("added", np.log([p.added_latency_ns for p in paths]))
    pack.add("core", np.log([p.core_time_ns for p in paths]))
    pack.add("wakeup", np.log([p.wakeup_ns for p in paths]))
    pack.add("scheduler", np.log(np.maximum(np.array(schedulers).reshape(-1, 2), 1.0)))
    pack.add("session", np.zeros((3, sessions)))
    pack.path_sd = np.array([p.log_sd for p in paths])
    return pack


def _physical_capacity(log_operations: float, log_bytes: float, size: Floats) -> Floats:
    ceiling = np.full_like(size, -log_operations)
    return -log_smooth_max(ceiling, np.log(size) - log_bytes, 4.0)


def _penalties(
    vector: Floats,
    start: Floats,
    pack: _Packing,
    priors: Priors,
    knots_x: Floats,
    session_sd: Floats,
) -> Floats:
    size = np.exp2(knots_x)
    a, b, operations, bytes_rate = pack(vector, "physical")
    unloaded = pack(vector, "unloaded") - np.log(np.exp(a) + size / np.exp(b))
    capacity = pack(vector, "capacity") - _physical_capacity(operations, bytes_rate, size)
    log_k, _ = pack(vector, "log_k")
    sharpness = pack(vector, "sharpness") - log_k
    step = np.sqrt(np.maximum(np.diff(knots_x), 0.25))
    parts = [
        (pack(vector, "physical") - pack(start, "physical")) / np.array(priors.physical_sd),
        (pack(vector, "log_k") - pack(start, "log_k")) / np.array([priors.sharpness_sd, 0.6]),
        unloaded / priors.knot_sd[0],
        capacity / priors.knot_sd[1],
        sharpness / priors.knot_sd[2],
        np.diff(capacity) / (priors.slope_sd[0] * step),
        np.diff(sharpness) / (priors.slope_sd[1] * step),
        (pack(vector, "scheduler") - pack(start, "scheduler")) / 0.6,
        (pack(vector, "session").reshape(3, -1) / session_sd).ravel(),
    ]
    parts += [
        (pack(vector, name) - pack(start, name)) / pack.path_sd for name in ("added", "core", "wakeup")
    ]
    return np.concatenate(parts)


def _unpack(
    vector: Floats,
    pack: _Packing,
    settings: Settings,
    knots_x: Floats,
    paths: list[tuple[str, str, bool]],
    schedulers: list[str],
    sessions: list[str],
) -> FittedSurface:
    a, b, operations, bytes_rate = pack(vector, "physical")
    _, log_kh = pack(vector, "log_k")
    knots = Knots(
        knots_x,
        pack(vector, "unloaded"),
        pack(vector, "capacity"),
        pack(vector, "sharpness"),
        float(np.exp(b)),
        float(np.log2(settings.priors.access_unit_bytes)),
        float(np.exp(np.clip(log_kh, 0.0, 4.0))),
    )
    cost = np.exp(
        np.stack([pack(vector, name) for name in ("added", "core", "wakeup")], axis=1)
    )
    extra = np.exp(pack(vector, "scheduler").reshape(-1, 2))
    shift = pack(vector, "session").reshape(3, -1)
    return FittedSurface(
        settings,
        knots,
        {path: (float(c[0]), float(c[1]), float(c[2])) for path, c in zip(paths, cost, strict=True)},
        {name: (float(e[0]), float(e[1])) for name, e in zip(schedulers, extra, strict=True)},
        {name: shift[:, index] for index, name in enumerate(sessions)},
        {
            "unloaded_ns": float(np.exp(a)),
            "transfer_bytes_per_second": float(np.exp(b) * 1e9),
            "operations_per_second": float(np.exp(operations) * 1e9),
            "bytes_per_second": float(np.exp(bytes_rate) * 1e9),
        },
        SessionFeatures(paths=[], sessions=[]),
    )


def learn_residuals(fitted: FittedSurface, rows: Rows, like: FittedSurface | None = None) -> None:
    """Learn what the curve misses, and the latency percentiles, from the same rows."""
    points, terms = fitted.curve(rows)
    if like is not None:
        fitted.features = like.features
    else:
        fitted.features = SessionFeatures(
            paths=sorted(set(rows.path_keys())), sessions=sorted({str(s) for s in rows.session})
        )
    features = fitted.features.of(rows, points)
    observed = np.log(rows.latency_ns)
    fitted.latency_residual = ResidualModel.fit(
        features, observed - terms.log_latency, fitted.features,
        like.latency_residual if like else None,
    )
    for name in PERCENTILES:
        seen = np.isfinite(rows.percentile(name))
        if seen.sum() < 4:
            continue
        some = rows.take(seen)
        points, terms = fitted.curve(some)
        log_latency = np.log(some.latency_ns)
        target = np.log(some.percentile(name)) - log_latency
        tail = _fit_tail(name, fitted.knots, points, terms, log_latency, target)
        fitted.tails[name] = tail
        rest = target - log_tail_ratio(tail, fitted.knots, points, terms, log_latency)
        fitted.tail_residuals[name] = ResidualModel.fit(
            fitted.features.of(some, points), rest, fitted.features,
            like.tail_residuals.get(name) if like else None,
        )


def _fit_tail(
    name: str,
    knots: Knots,
    points: Points,
    terms: CurveTerms,
    log_latency: Floats,
    target: Floats,
) -> Tail:
    if name == "p50":
        return Tail(quantile="p50", intrinsic=float(np.median(target)), collision=[],
                    exponent=1.0, saturation=1.0, host_damping=0.0)
    sizes = len(knots.log2_bytes)
    centre = np.log(0.12 if name == "p99" else 0.3)
    start = np.concatenate([[centre, -1.0, -0.6, 0.0, -1.5], np.zeros(sizes)])

    def build(vector: Floats) -> Tail:
        return Tail(
            quantile="p99" if name == "p99" else "p999",
            intrinsic=float(np.exp(vector[0])),
            collision=[float(v) for v in np.exp(vector[1] + vector[5:])],
            exponent=float(np.exp(vector[2])),
            saturation=float(np.exp(vector[3])),
            host_damping=float(np.exp(vector[4])),
        )

    def loss(vector: Floats) -> Floats:
        ratio = log_tail_ratio(build(vector), knots, points, terms, log_latency)
        prior = (vector[:5] - start[:5]) / np.array([0.5, 1.0, 0.3, 1.0, 1.0])
        return np.concatenate([(ratio - target) / 0.05, prior, vector[5:] / 0.4])

    bound = np.full(5 + sizes, 6.0)
    solution = least_squares(
        loss, start, bounds=(start - bound, start + bound), loss="soft_l1", f_scale=2.0
    )
    return build(solution.x)
