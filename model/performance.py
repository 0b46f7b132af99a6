"""Throughput and latency of a frame: surfaces, power states, device state and mixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import CurveDoubt, DeviceProfile, Surface
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model import doubt
from iojoule.model.columns import Codes
from iojoule.model.curve import log_smooth_max, split_commands
from iojoule.model.device_state import DeviceState
from iojoule.model.frame import PATTERNS, Frame
from iojoule.model.host_paths import HostPaths, code_of, host_paths
from iojoule.model.operating_point import OperatingPoint
from iojoule.model.simulated import SimulatedTables
from iojoule.model.surface import (
    CurveTerms,
    Knots,
    Points,
    TableLookup,
    evaluate_curve,
    hull_distance,
    log_tail_ratio,
)

Floats = NDArray[np.float64]

EVIDENCE = tuple(evidence.value for evidence in Evidence)
"""Evidence by code; a higher code is weaker."""

MEASURED, INTERPOLATED, SIMULATED, PUBLISHED, EXTRAPOLATED, DATASHEET = range(len(EVIDENCE))

WAKEUP_EXPONENT = 0.8
"""Core time per request falls as wake-up x depth^-0.8 with the depth of a job, because deeper jobs
reap several completions a wake-up. With 2.6 us a request and 5.1 us a wake-up this gives 7.7, 4.3,
3.2 and 2.8 us at depths 1, 4, 16 and 64, where the CPU columns of the 980 PRO sweeps say 7.7, 4.9,
3.2 and 2.6 us."""

BORROWED_SD = 0.6
"""Log sd where a pattern or direction was never seen and another one stands in for it."""

FAR_OCTAVES = 8.0
"""Doubt grows with the distance from the hull up to here."""

DOUBTS = {
    "unloaded": "unloaded latency",
    "capacity": "capacity",
    "sharpness": "bend of the curve",
    "host": "unknown host",
    "form": "what drives do beside the curve",
}
"""Names of the parts of a doubt (see `model.doubt`)."""

REPEAT_SD = 0.05
"""Log sd of a measured point of a surface with too few rows to learn its own."""

QUANTITIES = ("latency", "p50", "p99", "p999")


@dataclass(frozen=True)
class Direction:
    """One direction's prediction: log values and log half widths of 90 %, shape (n,)."""

    log_value: dict[str, Floats]
    half_width: dict[str, Floats]
    evidence: Codes


_NO_TIME_NS = 1e-30
"""Stands for no time at all where a logarithm is taken."""


