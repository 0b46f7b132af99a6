"""Every candidate at once, compiled: the search's way of asking what `screen.Judge` answers by row.

The model works out what depends on few axes (`model.product`); the compiled kernel puts it together
for every row (recommender/kernel). A question that the kernel does not know, such as one with
stated gaps, is answered row by row as before. Both ways agree to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import CEILING_COMMANDS
from iojoule.datasets.vocabulary import Completion, Engine
from iojoule.model import device_power, host_power, host_work, linear_law, mixing, system_power
from iojoule.model.band import NORMAL_90
from iojoule.model.columns import Codes
from iojoule.model.frame import COMPLETIONS, ENGINES, PATTERNS, Frame
from iojoule.model.operating_point import operating_point
from iojoule.model.performance import COLLECTING_TAIL, log_ceiling_ns
from iojoule.model.predictor import Predictor
from iojoule.model.product import Product, SurfaceTerms, axes, likes, surface_on
from iojoule.recommender import _kernel
from iojoule.recommender.equal_work import Demand
from iojoule.recommender.factors import SECONDS_A_YEAR, YEARLY
from iojoule.recommender.pareto import Takes
from iojoule.recommender.screen import Judge, Judged, objective_of, rests
from iojoule.recommender.sensitivity import CAP_RELATIVE_SD, MOST_RELATIVE_SD
from iojoule.recommender.sla import ENDURANCE, LATENCY_MAXIMA, POWER_MAXIMA
from iojoule.recommender.space import Candidates, Path, code_of_path
from iojoule.recommender.workload import Scope

Floats = NDArray[np.float64]

QUANTITIES = ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns")
"""In the kernel's order."""

TAILS = ("p50", "p99", "p999")

BLOCK_ROWS = 131_072
"""Candidates evaluated at a time, so that memory stays bounded."""

ROWS_A_THREAD = 8_000
"""Fewer rows than two times this are not worth a second thread."""
THREADS = 2
"""Of one search; whoever searches in several processes has one for each of its cores."""

KEPT_BYTES = 64 << 20
"""Freed memory that the process keeps: glibc maps arrays above 128 KiB anew each time, and touching
their pages again took as long as computing on them."""
_kernel.keep_freed_memory(KEPT_BYTES)

