"""Evaluating a performance surface: curve, host ceiling, learned residual and tails.

The closed-loop saturation curve: mean latency of N requests in flight.

A drive that answers one request in R0 and at most Xmax requests a second follows
    R(N) = (R0^k + (N / Xmax)^k)^(1/k),    X(N) = N / R(N),
a smooth maximum of the unloaded latency and of the queueing time; k says how sharp the bend
is. It is the three-parameter curve of the modelling notes written for latency, so that
N = X R (Little) holds by construction. A host that needs t nanoseconds of a core for each
request adds a second bend of the same form at N t / min(jobs, cores).

Requests above the drive's maximum transfer size are split: the curve works on device commands,
with c = ceil(bytes / MDTS) commands in flight for each request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import Hull, ResidualTable, Surface, Tail
from iojoule.model.evaluate.bands import Floats


def log_smooth_max(log_a: Floats, log_b: Floats, sharpness: Floats | float) -> Floats:
    """Return log((a^k + b^k)^(1/k)) for logs of a and b; any broadcastable shapes."""
    high = np.maximum(log_a, log_b)
    gap = np.abs(log_a - log_b)
    return np.asarray(high + np.log1p(np.exp(-sharpness * gap)) / sharpness)


def log_mean_latency(
    log_concurrency: Floats, log_unloaded_latency: Floats, log_capacity: Floats, sharpness: Floats
) -> Floats:
    """Log mean latency of the device alone.

    Args:
        log_concurrency: log of device commands in flight.
        log_unloaded_latency: log R0, ns.
        log_capacity: log Xmax, commands per ns.
        sharpness: k, positive.

    Returns:
        log R, ns, broadcast shape.
    """
    return log_smooth_max(log_unloaded_latency, log_concurrency - log_capacity, sharpness)


def split_commands(request_bytes: Floats, max_transfer_bytes: float) -> tuple[Floats, Floats]:
    """Split requests at the maximum transfer size.

    Returns:
        `(commands per request, log2 of the bytes of one command)`.
    """
    commands = np.ceil(request_bytes / max_transfer_bytes)
    return commands, np.log2(request_bytes / commands)


Indices = NDArray[np.intp]

COLLISION_SHARPNESS = 4.0
"""How sharply collisions stop growing past the knee: a drive has so many dies, and what waits
beyond them waits in a queue. As sharp as the bend between rate and bandwidth in the curve's prior;
the smoother 2 lets the excess over the mean grow on where measured drives hold it constant."""


WHOLE = 1e-9
"""Relative rounding of a size that is a whole number of access units."""

UNALIGNED = "/unaligned"
"""Ends the name of a host path whose table holds requests that are no multiple of the access unit:
the drive reads, or reads and programs again, pages in part, which is a step and no slope."""


@dataclass(frozen=True)
class Points:
    """Where a surface is evaluated; every array has one entry a point.

    Attributes:
        log_requests: log of requests in flight (queue depth x jobs).
        commands: device commands per request.
        log2_bytes: log2 of the bytes of one device command.
        log2_request: log2 of the bytes of a request.
        log2_depth: log2 of the queue depth of one job.
        log2_jobs: log2 of the jobs.
        log_cores: log of the cores that serve them: min(jobs, cores), fewer behind one lock.
        added_latency_ns: what the host adds to an unloaded request.
        core_ns: core time a request costs at this depth.
    """

    log_requests: Floats
    commands: Floats
    log2_bytes: Floats
    log2_request: Floats
    log2_depth: Floats
    log2_jobs: Floats
    log_cores: Floats
    added_latency_ns: Floats
    core_ns: Floats

    def take(self, rows: NDArray[np.bool_] | Indices | slice) -> Points:
        """Some of the points."""
        return Points(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class Knots:
    """The curve's parameters at knots of log2 command bytes (shape: knots).

    Several curves at once have a leading axis: (curves, knots), and (curves, 1) of what is one
    number here; what is evaluated then has it too.

    Attributes:
        log2_bytes: Positions, increasing.
        log_unloaded_ns: log of the drive's own unloaded latency.
        log_capacity_per_ns: log of commands per nanosecond.
        log_sharpness: log k.
        transfer_bytes_per_ns: Slope of the unloaded latency beyond the last knot.
        access_unit_log2: Smaller commands behave like this size (the flash reads whole units).
        host_sharpness: k of the host's bend.
    """

    log2_bytes: Floats
    log_unloaded_ns: Floats
    log_capacity_per_ns: Floats
    log_sharpness: Floats
    transfer_bytes_per_ns: float | Floats
    access_unit_log2: float
    host_sharpness: float | Floats

    @classmethod
    def of(cls, surface: Surface, host_sharpness: float) -> Knots:
        """Take the knots out of a profile's surface."""
        return cls(
            np.array(surface.log2_request_bytes),
            np.log(surface.unloaded_latency_ns),
            np.log(np.array(surface.capacity_operations_per_second) * 1e-9),
            np.log(surface.sharpness),
            surface.transfer_bytes_per_second * 1e-9,
            float(np.log2(surface.access_unit_bytes)),
            host_sharpness,
        )