class PerformanceModel:
    """Evaluates a profile's surfaces; build once, call often."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.paths: HostPaths = host_paths(profile)
        self.state = DeviceState(profile)
        self.simulated = SimulatedTables(profile, self.paths)
        self._surfaces = {
            (operation, pattern): _LoadedSurface(profile, operation, pattern, self.paths)
            for operation in ("read", "write")
            for pattern in PATTERNS
        }
        states = max((e.power_state for e in profile.power_state_effects), default=0) + 1
        self._effects = np.zeros((2, states, 7))
        self._effect_evidence = np.full((2, states), PUBLISHED)
        for effect in profile.power_state_effects:
            ceiling = effect.ceiling_bytes_per_second
            each = effect.ceiling_seconds_per_operation
            if ceiling.evidence is Evidence.MEASURED:
                direction = int(effect.operation is Operation.WRITE)
                self._effect_evidence[direction, effect.power_state] = INTERPOLATED
            self._effects[int(effect.operation is Operation.WRITE), effect.power_state] = (
                1e9 / ceiling.value,
                each.value * 1e9 if each else 0.0,
                ceiling.sd,
                np.log(effect.latency_factor.value),
                effect.latency_factor.sd,
                np.log(effect.tail_factor.value),
                effect.tail_factor.sd,
            )

    def points(self, frame: Frame, operating: OperatingPoint | None = None) -> tuple[Points, Codes]:
        """Coordinates of the rows and their path codes; None: the host is set as it was."""
        code = code_of(frame)
        commands, log2_bytes = split_commands(frame.request_bytes, self.profile.max_transfer_bytes)
        paths = self.paths
        log_depth, log_jobs = np.log(frame.queue_depth), np.log(frame.jobs)
        core = paths.core_ns[code] + paths.wakeup_ns[code] * np.exp(-WAKEUP_EXPONENT * log_depth)
        added = paths.added_latency_ns[code]
        if operating is not None:
            core, added = operating.core_ns(core), operating.added_latency_ns(added)
        cores = np.minimum(frame.cores, self.profile.host.cpu_cores)
        # what is under one lock uses as many cores as take turns at it
        useful = np.minimum(cores, core / paths.serial_ns[code])
        return Points(
            log_depth + log_jobs,
            commands,
            log2_bytes,
            np.log2(frame.request_bytes),
            log_depth / np.log(2.0),
            log_jobs / np.log(2.0),
            np.minimum(log_jobs, np.log(useful)),
            np.maximum(added, 1.0),
            core,
        ), code

    def direction(
        self,
        frame: Frame,
        points: Points,
        code: Codes,
        operation: str,
        runs: int = 1,
        names: Sequence[str] = QUANTITIES,
    ) -> Direction:
        """Predict one direction as if the workload were nothing else.

        `runs` rows in a row differ in power state only: the surface is evaluated once for them.
        `names` are the quantities wanted, "latency" among them.
        """
        if runs > 1:
            first = slice(None, None, runs)
            once = self._surface(
                frame.pattern[first], _take(points, first), code[first], operation, names
            )
            result = Direction(
                {name: np.repeat(value, runs) for name, value in once.log_value.items()},
                {name: np.repeat(half, runs) for name, half in once.half_width.items()},
                np.repeat(once.evidence, runs),
            )
        else:
            result = self._surface(frame.pattern, points, code, operation, names)
        self._apply_power_state(result, frame, points, operation)
        if self.simulated:
            self._apply_simulated(result, frame, points, code, operation)
        if operation == "write":
            self._apply_collecting(result, frame, points)
        return result

    def variances(
        self, operation: str, pattern: str, points: Points, code: Codes, name: str
    ) -> list[tuple[str, float]]:
        """Where the variance of one point's log latency or percentile comes from, at PS0."""
        return self._surfaces[operation, pattern].variances(points, code, name)

    def _surface(
        self, pattern: Codes, points: Points, code: Codes, operation: str, names: Sequence[str]
    ) -> Direction:
        """Evaluate the surfaces of the patterns at PS0."""
        patterns = np.unique(pattern)
        if len(patterns) == 1:
            return self._surfaces[operation, PATTERNS[patterns[0]]].evaluate(points, code, names)
        return _merge(
            [
                (
                    mask,
                    self._surfaces[operation, PATTERNS[one]].evaluate(
                        _take(points, mask), code[mask], names
                    ),
                )
                for one in patterns
                for mask in [pattern == one]
            ],
            len(pattern),
        )

    def _apply_simulated(
        self, result: Direction, frame: Frame, points: Points, code: Codes, operation: str
    ) -> None:
        """Answer from the calibrated simulator what would be extrapolated less surely."""
        wanted = result.evidence >= EXTRAPOLATED
        for told in self.simulated.answer(frame, points, code, operation, wanted):
            better = told.half_width["latency"] < result.half_width["latency"][told.rows]
            rows = told.rows[better]
            for name in result.log_value:
                result.log_value[name][rows] = told.log_value[name][better]
                result.half_width[name][rows] = told.half_width[name][better]
            result.evidence[rows] = SIMULATED

    def _apply_power_state(
        self, result: Direction, frame: Frame, points: Points, operation: str
    ) -> None:
        low = frame.power_state > 0
        if not low.any():
            return
        # one contiguous row an effect: this runs over every candidate of a recommendation
        byte_ns, each_ns, ceiling_sd, factor, factor_sd, tail, tail_sd = np.take(
            self._effects[int(operation == "write")].T, frame.power_state, axis=1
        )
        request_ns = each_ns + frame.request_bytes * byte_ns
        queueing = points.log_requests + np.log(np.maximum(request_ns, _NO_TIME_NS))
        slowed = result.log_value["latency"] + factor
        # PS0 has no ceiling (no time a request) and no other effect, so it needs no case of its own
        throttled = log_smooth_max(slowed, queueing, 4.0)
        weight = 1.0 / (1.0 + np.exp(np.clip(-4.0 * (queueing - slowed), -50, 50)))
        shift = throttled - result.log_value["latency"]
        variance = ((weight * ceiling_sd) ** 2 + factor_sd**2) * 1.645**2
        tail_shift = shift + weight * tail
        tail_variance = variance + (1.645 * weight * tail_sd) ** 2
        for name in result.log_value:
            heavy = name in ("p99", "p999")
            result.log_value[name] = result.log_value[name] + (tail_shift if heavy else shift)
            result.half_width[name] = np.sqrt(
                result.half_width[name] ** 2 + (tail_variance if heavy else variance)
            )
        told = self._effect_evidence[int(operation == "write"), frame.power_state]
        result.evidence[low] = np.maximum(result.evidence[low], told[low])

    def _apply_collecting(self, result: Direction, frame: Frame, points: Points) -> None:
        slowed, unsure = self.state.slowed(frame)
        if not (slowed.any() or unsure.any()):
            return
        rate, rate_sd = self.state.collecting_rate(frame)
        queueing = points.log_requests + np.log(frame.request_bytes) - np.log(rate * 1e-9)
        before = result.log_value["latency"]
        slower = log_smooth_max(before, queueing, 4.0)
        shift = slowed * (slower - before)
        sd = np.hypot(slowed * rate_sd, unsure * (slower - before))
        for name in result.log_value:
            tail = (name in ("p99", "p999")) * 0.7 * slowed
            result.log_value[name] = result.log_value[name] + shift + tail
            result.half_width[name] = np.hypot(result.half_width[name], 1.645 * np.hypot(sd, tail))