CAPACITY, SERVED, LATENCY, TAIL, DEVICE, CPU, SYSTEM = range(7)
"""The kernel's columns."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive candidates that are laid out only where somebody takes some of them."""

    candidates: Candidates
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def take(self, rows: Any) -> Frame:
        """Some of them, by a slice, a mask or places within the stretch."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.count), dtype=np.intp)
        elif rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return self.candidates.take(rows + self.first)


@dataclass(frozen=True)
class Block:
    """Consecutive candidates, evaluated; the rest as in `screen.Judged`."""

    frame: Stretch
    costs: Floats
    reached: Floats
    violations: Floats
    soft: NDArray[np.bool_]
    feasible: NDArray[np.bool_]

    @property
    def preferred_missed(self) -> Floats:
        """By how much the preferred bounds are missed in all, relative; 0 where all hold."""
        missed = np.zeros(len(self.frame))
        for column in np.flatnonzero(self.soft):
            missed += self.violations[:, column]
        return missed


@dataclass(frozen=True)
class Chosen:
    """Some rows of configurations, by their places."""

    frame: Takes
    places: Codes

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Any) -> Frame:
        """Some of them: a slice, a mask or places."""
        return self.frame.take(self.places[rows])


def judged_blocks(judge: Judge, candidates: Candidates) -> Iterator[Judged | Block]:
    """Every candidate, block by block: compiled, or row by row where the kernel does not know."""
    screened = screening(judge, candidates)
    if screened is not None:
        yield from screened.blocks()
        return
    for frame in candidates.blocks():
        yield judge.screen(frame, len(candidates.states))


def screening(judge: Judge, candidates: Candidates) -> Screening | None:
    """The screening of a question; None where it has to be answered row by row."""
    by_state = candidates.by_state()
    if not _is_known(judge, candidates, by_state):
        return None
    return Screening(judge, candidates, by_state)


def _is_known(judge: Judge, candidates: Candidates, by_state: Frame) -> bool:
    """Whether the kernel knows all that the question and the profile bring."""
    question, performance = judge.question, judge.predictor.performance
    demand, profile = question.demand, judge.predictor.profile
    pattern = PATTERNS[candidates.facts[1]]
    surfaces = [performance.surface(operation, pattern) for operation in _operations(candidates)]
    # no pauses, bursts, gaps or flushes, nor what a demand may say one day
    plain = Demand(
        demand.bytes_per_second, demand.useful_bytes, demand.useful_limit, 0.0, demand.rest,
        demand.rest_assumed, demand.rest_if_even,
    )  # fmt: skip
    return (
        type(judge.predictor) is Predictor  # another one may answer otherwise
        and demand == plain
        and not np.isfinite(candidates.habits["gap_seconds"])
        and not performance.simulated
        and not performance.state_residuals
        and all(one.surface.doubt is None for one in surfaces)
        and operating_point(profile.host_operation, candidates.hosts) is None
        and not performance.state.overwriting(by_state)[0].any()
    )


def _operations(candidates: Candidates) -> list[str]:
    fraction = candidates.facts[0]
    return [*(["read"] if fraction > 0.0 else []), *(["write"] if fraction < 1.0 else [])]


class Screening:
    """One question laid out for the kernel."""

    def __init__(self, judge: Judge, candidates: Candidates, by_state: Frame) -> None:
        self.judge = judge
        self.candidates = candidates
        self.task = _kernel.Task()
        self._by_state = by_state
        self._sizes = candidates.sizes.astype(float)
        self._wanted = self._quantities()
        self._at = self._lay_out()
        self._ask()
        self._draw()
        if judge.limits.keys() & POWER_MAXIMA.keys():
            self._doubt()

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The candidates in their order, about `rows` at a time."""
        run = len(self._sizes) * len(self.candidates.states)
        step, count = max(1, rows // run), len(self.candidates.combos)
        for first in range(0, count, step):
            last = min(first + step, count)
            size = (last - first) * run
            columns, feasible = np.empty((7, size)), np.empty(size, dtype=np.uint8)
            # bound by bound in memory, for whoever reads them takes one after the other
            reached, violations = np.empty((2, len(self.judge.limits), size))
            threads = THREADS if size >= 2 * ROWS_A_THREAD else 1
            self.task.run(
                len(self._at.one_of_each), first, last, columns, feasible, reached, violations,
                threads,
            )  # fmt: skip
            yield Block(
                Stretch(self.candidates, first * run, size), self._costs(columns), reached.T,
                violations.T, self.judge.soft, feasible.view(np.bool_),
            )  # fmt: skip

    def _costs(self, columns: Floats) -> Floats:
        question, power, known = self.judge.question, None, self.task.power
        if question.scope is Scope.DEVICE:
            power = columns[DEVICE] if known.device else None
        elif known.device and known.host:
            power = columns[DEVICE] + columns[CPU]
            if question.scope is Scope.SYSTEM:
                power = columns[SYSTEM] if known.wall else None
        written = columns[SERVED]
        if question.objective in YEARLY:
            share = (1.0 - self.candidates.facts[0]) * self._sizes / self.task.axes.useful_bytes
            states = len(self.candidates.states)
            written = written * np.resize(np.repeat(share, states), columns.shape[1])
        objective = objective_of(
            question, power, columns[CAPACITY], columns[SERVED], written, columns[LATENCY],
            columns[TAIL],
        )  # fmt: skip
        return np.stack([objective, -columns[CAPACITY], columns[TAIL]], axis=1)

    def _quantities(self) -> set[str]:
        """Latencies that the question asks for."""
        wanted = {"latency_mean_ns", self.judge.question.tail}
        return wanted | {LATENCY_MAXIMA[name] for name in self.judge.limits.keys() & LATENCY_MAXIMA}

    def _lay_out(self) -> Product:
        """Fill in the axes, what requests cost the host, and the surfaces."""
        candidates, performance = self.candidates, self.judge.predictor.performance
        profile, told = self.judge.predictor.profile, self.task.axes
        routes = candidates.routes
        code = np.array([code_of_path(Path(e, c, bool(p), s)) for e, c, p, s in routes.tolist()])
        route, depth, jobs, _ = candidates.combos.T
        depths, depth_place = _axis(depth)
        workers, job_place = _axis(jobs)
        in_flight, flight = np.unique(np.multiply.outer(depths, workers), return_inverse=True)
        pattern = PATTERNS[candidates.facts[1]]
        operations = _operations(candidates)
        surfaces = [performance.surface(operation, pattern) for operation in operations]
        one_of_each, group = likes(surfaces, code)
        log_depth = np.log(depths)
        core, added, useful = performance.host_costs(code[:, None], log_depth, np.inf)
        at = axes(
            code, one_of_each, added[:, 0], self._sizes, depths, workers, in_flight,
            profile.max_transfer_bytes,
        )  # fmt: skip
        told.route = np.ascontiguousarray(route)
        told.place = depth_place * len(workers) + job_place
        told.flight, told.route_class = flight.ravel(), group
        told.log_in_flight, told.log_jobs = np.log(in_flight), np.log(workers)
        told.queue_depth, told.request_bytes = depths, self._sizes
        told.log_bytes = np.log(self._sizes)
        told.useful_bytes = np.minimum(self._sizes, self.judge.question.demand.useful_limit)
        told.log_split = np.log(at.commands / CEILING_COMMANDS)
        told.log_fastest = self.judge.predictor.log_link_ns(self._sizes, candidates.facts[0])
        told.states = len(candidates.states)
        self._host(at, core, useful)
        names = tuple(name for name in TAILS if self._is_built(name))
        for operation, surface in zip(operations, surfaces, strict=True):
            self._direction(operation, surface_on(surface, at, names), at)
        return at

    def _is_built(self, tail: str) -> bool:
        """Whether a percentile is wanted, or bounds one that is from below."""
        above = TAILS[TAILS.index(tail) :]
        return any(f"latency_{name}_ns" in self._wanted for name in above)

    def _host(self, at: Product, core: Floats, useful: Floats) -> None:
        host, paths = self.task.host, self.judge.predictor.performance.paths
        profile, (engine, completion, polling, _) = (
            self.judge.predictor.profile, self.candidates.routes.T
        )  # fmt: skip
        host.log_core, host.log_cores = np.log(core), np.log(useful)
        host.added_ns, host.core_ns = at.added_ns, paths.core_ns[at.code]
        host.wakeup_ns, host.factor = paths.wakeup_ns[at.code], paths.power_factor[at.code]
        host.polled = (completion == COMPLETIONS.index(Completion.POLLED)).astype(float)
        host.polling = polling.astype(float)
        host.always = ((engine == ENGINES.index(Engine.SPDK)) | (polling > 0)).astype(float)
        host.byte_ns = host_work.bytes_ns(profile, self._sizes)
        host.active_cores = np.minimum(at.jobs, profile.host.cpu_cores)
        host.cores, host.sharpness = float(profile.host.cpu_cores), profile.host.sharpness

    def _direction(self, operation: str, terms: SurfaceTerms, at: Product) -> None:
        told = self.task.read if operation == "read" else self.task.write
        told.device, told.log_unloaded = terms.device, terms.log_unloaded
        told.learned, told.half = terms.learned, terms.half_width
        told.path_half = terms.path_half_width
        for name, tail in terms.tails.items():
            one = told.tail(QUANTITIES.index(f"latency_{name}_ns"))
            one.collides, one.constant, one.damping = (
                tail.excess is not None, tail.constant, tail.damping
            )  # fmt: skip
            if tail.excess is not None:
                one.excess = tail.excess
            one.learned, one.half = tail.learned, tail.half_width
        performance, states = self.judge.predictor.performance, self.candidates.states
        if (states > 0).any():
            byte, each, ceiling, factor, factor_sd, heavy, heavy_sd, deep, deep_sd = (
                performance.state_effects(operation, states)
            )
            told.log_request_ns = log_ceiling_ns(each[:, None], byte[:, None], self._sizes)
            told.factor, told.heavy, told.deep = factor, heavy, deep
            told.ceiling_half, told.factor_half = 1.645 * ceiling, 1.645 * factor_sd
            told.heavy_half, told.deep_half = 1.645 * heavy_sd, 1.645 * deep_sd
        if operation == "write":
            slowed, unsure = performance.state.slowed(self._by_state)
            if slowed.any() or unsure.any():
                rate, rate_sd = performance.state.collecting_rate(self._by_state)
                told.collects = True
                told.slowed, told.unsure = slowed, 1.645 * unsure
                told.log_rate, told.rate_half = np.log(rate * 1e-9), 1.645 * rate_sd
                told.heavier = COLLECTING_TAIL * slowed
                told.heavier_half = 1.645 * COLLECTING_TAIL * slowed

    def _ask(self) -> None:
        """Fill in the question."""
        asked, question = self.task.asked, self.judge.question
        profile, demand = self.judge.predictor.profile, question.demand
        fraction, pattern = self.candidates.facts[:2]
        asked.read_fraction = fraction
        asked.between_half = NORMAL_90 * profile.between_drives_relative_sd.value
        slower, slower_sd, heavier, heavier_sd = mixing.by_pattern(profile.mixed)[:, pattern]
        asked.slower, asked.heavier = slower, heavier
        asked.slower_half, asked.heavier_half = NORMAL_90 * slower_sd, NORMAL_90 * heavier_sd
        asked.demand, asked.rest = demand.bytes_per_second or 0.0, demand.rest
        asked.useful_bytes = demand.useful_bytes
        asked.tail = QUANTITIES.index(question.tail)
        asked.wanted = sum(1 << q for q, name in enumerate(QUANTITIES) if name in self._wanted)
        asked.built = 1 + sum(2 << q for q, name in enumerate(TAILS) if self._is_built(name))
        rated = profile.endurance_bytes_written
        if ENDURANCE in self.judge.limits and rated is not None:
            left = max(0.0, 1.0 - (question.percentage_used or 0.0) / 100.0)
            asked.years_bytes = rated.value * left / SECONDS_A_YEAR
        asked.bounds = [self._bound(name, limit) for name, limit in self.judge.limits.items()]

    def _bound(self, name: str, limit: float) -> _kernel.Bound:
        kind, quantity = _kernel.Kind.CAPACITY, 0
        if name in LATENCY_MAXIMA:
            kind, quantity = _kernel.Kind.LATENCY, QUANTITIES.index(LATENCY_MAXIMA[name])
        elif name in POWER_MAXIMA:
            kind, quantity = _kernel.Kind.POWER, list(POWER_MAXIMA).index(name)
        elif name == ENDURANCE:
            kind = _kernel.Kind.ENDURANCE
        elif name == "iops_min":
            kind = _kernel.Kind.OPERATIONS
        soft = name in self.judge.question.sla.soft
        return _kernel.Bound(kind, quantity, limit, self.judge.scales[name], soft)

    def _draw(self) -> None:
        """Fill in the laws of power."""
        profile, told = self.judge.predictor.profile, self.task.power
        frame, state = self._by_state, self.judge.predictor.performance.state
        reads = self.candidates.facts[0]
        if profile.device_power is not None:
            power = profile.device_power
            theta = np.array([parameter.value for parameter in power.parameters])
            collecting = state.collecting(frame) * (reads < 1.0)
            told.device, told.base = True, float(theta[0])
            told.per_request = linear_law.values(self._per_request(), theta)
            told.beside, told.later_share = theta[5] * collecting, 1.0 - collecting
            told.limit = device_power.limit_watts(power, frame.power_state)
            told.idle = device_power.idle_watts(power, frame.power_state)[0]
            told.later_joules = state.joules_per_byte(frame)[0]
        if profile.host_power is not None:
            told.host = True
            told.cpu = host_power.theta(profile.host_power).tolist()
            if profile.host_power.dram is not None:
                memory = profile.host_power.dram
                told.dram_idle = memory.idle_watts.value
                told.dram_per_byte = host_power.MEMORY_TRANSFERS * memory.joules_per_byte.value
        system = self.judge.question.scope is Scope.SYSTEM
        if profile.system_power is not None and (
            system or "system_power_watts_max" in self.judge.limits
        ):
            wall = profile.system_power
            told.wall, told.wall_floor = True, wall.floor_watts.value
            told.wall_slope = wall.slope.value
            told.wall_bend = wall.quadratic.value if wall.quadratic else 0.0
            told.wall_least = 1.0 + system_power.LEAST_LOSS

    def _per_request(self) -> Floats:
        """Regressors of the device-power law for a request a second, without its constants."""
        reads, commands, size = self.candidates.facts[0], self._at.commands, self._sizes
        x = device_power.regressors(
            reads * size, reads * commands, (1 - reads) * size, (1 - reads) * commands, 0.0 * size
        )
        x[:, 0] = 0.0
        return x

    def _doubt(self) -> None:
        """Fill in how sure the watts are (`recommender.sensitivity`)."""
        layout, told, power = self.judge.layout, self.task.doubt, self.task.power
        profile, routes = self.judge.predictor.profile, self.candidates.routes.T
        told.specimen = profile.between_drives_relative_sd.value
        told.most, told.normal = MOST_RELATIVE_SD, NORMAL_90
        told.rests = list(rests(self.judge.question.demand))
        if profile.device_power is not None:
            law = layout.block("device")
            x = self._per_request()
            told.base, told.base_beside, told.beside = law[0, 0], law[0, 5], law[5, 5]
            told.rate = linear_law.variances(x, law)
            told.rate_base, told.rate_beside = x @ law[:, 0], x @ law[:, 5]
            states = self._by_state.power_state
            told.idle = layout.block("idle").diagonal()[states]
            told.capped = np.where(states > 0, CAP_RELATIVE_SD, 0.0)
            told.later_sd = layout.state.joules_per_byte(self._by_state)[1]
            told.device_lack = profile.device_power.relative_sd
        if profile.host_power is not None:
            engine, completion, _, scheduler = routes
            of_engine = layout.engine_sd[engine * len(COMPLETIONS) + completion]
            told.cpu = layout.block("cpu").ravel().tolist()
            told.path = np.square(np.hypot(of_engine, layout.scheduler_sd[scheduler]))
            told.cpu_lack = profile.host_power.relative_sd
        if power.wall and profile.system_power is not None:
            told.wall = layout.block("system")[:3, :3].ravel().tolist()
            told.wall_lack = profile.system_power.relative_sd


def _axis(values: Codes) -> tuple[Floats, Codes]:
    """The different values, rising, and the place of each one among them."""
    present = np.zeros(int(values.max()) + 1, dtype=bool)
    present[values] = True
    place = np.cumsum(present) - 1
    return np.flatnonzero(present).astype(float), place[values]
