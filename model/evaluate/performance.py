"""Throughput and latency of a frame: surfaces, power states, device state and mixes.

A drive that was built otherwise: the measured one's predictions times simulated ratios.

The simulator says how the drive's own latency L and power W change from its base to its changed
geometry, at the same requests in flight. A prediction P of the measured drive becomes

    P' = P x L_changed / L_base

in the drive's part of the latency; the host's part, and the wait for its cores, stay. What the
simulator errs at both geometries alike cancels. Power follows from the profile's law at the
changed rate, times what the simulated watts differ from the base's joules a request at that rate.

Answers from the tables of a calibrated simulator, where nothing measured is near.

The simulator itself is not needed: what it says, with the residual that was learned on the
measurements, stands in the profile. A row is answered from it where the profile would extrapolate,
the tables reach, and their interval is narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets import vocabulary
from iojoule.datasets.profile import (
    CEILING_COMMANDS,
    CEILING_SHARPNESS,
    DeviceProfile,
    RatioError,
    SimulatedTable,
)
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate import device_power, power_limit
from iojoule.model.evaluate.bands import (
    EXTRAPOLATED,
    INTERPOLATED,
    MEASURED,
    PUBLISHED,
    SIMULATED,
    Codes,
    Direction,
    Floats,
    merge,
)
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.device_work import device_work, load
from iojoule.model.evaluate.frame import ENGINES, PATTERNS, RANDOM, SEQUENTIAL, Frame
from iojoule.model.evaluate.loaded_surface import LoadedSurface
from iojoule.model.evaluate.operating_point import HostPaths, OperatingPoint, code_of, host_paths
from iojoule.model.evaluate.power_limit import law_states
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.state_residual import StateResiduals
from iojoule.model.evaluate.surface import (
    QUANTITIES,
    Points,
    TableLookup,
    log_smooth_max,
    split_commands,
)


class Ratios:
    """The ratios of a profile, ready to be asked; False where it has none."""

    def __init__(self, profile: DeviceProfile) -> None:
        section, self._profile = profile.rebuilt, profile
        self._tables = {
            (table.operation.value, PATTERNS.index(table.pattern.value)): TableLookup(table.table)
            for table in (section.tables if section else ())
        }
        self._errors = {error.quantity: error for error in (section.errors if section else ())}

    def __bool__(self) -> bool:
        return bool(self._tables)

    def log_ratios(
        self, frame: Frame, points: Points, operation: str
    ) -> dict[str, tuple[Floats, Floats]]:
        """Log ratio and its log sd by quantity, each of shape (n,).

        Rows of a pattern that was not simulated keep ratio 1, as unsure as the floor.
        """
        ratios: dict[str, tuple[Floats, Floats]] = {}
        none = np.zeros(len(frame))
        in_flight = replace(points, log2_depth=points.log2_depth + points.log2_jobs, log2_jobs=none)
        for (of, pattern), table in self._tables.items():
            rows = np.flatnonzero(frame.pattern == pattern)
            if of != operation or not len(rows):
                continue
            place = _states(table, law_states(self._profile, frame.power_state[rows]))
            for name, values in table(in_flight.take(rows), place).items():
                if name in self._errors:
                    error = self._errors[name]
                    nothing = np.zeros(len(frame)), np.full(len(frame), error.floor)
                    value, sd = ratios.setdefault(name, nothing)
                    value[rows] = values
                    sd[rows] = log_sd(error, values)
        return ratios

    def watts(self, frame: Frame, points: Points) -> tuple[Floats, Floats]:
        """Log of the factor on the law's watts and its log sd; of a mix by its share of reads."""
        value, sd = np.zeros(len(frame)), np.zeros(len(frame))
        for operation, share in (("read", frame.read_fraction), ("write", 1 - frame.read_fraction)):
            ratio = self.log_ratios(frame, points, operation).get("watts")
            if ratio is None:  # nobody simulated watts: the law alone, as unsure as the least
                floor = self._errors["watts"].floor if "watts" in self._errors else 0.0
                ratio = np.zeros(len(frame)), np.full(len(frame), floor)
            value += share * ratio[0]
            sd += share * ratio[1]
        return value, sd


