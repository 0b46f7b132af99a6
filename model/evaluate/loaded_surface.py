"""One surface of a profile, ready to be evaluated: curve, residuals, tails and their intervals.

How far a curve may be off that rests on facts of other drives, at each point of it.

The parameters' standard deviations go through the curve by its derivatives (delta method): where
requests wait for nobody the unloaded latency counts, past the knee the capacity, where the
host is the bottleneck its core time, and around the bends their sharpness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile, Surface
from iojoule.datasets.profile.drive import CurveDoubt
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.bands import (
    DATASHEET,
    EXTRAPOLATED,
    INTERPOLATED,
    MEASURED,
    PUBLISHED,
    Codes,
    Direction,
    Floats,
)
from iojoule.model.evaluate.frame import PATTERNS
from iojoule.model.evaluate.operating_point import HostPaths
from iojoule.model.evaluate.quantities import MOST_HALF_WIDTH, NORMAL_90
from iojoule.model.evaluate.surface import (
    QUANTITIES,
    UNALIGNED,
    CurveTerms,
    Knots,
    Points,
    TableLookup,
    evaluate_curve,
    hull_distance,
    is_unaligned,
    log_capacity_per_ns,
    log_smooth_max,
    log_tail_ratio,
)


def variance_shares(
    doubt: CurveDoubt, knots: Knots, points: Points, terms: CurveTerms
) -> dict[str, Floats]:
    """Variance of log mean latency by what it comes from; each has shape (n,).

    Returns:
        `unloaded` (the drive's own latency), `capacity` (with what the two share), `sharpness`,
        `host` and `form` (what drives do beside the curve).
    """
    x, at = knots.log2_bytes, np.maximum(points.log2_bytes, knots.access_unit_log2)
    unloaded_sd = np.interp(at, x, doubt.unloaded_sd)
    capacity_sd = np.interp(at, x, doubt.capacity_sd)
    correlation = np.interp(at, x, doubt.correlation)
    k = np.exp(_log_sharpness(knots, points))
    waiting = _share(k * terms.log_load)
    hosted = _hosted(knots, terms)
    own = 1.0 - np.minimum(points.added_latency_ns * np.exp(-terms.log_unloaded), 1.0)
    by_unloaded = (1.0 - hosted) * (1.0 - waiting) * own * unloaded_sd
    by_capacity = (1.0 - hosted) * waiting * capacity_sd
    gap = np.abs(terms.log_load)
    bend = np.log1p(np.exp(-k * gap)) / k + gap * _share(-k * gap)
    by_host = (hosted + (1.0 - hosted) * (1.0 - waiting) * (1.0 - own)) * doubt.host_sd
    return {
        "unloaded": by_unloaded**2,
        # latency falls with capacity: what moves both together cancels
        "capacity": by_capacity**2 - 2.0 * correlation * by_unloaded * by_capacity,
        "sharpness": ((1.0 - hosted) * bend * doubt.sharpness_sd) ** 2,
        "host": by_host**2,
        "form": np.full_like(by_host, doubt.form_sd**2),
    }


def latency_sd(doubt: CurveDoubt, knots: Knots, points: Points, terms: CurveTerms) -> Floats:
    """Standard deviation of log mean latency, shape (n,)."""
    shares = variance_shares(doubt, knots, points, terms)
    return np.asarray(np.sqrt(np.maximum(sum(shares.values()), doubt.form_sd**2)))


def _log_sharpness(knots: Knots, points: Points) -> Floats:
    """Of the drive's bend, shape (n,)."""
    at = np.maximum(points.log2_bytes, knots.access_unit_log2)
    return np.interp(at, knots.log2_bytes, knots.log_sharpness)


def _hosted(knots: Knots, terms: CurveTerms) -> Floats:
    """How far the host's ceiling binds and not the drive, 0 to 1, shape (n,)."""
    return _share(knots.host_sharpness * terms.log_host_excess)


def _share(log_odds: Floats) -> Floats:
    held = np.clip(log_odds, -50.0, 50.0)
    return np.asarray(1.0 / (1.0 + np.exp(-held)))


BORROWED_SD = 0.6
"""Log sd where a pattern or direction was never seen and another one stands in for it."""

FAR_OCTAVES = 8.0
"""Doubt grows with the distance from the hull up to here."""

UNALIGNED_SD = {"read": 0.1, "write": 0.4}
"""Log sd of requests that are no multiple of the access unit where nobody measured any: a read of a
page more or less, a write that may have to read and program pages in part (assumption)."""

TOLD_OCTAVES = 2.0
"""Beyond so many octaves from the hull a surface is known no better than its curve."""

DOUBTS = {
    "unloaded": "unloaded latency",
    "capacity": "capacity",
    "sharpness": "bend of the curve",
    "host": "unknown host",
    "form": "what drives do beside the curve",
}
"""Names of the parts of a doubt (see `model.evaluate.loaded_surface`)."""

REPEAT_SD = 0.05
"""Log sd of a measured point of a surface with too few rows to learn its own."""


class LoadedSurface:
    """A surface with its arrays built; another pattern or direction stands in if absent."""

    def __init__(
        self, profile: DeviceProfile, operation: str, pattern: str, paths: HostPaths
    ) -> None:
        other = PATTERNS[1 - PATTERNS.index(pattern)]
        reverse = "write" if operation == "read" else "read"
        surface: Surface | None = None
        for rank, key in enumerate(
            ((operation, pattern), (operation, other), (reverse, pattern), (reverse, other))
        ):
            surface = profile.surface(*key)
            if surface is not None:
                self.borrowed = rank > 0
                break
        if surface is None:
            raise ValueError(f"{profile.device}: the profile has no performance surface")
        self.surface = surface
        self.knots = Knots.of(surface, profile.host.sharpness)
        self.tables = [TableLookup(table) for table in surface.residuals]
        index = {
            path: (table, place)
            for table, lookup in enumerate(self.tables)
            for path, place in lookup.paths.items()
        }
        path_table = [index.get(key, (0, 0)) for key in paths.keys]
        self.table_of, self.table_path = np.array(path_table, dtype=np.intp).reshape(-1, 2).T
        # -1: nobody measured unaligned requests on this path
        self.unaligned_table_of = np.array(
            [index.get(key + UNALIGNED, (-1, 0))[0] for key in paths.keys], dtype=np.intp
        )
        self.hull_of = {
            code: surface.hulls[key] for code, key in enumerate(paths.keys) if key in surface.hulls
        }
        self.known_path = np.array([code in self.hull_of for code in range(len(paths.keys))])
        # a path of the host that was not measured meets the same drive: its main hull counts
        main = max(surface.hulls.values(), key=lambda hull: len(hull.normals), default=None)
        if main is not None:
            for code, name in enumerate(paths.keys):
                if name and code not in self.hull_of:
                    self.hull_of[code] = main
        self.hulls = [*{id(hull): hull for hull in self.hull_of.values()}.values()]
        place = {id(hull): index for index, hull in enumerate(self.hulls)}
        self.hull_index = np.array(
            [
                place[id(self.hull_of[code])] if code in self.hull_of else -1
                for code in range(len(paths.keys))
            ]
        )
        self.path_sd = np.where(paths.measured, 0.0, np.nan_to_num(paths.relative_sd, nan=0.5))
        self.path_half_width = NORMAL_90 * np.hypot(self.path_sd, BORROWED_SD * self.borrowed)
        self.one_stream = (
            surface.evidence is Evidence.MEASURED
            and not self.borrowed
            and {hull.fixed[1] for hull in surface.hulls.values()} == {0.0}
        )
        self.widths = {(str(w.quantity), str(w.region)): w for w in surface.widths}

    def evaluate(self, points: Points, code: Codes, names: Sequence[str] = QUANTITIES) -> Direction:
        """Predict `names` at points on host paths `code`, at PS0."""
        terms = evaluate_curve(self.knots, points)
        unaligned = is_unaligned(points.log2_request, self.knots.access_unit_log2)
        learned = self._learned(points, code, unaligned)
        guessed = unaligned & (self.unaligned_table_of[code] < 0)
        zero = np.zeros(len(code))
        value = {"latency": terms.log_latency + learned.get("latency", zero)}
        highest = max(map(QUANTITIES.index, names))
        for tail in self.surface.tails:
            name: str = tail.quantile
            if QUANTITIES.index(name) > highest:
                continue  # a percentile bounds those above it and nothing below
            ratio = log_tail_ratio(tail, self.knots, points, terms, value["latency"])
            value[name] = value["latency"] + ratio + learned.get(name, zero)
        for name in QUANTITIES:
            if name not in value:
                value[name] = np.full(len(code), np.nan)
        value["p99"] = np.fmax(value["p99"], value["p50"])
        value["p999"] = np.fmax(value["p999"], value["p99"])
        distance = np.minimum(self.distance(points, code), FAR_OCTAVES)
        inside = distance <= 0
        apart = self.path_half_width[code]
        half = {}
        for name in names:
            width = self.half_width(name, learned.get(f"{name}_sd"), distance, inside)
            if self.surface.doubt is not None:
                excess = 1.0 - np.exp(np.minimum(value["latency"] - value[name], 0.0))
                doubted = self._doubtful(self.surface.doubt, name, points, terms, inside, excess)
                if learned and f"{name}_sd" in learned:  # rows tell, and less so far from them
                    width = np.maximum(width, np.minimum(distance / TOLD_OCTAVES, 1.0) * doubted)
                else:
                    width = doubted
            width = np.minimum(width, MOST_HALF_WIDTH)
            half[name] = np.sqrt(width * width + apart * apart)
            if guessed.any():
                odd = NORMAL_90 * UNALIGNED_SD[str(self.surface.operation)]
                half[name][guessed] = np.hypot(half[name][guessed], odd)
        return Direction(
            {name: value[name] for name in names},
            half,
            self._evidence(learned, inside & self.known_path[code] & ~guessed),
            self._sharpness(points, terms),
            -log_smooth_max(zero, terms.log_host_excess, self.knots.host_sharpness),
        )

    def _sharpness(self, points: Points, terms: CurveTerms) -> Floats:
        """Of the bend that is met, the drive's or the host's, shape (n,)."""
        hosted, host = _hosted(self.knots, terms), np.log(self.knots.host_sharpness)
        return np.exp((1.0 - hosted) * _log_sharpness(self.knots, points) + hosted * host)

    def log_least_ns(self, points: Points) -> Floats:
        """Log of the time that a request takes of a drive that never waits, ns, shape (n,)."""
        return np.log(points.commands) - log_capacity_per_ns(self.knots, points.log2_bytes)

    def _learned(
        self, points: Points, code: Codes, unaligned: NDArray[np.bool_]
    ) -> dict[str, Floats]:
        """What the curve misses at the points, by the tables of their host paths."""
        if not self.tables:
            return {}
        chosen = self.table_of[code]
        if unaligned.any():
            own = self.unaligned_table_of[code]
            chosen = np.where(unaligned & (own >= 0), own, chosen)
        main = self.tables[0]
        used: list[int] = np.flatnonzero(np.bincount(chosen)).tolist()
        if len(used) == 1:
            return self.tables[used[0]](points, self.table_path[code], main)
        out: dict[str, Floats] = {}
        for table in used:
            rows = np.flatnonzero(chosen == table)
            learned = self.tables[table](points.take(rows), self.table_path[code[rows]], main)
            for name, values in learned.items():
                out.setdefault(name, np.zeros(len(code)))[rows] = values
        return out

    def half_width(
        self, name: str, sd: Floats | None, distance: Floats, inside: NDArray[np.bool_]
    ) -> Floats:
        """Half width of 90 %: conformal where there were scores, else from the stated sd."""
        within = self.widths.get((name, "inside"))
        beyond = self.widths.get((name, "outside"), within)
        stated = NORMAL_90 * np.hypot(self.surface.relative_sd, 0.1 * distance)
        if within is None or beyond is None:
            measured = self.surface.evidence == Evidence.MEASURED
            return np.asarray(np.where(inside & measured, NORMAL_90 * REPEAT_SD, stated))
        local = self.surface.relative_sd if sd is None else sd
        spread = np.sqrt(local * local + within.floor_sd**2) + beyond.sd_per_octave * distance
        width = np.where(inside, within.factor, beyond.factor) * spread
        if beyond.scores or self.surface.doubt is not None:
            return np.asarray(width)
        # no row was left out there: what is stated of the surface counts
        return np.asarray(np.maximum(width, np.minimum(distance / TOLD_OCTAVES, 1.0) * stated))

    def variances(self, points: Points, code: Codes, name: str) -> list[tuple[str, float]]:
        """Sources of the variance of one point, and how much each is."""
        half = float(self.evaluate(points, code, ("latency", name)).half_width[name][0]) / NORMAL_90
        path = float(self.path_sd[code][0]) ** 2
        parts = [
            ("host path that was not measured", path),
            ("another pattern or direction stands in", (BORROWED_SD * self.borrowed) ** 2),
        ]
        doubted = self.surface.doubt
        if doubted is not None:
            terms = evaluate_curve(self.knots, points)
            scale = (doubted.factor / NORMAL_90) ** 2
            shares = variance_shares(doubted, self.knots, points, terms)
            parts += [(DOUBTS[key], scale * float(share[0])) for key, share in shares.items()]
        rest = half**2 - sum(part for _, part in parts)
        if doubted is None:
            word = "curve and learned residual" if name == "latency" else "curve, residual and tail"
        else:
            word = "rows left out" if name == "latency" else "tail law"
        return [*parts, (word, max(rest, 0.0))]

    def _doubtful(
        self,
        doubted: CurveDoubt,
        name: str,
        points: Points,
        terms: CurveTerms,
        inside: NDArray[np.bool_],
        excess: Floats,
    ) -> Floats:
        """Half width of 90 % where the prior of other drives carries the curve, or most of it.

        A percentile's own doubt (`widths`) comes on top of that of the mean; `excess` is the share
        of it that is above the mean.
        """
        spread = latency_sd(doubted, self.knots, points, terms)
        beyond = self.widths.get((name, "outside"))
        within = self.widths.get((name, "inside"), beyond)
        if within is not None and beyond is not None and not beyond.scores:
            own = np.where(inside, within.floor_sd, beyond.floor_sd)
            by_excess = excess * np.where(inside, within.excess_sd, beyond.excess_sd)
            spread = np.sqrt(spread**2 + own**2 + by_excess**2)
        return np.asarray(doubted.factor * spread)

    def distance(self, points: Points, code: Codes) -> Floats:
        """Octaves by which points lie outside the hull of their path; 4 where it has none."""
        distance = np.full(len(code), 4.0)
        chosen = self.hull_index[code]
        for index, hull in enumerate(self.hulls):
            mask = chosen == index
            if mask.any():
                distance[mask] = hull_distance(hull, points.take(mask))
        return distance

    def _evidence(self, learned: dict[str, Floats], inside: NDArray[np.bool_]) -> Codes:
        if self.borrowed:
            return np.full(len(inside), EXTRAPOLATED, dtype=np.intp)
        if self.surface.evidence is Evidence.DATASHEET:
            return np.full(len(inside), DATASHEET, dtype=np.intp)
        if self.surface.evidence != Evidence.MEASURED:
            return np.where(inside, PUBLISHED, EXTRAPOLATED).astype(np.intp)
        evidence = np.where(inside, INTERPOLATED, EXTRAPOLATED)
        # without a table there were too few rows to learn from: only they themselves lie inside
        known = inside
        if learned:
            known = inside & (learned["on_knot"] > 0) & (learned["measured"] > 0.5)
        evidence = np.where(known, MEASURED, evidence)
        return evidence.astype(np.intp)