@dataclass(frozen=True)
class CurveTerms:
    """What the curve says at each point.

    Attributes:
        log_latency: log mean latency, ns, host included.
        log_unloaded: log unloaded latency, ns.
        log_load: log of requests in flight over the drive's knee N* = R0 Xmax.
        log_host_excess: log of the host's queueing time over the drive's latency.
    """

    log_latency: Floats
    log_unloaded: Floats
    log_load: Floats
    log_host_excess: Floats


def whole_units(log2_bytes: Floats, access_unit_log2: float) -> Floats:
    """log2 of the bytes that a command moves in the flash: whole access units, one at the least."""
    units = np.ceil(np.exp2(log2_bytes - access_unit_log2) * (1.0 - WHOLE))
    return np.asarray(access_unit_log2 + np.log2(np.maximum(units, 1.0)))


def is_unaligned(log2_request: Floats, access_unit_log2: float) -> NDArray[np.bool_]:
    """Which requests of more than one access unit are no multiple of it."""
    units = np.exp2(log2_request - access_unit_log2)
    return np.asarray((units > 1.0) & (np.abs(units - np.rint(units)) > WHOLE * units))


def device_latency(
    knots: Knots,
    log2_bytes: Floats,
    log_commands: Floats,
    added_latency_ns: Floats,
    session: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """The drive's own part of the curve; all arguments and results broadcast.

    A command moves whole access units (`whole_units`). Beyond the last knot the unloaded latency
    grows with the transfer time and the capacity keeps its bytes per second.

    Args:
        knots: The curve's parameters.
        log2_bytes: log2 of the bytes of one device command.
        log_commands: log of device commands in flight.
        added_latency_ns: What the host adds to an unloaded request.
        session: As in `evaluate_curve`.

    Returns:
        Logs of the mean latency and of the unloaded one, ns, and of the knee N* = R0 Xmax.
    """
    log2_bytes = whole_units(log2_bytes, knots.access_unit_log2)
    x = knots.log2_bytes
    beyond = np.maximum(log2_bytes - x[-1], 0.0)
    unloaded = np.exp(_between(log2_bytes, x, knots.log_unloaded_ns))
    unloaded = unloaded + (np.exp2(log2_bytes) - np.exp2(np.clip(log2_bytes, x[0], x[-1]))) * (
        (beyond > 0) / knots.transfer_bytes_per_ns
    )
    capacity = log_capacity_per_ns(knots, log2_bytes)
    sharpness = np.exp(_between(log2_bytes, x, knots.log_sharpness))
    log_unloaded = np.log(unloaded + added_latency_ns)
    if session is not None:
        log_unloaded = log_unloaded + session[0]
        sharpness = sharpness * np.exp(session[2])
    device = log_mean_latency(log_commands, log_unloaded, capacity, sharpness)
    return device, log_unloaded, capacity + log_unloaded


def log_capacity_per_ns(knots: Knots, log2_bytes: Floats) -> Floats:
    """Log of the most commands that the drive serves a nanosecond, by log2 of their bytes."""
    log2_bytes = np.maximum(log2_bytes, knots.access_unit_log2)
    x = knots.log2_bytes
    beyond = np.maximum(log2_bytes - x[-1], 0.0) * np.log(2.0)
    return np.asarray(_between(log2_bytes, x, knots.log_capacity_per_ns) - beyond)


def _between(at: Floats, x: Floats, values: Floats) -> Floats:
    """`np.interp`, with the same digits along the last axis of values of any shape (..., knots)."""
    if values.ndim == 1:
        return np.asarray(np.interp(at, x, values))
    if len(x) == 1:
        return np.broadcast_to(values, (*values.shape[:-1], len(at)))
    below = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    slope = np.diff(values)[..., below] / np.diff(x)[below]
    inside = slope * (at - x[below]) + values[..., below]
    upper = np.where(at >= x[-1], values[..., -1:], inside)
    return np.where(at <= x[0], values[..., :1], upper)


def evaluate_curve(knots: Knots, points: Points, session: Floats | None = None) -> CurveTerms:
    """Evaluate latency at points.

    Args:
        knots: The curve's parameters.
        points: n points.
        session: Shape (3, n): log factors of unloaded latency, core time and sharpness that a
            measuring session had; None for the reference.
    """
    log_commands = points.log_requests + np.log(points.commands)
    device, log_unloaded, log_knee = device_latency(
        knots, points.log2_bytes, log_commands, points.added_latency_ns, session
    )
    log_core = np.log(points.core_ns)
    if session is not None:
        log_core = log_core + session[1]
    host = points.log_requests + log_core - points.log_cores
    return CurveTerms(
        log_smooth_max(device, host, knots.host_sharpness),
        log_unloaded,
        log_commands - log_knee,
        host - device,
    )


@dataclass(frozen=True)
class TailLaw:
    """What `log_tail_ratio` needs of the law of a percentile.

    Several laws at once have a leading axis, as `Knots` have: (laws, knots), and (laws, 1) of what
    is one number here.
    """

    intrinsic: Floats | float
    log_collision: Floats
    exponent: Floats | float
    saturation: Floats | float
    host_damping: Floats | float

    @classmethod
    def of(cls, tail: Tail) -> TailLaw:
        """Take the law out of a profile's."""
        return cls(
            tail.intrinsic,
            np.log(tail.collision),
            tail.exponent,
            tail.saturation,
            tail.host_damping,
        )


def tail_ratio(
    law: TailLaw, knots: Knots, points: Points, terms: CurveTerms, log_latency: Floats
) -> Floats:
    """As `log_tail_ratio`, of one law or of several at once, without the queue of a SATA drive."""
    log_commands = points.log_requests + np.log(points.commands)
    x = knots.log2_bytes
    collision = _between(np.clip(points.log2_bytes, x[0], x[-1]), x, law.log_collision)
    log_limit = log_commands - terms.log_load + np.log(law.saturation)
    colliding = np.exp(-log_smooth_max(-log_commands, -log_limit, COLLISION_SHARPNESS))
    alone = np.exp(-log_smooth_max(np.zeros_like(log_limit), -log_limit, COLLISION_SHARPNESS))
    growing = np.maximum(colliding - alone, 1e-9) ** law.exponent
    excess = law.intrinsic + np.exp(collision) * growing
    excess = excess * np.exp(-law.host_damping * np.maximum(terms.log_host_excess, 0.0))
    return np.asarray(np.log1p(np.exp(terms.log_unloaded - log_latency) * excess))


def log_tail_ratio(
    tail: Tail, knots: Knots, points: Points, terms: CurveTerms, log_latency: Floats
) -> Floats:
    """Return log(percentile / mean latency) before the learned residual.

    percentile = R + R0 (j + c (Ne - N1)^g) with Ne = (N^-4 + (s N*)^-4)^(-1/4), the requests
    that can collide at the dies: the excess over the mean grows with the requests in flight
    and stops growing past the knee N*, where the host's queue adds a constant delay. It is
    damped by exp(-d max(log host excess, 0)) where the host is the bottleneck, whose service
    is regular. j, c (by size), g, s and d are fitted. The median keeps a constant ratio. Beyond
    the queue of a SATA drive a stated factor comes on top (`Tail.queue_commands`).
    """
    if not tail.collision:
        return np.full_like(log_latency, tail.intrinsic)
    ratio = tail_ratio(TailLaw.of(tail), knots, points, terms, log_latency)
    if tail.queue_commands is not None:
        log_commands = points.log_requests + np.log(points.commands)
        waiting = log_commands > np.log(tail.queue_commands) + 1e-9
        ratio = ratio + np.where(waiting, np.log(tail.queue_factor), 0.0)
    return ratio


Where = tuple[Floats, Floats, Floats]
"""log2 of queue depth, jobs and request bytes."""

QUANTITIES = ("latency", "p50", "p99", "p999")
"""What a surface tells: the mean latency, and percentiles."""


def _where(points: Points) -> Where:
    return points.log2_depth, points.log2_jobs, points.log2_request


class TableLookup:
    """Linear interpolation in a residual table, all quantities at once.

    Outside the axes the nearest edge counts; what a curve misses of the drive it misses on every
    host path, so that values change there as those of the path with most rows do.
    """

    def __init__(self, table: ResidualTable) -> None:
        self.axes = [
            np.array(table.log2_queue_depth),
            np.array(table.log2_jobs),
            np.array(table.log2_request_bytes),
        ]
        self.paths = {path: index for index, path in enumerate(table.paths)}
        self.names = sorted(table.values)
        self.grid = np.stack([np.array(table.values[name]) for name in self.names])

    def __call__(
        self, points: Points, path: Indices, main: TableLookup | None = None
    ) -> dict[str, Floats]:
        """Return each quantity at the points.

        `on_knot` is 1 where a point coincides with a knot on every axis, else 0.

        Args:
            points: Where.
            path: Index of each point's host path among the table's.
            main: The path with most rows, where that is another one.
        """
        out = self._interpolated(points, path)
        if main is None or main is self:
            return out
        edge = self._nearest(points)
        # inside, the table's own rows answer
        beyond = np.flatnonzero(np.any(np.not_equal(_where(edge), _where(points)), axis=0))
        if len(beyond):
            first = np.zeros(len(beyond), dtype=np.intp)
            there = main._interpolated(points.take(beyond), first)
            at_edge = main._interpolated(edge.take(beyond), first)
            for name in QUANTITIES:  # how sure they are stays the path's own
                if name in out and name in there:
                    out[name][beyond] += there[name] - at_edge[name]
        return out

    def _nearest(self, points: Points) -> Points:
        """The points, moved to within the axes."""
        depth, jobs, request = (
            np.clip(x, axis[0], axis[-1]) for axis, x in zip(self.axes, _where(points), strict=True)
        )
        return replace(points, log2_depth=depth, log2_jobs=jobs, log2_request=request)

    def _interpolated(self, points: Points, path: Indices) -> dict[str, Floats]:
        lows, weights = self._neighbours(_where(points))
        total = np.zeros((len(self.names), len(path)))
        for corner in range(8):
            factor = np.ones(len(path))
            place = path
            for bit, axis in enumerate(self.axes):
                upper = corner >> bit & 1
                if upper and len(axis) == 1:
                    break
                place = place * len(axis) + (lows[bit] + upper)
                factor = factor * (weights[bit] if upper else 1.0 - weights[bit])
            else:
                if factor.any():  # points on knots need one corner of the eight
                    total += factor * self.grid.take(place, axis=1)
        out = dict(zip(self.names, total, strict=True))
        near = [np.minimum(weight, 1.0 - weight) < 1e-6 for weight in weights]
        out["on_knot"] = np.logical_and.reduce(near).astype(float)
        return out

    def _neighbours(self, coordinates: Where) -> tuple[list[Indices], list[Floats]]:
        """On each axis the knot at or below each coordinate, and the weight of the next one."""
        lows: list[Indices] = []
        weights: list[Floats] = []
        for axis, x in zip(self.axes, coordinates, strict=True):
            if len(axis) == 1:
                lows.append(np.zeros(x.shape, dtype=np.intp))
                weights.append(np.zeros(x.shape))
                continue
            low = np.searchsorted(axis, x, side="right") - 1
            low = np.clip(low, 0, len(axis) - 2)
            # the hull, not the clipped weight, says what lies beyond the edges
            weight = (x - axis[low]) / (axis[low + 1] - axis[low])
            weight = np.clip(weight, 0.0, 1.0)
            lows.append(low)
            weights.append(weight)
        return lows, weights


def hull_distance(hull: Hull, points: Points) -> Floats:
    """Octaves by which points lie outside a hull; 0 inside. Shape (n,)."""
    coordinates = _where(points)
    distance = np.zeros(len(points.log2_depth))
    for normal, offset in zip(hull.normals, hull.offsets, strict=True):
        excess = np.full_like(distance, -offset)
        for slope, x in zip(normal, coordinates, strict=True):
            excess += slope * x
        np.maximum(distance, excess, out=distance)
    for x, value in zip(coordinates, hull.fixed, strict=True):
        if value is not None:
            np.maximum(distance, np.abs(x - value), out=distance)
    distance[distance < 1e-6] = 0.0
    return distance