def log_sd(error: RatioError, log_ratio: Floats) -> Floats:
    """How sure ratios are, shape (n,)."""
    moved = np.minimum(np.abs(log_ratio), error.most)
    return np.asarray(np.hypot(error.floor, error.share * moved))


def _states(table: TableLookup, power_state: Codes) -> Codes:
    """Places of the power states; one that was not simulated takes PS0's ratio."""
    first = table.paths["ps0"]
    return np.array(
        [table.paths.get(f"ps{int(state)}", first) for state in power_state], dtype=np.intp
    )


@dataclass(frozen=True)
class SimulatedAnswer:
    """What the tables say of the rows that they reach.

    Attributes:
        rows: Indices of these rows, shape (k,).
        log_value: Log of latency, p50, p99 and p99.9 in ns, and of watts where known, shape (k,).
        half_width: Log half widths of 90 %, likewise.
    """

    rows: Codes
    log_value: dict[str, Floats]
    half_width: dict[str, Floats]


class SimulatedTables:
    """The tables of a profile, ready to be asked; False where it has none."""

    def __init__(self, profile: DeviceProfile, paths: HostPaths) -> None:
        section, self._profile = profile.simulated, profile
        self.base_watts = section.base_watts if section else None
        self._loaded = {
            (table.operation.value, PATTERNS.index(table.pattern.value)): _Loaded(table, paths)
            for table in (section.tables if section else ())
        }

    def __bool__(self) -> bool:
        return bool(self._loaded)

    def answer(
        self, frame: Frame, points: Points, code: Codes, operation: str, wanted: NDArray[np.bool_]
    ) -> list[SimulatedAnswer]:
        """What the tables say of the wanted rows, one answer a pattern.

        Args:
            frame: The questions.
            points: Their coordinates.
            code: Their host paths.
            operation: read or write.
            wanted: Rows that are asked for, shape (n,).
        """
        predictions, states = [], law_states(self._profile, frame.power_state)
        for (of, pattern), table in self._loaded.items():
            if of == operation:
                rows = np.flatnonzero(wanted & (frame.pattern == pattern))
                rows = rows[table.reaches(points, code, states, rows)]
                if rows.size:
                    predictions.append(table.answer(points, code, states, rows))
        return predictions


class _Loaded:
    """One table with its arrays built."""

    def __init__(self, table: SimulatedTable, paths: HostPaths) -> None:
        self.lookup = TableLookup(table.table)
        self._row_of_state: dict[tuple[int, int], int] = {}
        for place, name in enumerate(table.table.paths):
            key, _, state = name.rpartition(" ps")
            if key in paths.keys:
                self._row_of_state[paths.keys.index(key), int(state)] = place

    def reaches(self, points: Points, code: Codes, power_state: Codes, rows: Codes) -> Codes:
        """Which of the rows lie within the axes, on a path and in a state that were simulated."""
        inside = np.array(
            [
                pair in self._row_of_state
                for pair in zip(code[rows], power_state[rows], strict=True)
            ],
            dtype=bool,
        )
        for axis, x in zip(
            self.lookup.axes,
            (points.log2_depth, points.log2_jobs, points.log2_request),
            strict=True,
        ):
            inside &= (x[rows] >= axis[0] - 1e-9) & (x[rows] <= axis[-1] + 1e-9)
        return np.asarray(inside)

    def answer(
        self, points: Points, code: Codes, power_state: Codes, rows: Codes
    ) -> SimulatedAnswer:
        own = Points(*(getattr(points, name)[rows] for name in Points.__dataclass_fields__))
        place = np.array(
            [self._row_of_state[pair] for pair in zip(code[rows], power_state[rows], strict=True)],
            dtype=np.intp,
        )
        looked_up = self.lookup(own, place)
        value = {"latency": looked_up["latency"]}
        half = {"latency": NORMAL_90 * looked_up["latency_sd"]}
        for name in ("p50", "p99", "p999"):
            value[name] = looked_up["latency"] + looked_up[name]
            half[name] = NORMAL_90 * np.hypot(looked_up["latency_sd"], looked_up[f"{name}_sd"])
        if "watts" in looked_up:
            value["watts"], half["watts"] = looked_up["watts"], NORMAL_90 * looked_up["watts_sd"]
        return SimulatedAnswer(rows, value, half)


