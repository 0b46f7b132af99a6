"""A drive under requests of several sizes at once, from what it does under each alone.

Requests take turns, as reads and writes do (`model.evaluate.mixes`): with shares p_i of the
requests, and latencies L_i(N) under N requests of size i in flight, the mean latency is sum p_i
L_i(N). A request has the latency of its own size while the drive is not busy, and waits with all
others where it is:

    W = sum p_i (L_i(N) - L_i(1)),    t_q = W + the q-quantile of the sizes' unloaded latencies,

a tail no shorter than that of one size of the same mean, scaled to the mean latency.

Against a simulated 980 PRO, random reads and writes at depths 1, 4, 16, 64 and 256, in three mixes
(75 % of 4 and 25 % of 64 KiB, half of 4 and half of 16, 90 % of 16 and 10 % of 128), beside one
size of the same mean; log errors, root mean square (`tests/model/test_size_mix.py`):

    throughput 0.076, one size 0.100;  p50 0.105, 0.138;  p99 0.137, 0.351

One size is up to 25 % too fast and its p99 up to 63 % too short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import erfc, exp
from statistics import NormalDist

import numpy as np
from numpy.polynomial import Chebyshev

from iojoule.model.evaluate.bands import EXTRAPOLATED, Codes, Direction, Floats, merge
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.surface import QUANTITIES, Points, split_commands

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}

RULE_SD = {"latency": 0.08, "p50": 0.11, "p99": 0.2, "p999": 0.25}
"""Log sds of the rule itself: as above, of p99 that of the hardest of the mixes (the first)."""

_HALVINGS = 40


class SizeMixPredictor(Predictor):
    """A predictor whose rows of one size, the mean of a mix, are answered for the mix.

    Args:
        single: For one size at a time.
        sizes: Request size -> share of the requests; shares add up to 1.
        mean_bytes: The size that stands for the mix; rows of other sizes are of one size.
    """

    def __init__(self, single: Predictor, sizes: Mapping[int, float], mean_bytes: float) -> None:
        super().__init__(single.profile)
        self.sizes = dict(sizes)
        self.mean_bytes = mean_bytes

    def directions(
        self, frame: Frame, points: Points, code: Codes, names: Sequence[str], runs: int = 1
    ) -> Direction:
        """As `Predictor.directions`; the frame's rows have one read fraction."""
        mixed = frame.request_bytes == self.mean_bytes
        if not mixed.any():
            return super().directions(frame, points, code, names, runs)
        if not mixed.all():
            parts = [
                (at, self.directions(frame.take(at), points.take(at), code[at], names, runs))
                for at in map(np.flatnonzero, (mixed, ~mixed))
            ]
            return merge(parts, len(frame))
        mean = super().directions(frame, points, code, names, runs)
        tails = [name for name in names if name in QUANTILES]
        loaded = self._by_size(frame, points, code, ("latency",), runs)
        alone = self._by_size(frame, *_unloaded(points, code), QUANTITIES, runs)
        value = blend(list(self.sizes.values()), loaded, alone, mean, tails)
        widest = np.max([surface.half_width["latency"] for surface in loaded], axis=0)
        half = {"latency": np.hypot(widest, NORMAL_90 * RULE_SD["latency"])}
        for name in tails:
            half[name] = np.hypot(mean.half_width[name], NORMAL_90 * RULE_SD[name])
        evidence = np.max([EXTRAPOLATED + 0 * mean.evidence, mean.evidence], axis=0)
        return replace(mean, log_value=value, half_width=half, evidence=evidence, log_drive=None)

    def _by_size(
        self, frame: Frame, points: Points, code: Codes, names: Sequence[str], runs: int
    ) -> list[Direction]:
        """What the rows would do if all their requests had one size, size by size."""
        directions = []
        for size in self.sizes:
            bytes_ = np.full(len(frame), float(size))
            commands, log2_bytes = split_commands(bytes_, self.profile.max_transfer_bytes)
            at = replace(
                points, commands=commands, log2_bytes=log2_bytes, log2_request=np.log2(bytes_)
            )
            row = replace(frame, request_bytes=bytes_)
            directions.append(super().directions(row, at, code, names, runs))
        return directions


def blend(
    shares: Sequence[float],
    loaded: Sequence[Direction],
    alone: Sequence[Direction],
    mean: Direction,
    tails: Sequence[str] = tuple(QUANTILES),
) -> dict[str, Floats]:
    """Log mean latency and percentiles of a mix, ns, shape (n,) each.

    Args:
        shares: Of the requests, one a size.
        loaded: If all requests had that size, with as many in flight as the mix has.
        alone: Likewise with one in flight, all percentiles.
        mean: If all requests had the mix's mean size, with as many in flight.
        tails: Percentiles wanted, those of `QUANTILES`.
    """
    parts = np.array(shares)[:, None]
    latency, unloaded = (
        (parts * np.exp([part.log_value["latency"] for part in every])).sum(axis=0)
        for every in (loaded, alone)
    )
    waits = np.maximum(latency - unloaded, 0.0)
    value = {"latency": np.log(latency)}
    for name in tails:
        value[name] = np.log(waits + np.exp(_quantile(name, alone, parts)))
        if name != "p50":
            as_heavy = mean.log_value[name] - mean.log_value["latency"] + value["latency"]
            value[name] = np.maximum(value[name], as_heavy)
    return value


def _unloaded(points: Points, code: Codes) -> tuple[Points, Codes]:
    """The same rows with one request in flight."""
    nothing = np.zeros_like(points.log_requests)
    alone = replace(
        points, log_requests=nothing, log2_depth=nothing, log2_jobs=nothing, log_cores=nothing
    )
    return alone, code


def _quantile(name: str, parts: Sequence[Direction], shares: Floats) -> Floats:
    """Log of a quantile of a mixture, ns, shape (n,).

    Each part's log latency is piecewise linear in the normal quantile through its known
    percentiles; the mixture's quantile lies between its parts'.
    """
    z = [NormalDist().inv_cdf(level) for level in QUANTILES.values()]
    known = np.array([[direction.log_value[level] for level in QUANTILES] for direction in parts])
    steps = np.maximum(np.diff(known, axis=1), 1e-6)
    ends = known[:, list(QUANTILES).index(name)]
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        first = z[0] + (middle - known[:, 0]) / steps[:, 0] * (z[1] - z[0])
        second = z[1] + (middle - known[:, 1]) / steps[:, 1] * (z[2] - z[1])
        below = (shares * _normal_cdf(np.where(middle < known[:, 1], first, second))).sum(axis=0)
        more = below < QUANTILES[name]
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray((low + high) / 2)


def _normal_cdf(z: Floats) -> Floats:
    """Distribution function of the normal law, to 1e-15; beyond 8.4 sds, that of 8.4."""
    x = np.minimum(np.abs(z) / np.sqrt(2.0), _FARTHEST)
    tail = 0.5 * np.exp(-(x**2)) * _scaled_erfc()(2.0 / (2.0 + x))
    return np.asarray(np.where(z > 0, 1.0 - tail, tail))


_FARTHEST = 6.0


@cache
def _scaled_erfc() -> Chebyshev:
    """exp(x^2) erfc(x) as a polynomial of t = 2 / (2 + x), in which it is smooth."""

    def exact(t: Floats) -> Floats:
        return np.array([exp(x**2) * erfc(x) for x in (2.0 / t - 2.0).tolist()])

    return Chebyshev.interpolate(exact, 24, domain=[2.0 / (2.0 + _FARTHEST), 1.0])