class _LoadedSurface:
    """A surface with its arrays built; another pattern or direction stands in if absent."""

    def __init__(
        self, profile: DeviceProfile, operation: str, pattern: str, paths: HostPaths
    ) -> None:
        other = PATTERNS[1 - PATTERNS.index(pattern)]
        reverse = "write" if operation == "read" else "read"
        found: Surface | None = None
        for rank, key in enumerate(
            ((operation, pattern), (operation, other), (reverse, pattern), (reverse, other))
        ):
            found = profile.surface(*key)
            if found is not None:
                self.borrowed = rank > 0
                break
        if found is None:
            raise ValueError(f"{profile.device}: the profile has no performance surface")
        self.surface = found
        self.knots = Knots.of(found, profile.host.sharpness)
        self.table = TableLookup(found.residual) if found.residual else None
        index = self.table.paths if self.table else {}
        self.table_path = np.array([index.get(key, 0) for key in paths.keys], dtype=np.intp)
        self.hull_of = {
            code: found.hulls[key] for code, key in enumerate(paths.keys) if key in found.hulls
        }
        self.known_path = np.array([code in self.hull_of for code in range(len(paths.keys))])
        # a path of the host that was not measured meets the same drive: its main hull counts
        main = max(found.hulls.values(), key=lambda hull: len(hull.normals), default=None)
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
        self.widths = {(str(w.quantity), str(w.region)): w for w in found.widths}

    def evaluate(self, points: Points, code: Codes, names: Sequence[str] = QUANTITIES) -> Direction:
        terms = evaluate_curve(self.knots, points)
        learned = self.table(points, self.table_path[code]) if self.table else {}
        zero = np.zeros(len(code))
        value = {"latency": terms.log_latency + learned.get("latency", zero)}
        for tail in self.surface.tails:
            name: str = tail.quantile
            if name == "p999" and name not in names:
                continue  # p50 bounds p99 from below; nothing follows from p99.9
            ratio = log_tail_ratio(tail, self.knots, points, terms, value["latency"])
            value[name] = value["latency"] + ratio + learned.get(name, zero)
        for name in QUANTITIES:
            value.setdefault(name, np.full(len(code), np.nan))
        value["p99"] = np.fmax(value["p99"], value["p50"])
        value["p999"] = np.fmax(value["p999"], value["p99"])
        distance = np.minimum(self._distance(points, code), FAR_OCTAVES)
        inside = distance <= 0
        apart = 1.645 * np.hypot(self.path_sd, BORROWED_SD * self.borrowed)[code]
        half = {}
        for name in names:
            width = self._width(name, learned.get(f"{name}_sd"), distance, inside)
            if self.surface.doubt is not None:
                doubted = self._doubtful(self.surface.doubt, name, points, terms)
                scored = any(w.scores for key, w in self.widths.items() if key[0] == name)
                width = np.maximum(width, doubted) if scored else doubted
            half[name] = np.sqrt(width * width + apart * apart)
        return Direction(
            {name: value[name] for name in names},
            half,
            self._evidence(learned, inside & self.known_path[code]),
        )

    def _width(
        self, name: str, sd: Floats | None, distance: Floats, inside: NDArray[np.bool_]
    ) -> Floats:
        """Half width of 90 %: conformal where there were scores, else from the stated sd."""
        within = self.widths.get((name, "inside"))
        beyond = self.widths.get((name, "outside"), within)
        if within is None or beyond is None:
            measured = self.surface.evidence == Evidence.MEASURED
            base = np.where(inside & measured, REPEAT_SD, self.surface.relative_sd)
            return np.asarray(1.645 * np.hypot(base, 0.1 * distance))
        local = self.surface.relative_sd if sd is None else sd
        spread = np.sqrt(local * local + within.floor_sd**2) + beyond.sd_per_octave * distance
        return np.asarray(np.where(inside, within.factor, beyond.factor) * spread)

    def variances(self, points: Points, code: Codes, name: str) -> list[tuple[str, float]]:
        """Sources of the variance of one point, and how much each is."""
        half = float(self.evaluate(points, code, ("latency", name)).half_width[name][0]) / 1.645
        path = float(self.path_sd[code][0]) ** 2
        parts = [
            ("host path that was not measured", path),
            ("another pattern or direction stands in", (BORROWED_SD * self.borrowed) ** 2),
        ]
        doubted = self.surface.doubt
        if doubted is not None:
            terms = evaluate_curve(self.knots, points)
            scale = (doubted.factor / 1.645) ** 2
            shares = doubt.variance_shares(doubted, self.knots, points, terms)
            parts += [(DOUBTS[key], scale * float(one[0])) for key, one in shares.items()]
        rest = half**2 - sum(one for _, one in parts)
        if doubted is None:
            word = "curve and learned residual" if name == "latency" else "curve, residual and tail"
        else:
            word = "rows left out" if name == "latency" else "tail law"
        return [*parts, (word, max(rest, 0.0))]

    def _doubtful(
        self, doubted: CurveDoubt, name: str, points: Points, terms: CurveTerms
    ) -> Floats:
        """Half width of 90 % where the prior of other drives carries the curve, or most of it.

        A percentile's own doubt (`widths`) comes on top of that of the mean.
        """
        spread = doubt.latency_sd(doubted, self.knots, points, terms)
        stated = self.widths.get((name, "outside"))
        if stated is not None and not stated.scores:
            spread = np.hypot(spread, stated.floor_sd)
        return np.asarray(doubted.factor * spread)

    def _distance(self, points: Points, code: Codes) -> Floats:
        distance = np.full(len(code), 4.0)
        chosen = self.hull_index[code]
        for index, hull in enumerate(self.hulls):
            mask = chosen == index
            if mask.any():
                distance[mask] = hull_distance(hull, _take(points, mask))
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


def _take(points: Points, mask: NDArray[np.bool_] | slice) -> Points:
    return Points(*(getattr(points, name)[mask] for name in Points.__dataclass_fields__))


def _merge(parts: list[tuple[NDArray[np.bool_], Direction]], rows: int) -> Direction:
    names = tuple(parts[0][1].log_value)
    value = {name: np.empty(rows) for name in names}
    half = {name: np.empty(rows) for name in names}
    evidence = np.empty(rows, dtype=np.intp)
    for mask, part in parts:
        for name in names:
            value[name][mask] = part.log_value[name]
            half[name][mask] = part.half_width[name]
        evidence[mask] = part.evidence
    return Direction(value, half, evidence)