WAKEUP_EXPONENT = 0.8
"""Core time per request falls as wake-up x depth^-0.8 with the depth of a job, because deeper jobs
reap several completions a wake-up. With 2.6 us a request and 5.1 us a wake-up this gives 7.7, 4.3,
3.2 and 2.8 us at depths 1, 4, 16 and 64, where the CPU columns of the 980 PRO sweeps say 7.7, 4.9,
3.2 and 2.6 us."""

COLLECTING_TAIL = 0.7
"""Log factor on the percentiles beyond that on the mean while the drive collects, and its sd."""

ONE_AT_A_TIME = np.array([name in vocabulary.ONE_AT_A_TIME for name in ENGINES])
"""Whether a job of each engine has one request at the drive at a time."""

STREAMS_SD = 0.1
"""Log sd by which several sequential streams miss what readahead leaves of them (000 5.13)."""


_NO_TIME_NS = 1e-30
"""Stands for no time at all where a logarithm is taken."""


class StateEffects(NamedTuple):
    """What power states do to one direction of n rows, each of shape (n,).

    Attributes:
        byte_ns: Time that the ceiling takes for a byte, ns.
        each_ns: Likewise for a request.
        ceiling_sd: Log sd of the ceiling.
        factor: Log factor on the latency.
        factor_sd: Its sd.
        tail: Log factor on the percentiles.
        tail_sd: Its sd.
        deep: Exponent by which the ceiling falls with the depth.
        deep_sd: Its sd.
        sharp: Sharpness of the bend.
        sharp_sd: Its log sd.
    """

    byte_ns: Floats
    each_ns: Floats
    ceiling_sd: Floats
    factor: Floats
    factor_sd: Floats
    tail: Floats
    tail_sd: Floats
    deep: Floats
    deep_sd: Floats
    sharp: Floats
    sharp_sd: Floats

    def log_queueing_ns(self, log_requests: Floats | float, frame: Frame, deeper: Floats) -> Floats:
        """Log of the time that the ceiling leaves so many requests, ns."""
        each = np.maximum(self.each_ns + frame.request_bytes * self.byte_ns, _NO_TIME_NS)
        return np.asarray(log_requests + np.log(each) + self.deep * deeper)


@dataclass(frozen=True)
class Rows:
    """n configurations whose rates are predicted.

    Attributes:
        frame: The configurations.
        points: Their coordinates, the host set as they say.
        code: Their host paths, shape (n,).
        x: Regressors of the power law, shape (n, 6).
    """

    frame: Frame
    points: Points
    code: Codes
    x: Floats


class PerformanceModel:
    """Evaluates a profile's surfaces; build once, call often."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.paths: HostPaths = host_paths(profile)
        self.state = DeviceState(profile)
        self.simulated = SimulatedTables(profile, self.paths)
        self.state_residuals = StateResiduals(profile, self.paths)
        self.rebuilt = Ratios(profile)
        self._surfaces = {
            (operation, pattern): LoadedSurface(profile, operation, pattern, self.paths)
            for operation in ("read", "write")
            for pattern in PATTERNS
        }
        known = (*(e.power_state for e in profile.power_state_effects), *profile.limit_states)
        states = max(known, default=0) + 1
        self._effects = StateEffects(*(np.zeros((2, states)) for _ in StateEffects._fields))
        self._effects.sharp[:] = CEILING_SHARPNESS
        self._effect_evidence = np.full((2, states), PUBLISHED)
        self._effect_evidence[:, power_limit.as_first_state(profile)] = MEASURED
        for effect in profile.power_state_effects:
            at = int(effect.operation is Operation.WRITE), effect.power_state
            ceiling = effect.ceiling_bytes_per_second
            self._effects.byte_ns[at] = 1e9 / ceiling.value
            self._effects.ceiling_sd[at] = ceiling.sd
            if ceiling.evidence is Evidence.MEASURED:
                self._effect_evidence[at] = INTERPOLATED
            if effect.ceiling_seconds_per_operation is not None:
                self._effects.each_ns[at] = effect.ceiling_seconds_per_operation.value * 1e9
            self._effects.factor[at] = np.log(effect.latency_factor.value)
            self._effects.factor_sd[at] = effect.latency_factor.sd
            self._effects.tail[at] = np.log(effect.tail_factor.value)
            self._effects.tail_sd[at] = effect.tail_factor.sd
            if (deep := effect.ceiling_depth_exponent) is not None:
                self._effects.deep[at], self._effects.deep_sd[at] = deep.value, deep.sd
            if (sharp := effect.ceiling_sharpness) is not None:
                self._effects.sharp[at], self._effects.sharp_sd[at] = sharp.value, sharp.sd

    def points(self, frame: Frame, operating: OperatingPoint | None = None) -> tuple[Points, Codes]:
        """Coordinates of the rows and their path codes; None: the host is set as it was."""
        code = code_of(frame)
        commands, log2_bytes = split_commands(frame.request_bytes, self.profile.max_transfer_bytes)
        depth = np.where(ONE_AT_A_TIME[frame.engine], 1.0, frame.queue_depth)
        log_depth, log_jobs = np.log(depth), np.log(frame.jobs)
        core, added, useful = self.host_costs(code, log_depth, frame.cores, operating)
        return Points(
            log_depth + log_jobs,
            commands,
            log2_bytes,
            np.log2(frame.request_bytes),
            log_depth / np.log(2.0),
            log_jobs / np.log(2.0),
            np.minimum(log_jobs, np.log(useful)),
            added,
            core,
        ), code

    def host_costs(
        self,
        code: Codes,
        log_depth: Floats,
        cores: Floats | float,
        operating: OperatingPoint | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """What a request costs the host; all arguments broadcast.

        Returns:
            Core time and added latency of a request, ns, and the cores that can serve requests.
        """
        paths = self.paths
        core = paths.core_ns[code] + paths.wakeup_ns[code] * np.exp(-WAKEUP_EXPONENT * log_depth)
        added = paths.added_latency_ns[code]
        if operating is not None:
            core, added = operating.core_ns(core), operating.added_latency_ns(added)
        cores = np.minimum(cores, self.profile.host.cpu_cores)
        # what is under one lock uses as many cores as take turns at it
        useful = np.minimum(cores, core / paths.serial_ns[code])
        return core, np.maximum(added, 1.0), useful

    def direction(
        self,
        frame: Frame,
        points: Points,
        code: Codes,
        operation: str,
        runs: int = 1,
        names: Sequence[str] = QUANTITIES,
        *,
        waits: bool = True,
    ) -> Direction:
        """Predict one direction as if the workload were nothing else.

        `runs` rows in a row differ in power state only: the surface is evaluated once for them.
        `names` are the quantities wanted, "latency" among them. `waits` False: the drive is always
        ready for another write over data.
        """
        added, added_sd = np.zeros(len(frame)), 0.0
        reached = points
        if operation == "write" and waits:
            added, added_sd = self.state.overwriting(frame)
            if added.any():
                reached = replace(points, added_latency_ns=points.added_latency_ns + added)
        if runs > 1:
            first = slice(None, None, runs)
            once = self._surface(
                frame.pattern[first], reached.take(first), code[first], operation, names
            )
            result = Direction(
                {name: np.repeat(value, runs) for name, value in once.log_value.items()},
                {name: np.repeat(half, runs) for name, half in once.half_width.items()},
                np.repeat(once.evidence, runs),
                np.repeat(once.sharpness, runs),
                None if once.log_drive is None else np.repeat(once.log_drive, runs),
            )
        else:
            result = self._surface(frame.pattern, reached, code, operation, names)
        _unsure_by(result, added, added_sd)
        at_ps0 = (
            {name: half.copy() for name, half in result.half_width.items()}
            if self.state_residuals
            else {}
        )
        self._apply_power_state(result, frame, points, operation)
        if self.state_residuals:
            self.state_residuals.correct(result, frame, points, code, operation, at_ps0)
        if self.simulated:
            self._apply_simulated(result, frame, points, code, operation)
        if self.rebuilt:
            self._apply_rebuilt(result, frame, points, operation)
        if operation == "write":
            self._apply_collecting(result, frame, points)
        self._apply_limit(result, frame, points, code, operation)
        return result

    def write_load(self, frame: Frame, points: Points, writes_per_second: Floats) -> Floats:
        """Share of the drive's capacity for writes that is used, 0 to 1, shape (n,)."""
        return load(writes_per_second, self.log_least_write_ns(frame, points))

    def log_least_write_ns(self, frame: Frame, points: Points) -> Floats:
        """Log of the time that a write takes of the drive at capacity, ns, shape (n,).

        The capacity is that of the surface for the size, or what the power state leaves of it.
        """
        log_least = np.empty(len(frame))
        for place, pattern in enumerate(PATTERNS):
            rows = frame.pattern == place
            if rows.any():
                surface = self._surfaces["write", pattern]
                log_least[rows] = surface.log_least_ns(points.take(rows))
        if frame.power_state.any():
            effects = self.state_effects("write", frame.power_state)
            held = effects.log_queueing_ns(0.0, frame, _deeper(points))
            log_least = np.maximum(log_least, held)
        return log_least

    def surface(self, operation: str, pattern: str) -> LoadedSurface:
        """The surface that answers for an operation and a pattern."""
        return self._surfaces[operation, pattern]

    def variances(
        self, operation: str, pattern: str, points: Points, code: Codes, name: str
    ) -> list[tuple[str, float]]:
        """Where the variance of one point's log latency or percentile comes from, at PS0."""
        return self._surfaces[operation, pattern].variances(points, code, name)

    def _surface(
        self, pattern: Codes, points: Points, code: Codes, operation: str, names: Sequence[str]
    ) -> Direction:
        """Evaluate the surfaces of the patterns at PS0."""
        patterns = np.flatnonzero(np.bincount(pattern))
        if len(patterns) == 1:
            surface = self._surfaces[operation, PATTERNS[patterns[0]]]
            result = surface.evaluate(points, code, names)
            if operation == "read" and patterns[0] == SEQUENTIAL and surface.one_stream:
                self._several_streams(result, points, code)
            return result
        return merge(
            [
                (at, self._surface(pattern[at], points.take(at), code[at], operation, names))
                for name in patterns
                for at in [np.flatnonzero(pattern == name)]
            ],
            len(pattern),
        )

    def _several_streams(self, result: Direction, points: Points, code: Codes) -> None:
        """Slow sequential reads of several jobs down to what the drive's readahead can follow.

        Measured with one job, a sequential read is served ahead of its request. Of several streams
        at once the drive serves no more than of one, or as many as of random reads where that is
        more: the 980 PRO reaches 975 MB/s with 1 to 8 jobs of 16 KiB (000 5.4), and from 8 jobs of
        4 KiB on what random reads reach (000 5.12 and 5.13).
        """
        rows = np.flatnonzero(points.log2_jobs > 0.0)
        if not len(rows):
            return
        some = points.take(rows)
        log_jobs = some.log2_jobs * np.log(2.0)
        alone = replace(
            some,
            log_requests=some.log_requests - log_jobs,
            log2_jobs=np.zeros(len(rows)),
            log_cores=np.zeros(len(rows)),
        )
        single = self._surfaces["read", PATTERNS[SEQUENTIAL]].evaluate(
            alone, code[rows], ("latency",)
        )
        scattered = self._surfaces["read", PATTERNS[RANDOM]].evaluate(
            some, code[rows], ("latency",)
        )
        slowest = np.minimum(log_jobs + single.log_value["latency"], scattered.log_value["latency"])
        longer = np.maximum(slowest - result.log_value["latency"][rows], 0.0)
        for name in result.log_value:
            result.log_value[name][rows] += longer
            half = result.half_width[name][rows]
            result.half_width[name][rows] = np.hypot(half, NORMAL_90 * STREAMS_SD)
        result.evidence[rows] = np.maximum(result.evidence[rows], EXTRAPOLATED)

    def _apply_simulated(
        self, result: Direction, frame: Frame, points: Points, code: Codes, operation: str
    ) -> None:
        """Answer from the calibrated simulator what would be extrapolated less surely."""
        wanted = result.evidence >= EXTRAPOLATED
        for simulated in self.simulated.answer(frame, points, code, operation, wanted):
            better = simulated.half_width["latency"] < result.half_width["latency"][simulated.rows]
            rows = simulated.rows[better]
            for name in result.log_value:
                result.log_value[name][rows] = simulated.log_value[name][better]
                result.half_width[name][rows] = simulated.half_width[name][better]
            result.evidence[rows] = SIMULATED

    def _apply_rebuilt(
        self, result: Direction, frame: Frame, points: Points, operation: str
    ) -> None:
        """Scale the drive's part of the latency by the simulated ratio."""
        ratios = self.rebuilt.log_ratios(frame, points, operation)
        if "latency" not in ratios:
            return
        ratio, _ = ratios["latency"]
        longer = self._slowed(result, points, ratio) - result.log_value["latency"]
        drives = np.exp(np.zeros(len(frame)) if result.log_drive is None else result.log_drive)
        for name in result.log_value:
            own, sd = ratios[name]
            further = drives * (own - ratio)
            result.log_value[name] = result.log_value[name] + longer + further
            result.half_width[name] = np.hypot(result.half_width[name], NORMAL_90 * drives * sd)

    def _apply_power_state(
        self, result: Direction, frame: Frame, points: Points, operation: str
    ) -> None:
        low = frame.power_state > 0
        if not low.any():
            return
        effects = self.state_effects(operation, frame.power_state)
        deeper = _deeper(points)
        queueing = effects.log_queueing_ns(points.log_requests, frame, deeper)
        ceiling_sd = np.hypot(effects.ceiling_sd, effects.deep_sd * deeper)
        slowed = self._slowed(result, points, effects.factor)
        # PS0 has no ceiling (no time a request) and no other effect, so it needs no case of its own
        throttled = log_smooth_max(slowed, queueing, effects.sharp)
        weight = 1.0 / (1.0 + np.exp(np.clip(-effects.sharp * (queueing - slowed), -50, 50)))
        shift = throttled - result.log_value["latency"]
        bend = throttled - np.maximum(slowed, queueing)
        variance = (
            (weight * ceiling_sd) ** 2 + effects.factor_sd**2 + (bend * effects.sharp_sd) ** 2
        )
        variance *= NORMAL_90**2
        tail_shift = shift + weight * effects.tail
        tail_variance = variance + (NORMAL_90 * weight * effects.tail_sd) ** 2
        for name in result.log_value:
            heavy = name in ("p99", "p999")
            result.log_value[name] = result.log_value[name] + (tail_shift if heavy else shift)
            result.half_width[name] = np.sqrt(
                result.half_width[name] ** 2 + (tail_variance if heavy else variance)
            )
        result.put_in_order(low)
        effect_evidence = self._effect_evidence[int(operation == "write"), frame.power_state]
        result.evidence[low] = np.maximum(result.evidence[low], effect_evidence[low])

    def _apply_limit(
        self, result: Direction, frame: Frame, points: Points, code: Codes, operation: str
    ) -> None:
        """A power limit holds back what would draw more (`model.evaluate.power_limit`)."""
        power, limited = self.profile.device_power, frame.power_limit_watts > 0
        if power is None or not limited.any() or power_limit.kept_by_states(self.profile):
            return
        log_iops = np.log(1e9) + points.log_requests - result.log_value["latency"]
        reads = np.full(len(frame), float(operation == "read"))
        seen = list(self.state_residuals.corrections(frame, points, code, operation))

        def watts(slowed: Floats) -> Floats:
            iops = np.exp(log_iops - slowed)
            work = device_work(self, frame, points, iops, reads, 1.0 - reads)
            drawn = device_power.law_watts(power, work.regressors, frame.power_state)
            for correction in seen:
                drawn[correction.rows] *= np.exp(correction.values.get("watts", 0.0))
            return drawn

        slowed, sd = power_limit.log_slowed(self.profile, frame.power_limit_watts, watts)
        for name in result.log_value:
            result.log_value[name] = result.log_value[name] + slowed
            result.half_width[name] = np.hypot(result.half_width[name], NORMAL_90 * sd)
        known = EXTRAPOLATED if self.profile.power_limit is None else INTERPOLATED
        held = slowed > 0.0
        result.evidence[held] = np.maximum(result.evidence[held], known)

    def state_effects(self, operation: str, power_state: Codes) -> StateEffects:
        """What power states do to one direction."""
        direction = int(operation == "write")
        return StateEffects(*(each[direction].take(power_state) for each in self._effects))

    def _slowed(self, result: Direction, points: Points, factor: Floats) -> Floats:
        """Log latency where the drive takes exp(factor) times as long, ns.

        The host's own part of a request, and the wait for its cores, stay what they are. With L
        the latency, D what the drive and the path make of it and Q the wait for the cores,
        L^k = D^k + Q^k (`model.evaluate.surface.evaluate_curve`).
        """
        before = result.log_value["latency"]
        share = np.zeros_like(before) if result.log_drive is None else result.log_drive
        drive = np.exp(before + share)
        hosts = np.minimum(points.added_latency_ns, 0.9 * drive)
        longer = np.log((hosts + (drive - hosts) * np.exp(factor)) / drive)
        sharpness = self.profile.host.sharpness
        waited = -np.expm1(sharpness * share)
        grown = np.log(np.exp(sharpness * (share + longer)) + waited) / sharpness
        return np.asarray(before + grown)

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
            tail = (name in ("p99", "p999")) * COLLECTING_TAIL * slowed
            result.log_value[name] = result.log_value[name] + shift + tail
            result.half_width[name] = np.hypot(
                result.half_width[name], NORMAL_90 * np.hypot(sd, tail)
            )


def _deeper(points: Points) -> Floats:
    """Log of the commands in flight over those at which a ceiling is stated."""
    return np.asarray(points.log_requests + np.log(points.commands / CEILING_COMMANDS))


def _unsure_by(result: Direction, added_ns: Floats, log_sd: float) -> None:
    """Widen by a part of the latency that is known to `log_sd` only, and lower the evidence."""
    rows = added_ns > 0
    if not rows.any():
        return
    share = np.minimum(added_ns[rows] * np.exp(-result.log_value["latency"][rows]), 1.0)
    for half in result.half_width.values():
        half[rows] = np.hypot(half[rows], NORMAL_90 * log_sd * share)
    result.evidence[rows] = np.maximum(result.evidence[rows], PUBLISHED)
