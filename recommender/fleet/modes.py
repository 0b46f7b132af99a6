"""What one drive can do for a class of workload: its operating modes, and standby.

A mode is a configuration that keeps the class's SLA. A drive in a mode that serves L useful bytes
a second draws

    P(L) = P_gap + (P_at - P_gap) L / L_at,

exact at L_at: the most that it may serve, an equal share of a class, or all of it where one drive
can serve it.
Of the drive this is the law of equal work (`model.evaluate.equal_work`); a CPU's watts rise faster
at first, so that one drive of a class that serves only what the others leave over is taken for too
cheap, by up to a fifth. Watts are those of the drive and, where the fleet's scope says so, its
share of what serving adds to the CPU of its host, which all drives of the host wake up once
(`model.evaluate.demanded`). What is planned with are one-sided bounds at the fleet's confidence:
all drives of a model err together, so the bounds add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InfeasibleError, InputError
from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate import idle_gaps
from iojoule.model.evaluate.bands import EVIDENCE
from iojoule.model.evaluate.columns import STANDBY
from iojoule.model.evaluate.demanded import together
from iojoule.model.evaluate.equal_work import Demand, cpu_watts, watts_of, work_of
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.latency import BURSTY_ARRIVALS
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.uncertainty import Gradients, Layout, all_gradients
from iojoule.recommender import pareto
from iojoule.recommender.candidates import build_candidates, with_limits_of
from iojoule.recommender.durability import demand_with_flushes, flush_of
from iojoule.recommender.evaluate import Judge, Judged, Question, predicted
from iojoule.recommender.factors import Objective
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.mixed_sizes import predictor_for
from iojoule.recommender.request import DEMAND_FIELDS, Scope, WorkloadProfile
from iojoule.recommender.response import TIE
from iojoule.recommender.sla import confidence_scale
from iojoule.recommender.space import configuration_of, join

Floats = NDArray[np.float64]

MOST_MODES = 16
"""Modes of a drive for a class that a plan may choose among; of a longer Pareto set those are kept
that are cheapest somewhere (`cheapest`), and others spread evenly up to this number."""

AS_CHEAP = TIE / 2
"""Modes whose watts differ by no more count as equally cheap."""

HALVINGS = 7
"""Of the range in which the greatest load lies that keeps bounds of latency."""

ROUNDING = 1e-9
"""Loads are asked about so far below, relative, so that one that just fills a drive does."""

LOADS = 512
"""Loads of a drive at which modes are compared, and as many of their capacities."""


@dataclass(frozen=True)
class Mode:
    """One drive in one configuration; watts in the fleet's scope.

    Attributes:
        part: Which requests it serves.
        configuration: What the host sets.
        capacity_bytes_per_second: Useful bytes that it can serve, lower bound.
        gap_watts: While it serves nothing, the bound; `gap_watts_expected` the value.
        joules_per_byte: What a served byte costs on top, with the background work that its writes
            cause later; the bound, and `joules_per_byte_expected` the value.
        peak_watts: Exceeded only in the share of time that the fleet allows.
        evidence: Of its power.
    """

    part: Part
    configuration: Configuration
    capacity_bytes_per_second: float
    gap_watts: float
    gap_watts_expected: float
    joules_per_byte: float
    joules_per_byte_expected: float
    peak_watts: float
    evidence: Evidence

    @property
    def full_watts(self) -> float:
        """Bound of the power at capacity."""
        return self.gap_watts + self.joules_per_byte * self.capacity_bytes_per_second

    @property
    def power_state(self) -> int:
        """Power state of the configuration."""
        return int(self.configuration.power_state or 0)


@dataclass(frozen=True)
class _Draw:
    """Expected watts of n modes, of the drive and of what it adds to the CPU; shape (n,) each.

    `at` holds at the work that was asked for, `gap` while there is none.
    """

    at: Floats
    gap: Floats
    cpu_at: Floats
    cpu_gap: Floats


@dataclass(frozen=True)
class _Counted:
    """What a plan counts of n modes; shape (n,) each.

    Attributes:
        gap: Bound of the watts while a mode serves nothing, and `gap_expected` the value.
        byte: Bound of the joules of a served byte on top, and `byte_expected` the value.
        capacity: Useful bytes a second, lower bound.
        margin: Bound over value of the drive's watts, and `cpu_margin` of the CPU's.
    """

    gap: Floats
    gap_expected: Floats
    byte: Floats
    byte_expected: Floats
    capacity: Floats
    margin: Floats
    cpu_margin: Floats

    @property
    def costs(self) -> Floats:
        """Watts at capacity, capacity (negative) and watts in gaps: what a plan may trade off."""
        full = self.gap + self.byte * self.capacity
        costs = np.stack([full, -self.capacity, self.gap], axis=1)
        return pareto.without_rounding_errors(costs)


def cheapest(costs: Floats) -> NDArray[np.intp]:
    """Few modes of which, whatever a drive serves, one is as cheap as any that can serve it.

    Args:
        costs: As of `_Counted`, shape (n, 3).
    """
    full, capacity, gap = costs[:, 0], -costs[:, 1], costs[:, 2]
    shares = np.linspace(0.0, 1.0, LOADS)
    # a mode may be the cheapest up to its capacity and not beyond
    ends = np.quantile(capacity, shares, method="nearest")
    loads = np.unique(np.concatenate([capacity.max() * shares**2, ends]))[:, None]
    watts = gap + (full - gap) / capacity * loads
    watts = np.where(capacity >= loads, watts, np.inf)
    as_cheap = watts <= (1.0 + AS_CHEAP) * watts.min(axis=1, keepdims=True)
    rows: list[int] = []
    while len(as_cheap):
        rows.append(int(as_cheap.sum(axis=0).argmax()))
        as_cheap = as_cheap[~as_cheap[:, rows[-1]]]
    return np.array(rows, dtype=np.intp)


@dataclass(frozen=True)
class Rest:
    """A drive that serves nothing.

    Attributes:
        power_state: Where it rests; a sleep state where it stands by.
        watts: Bound of its power there.
        watts_expected: The value.
        entry_seconds: To get there.
        exit_seconds: To serve again.
        name: How plans call it.
        spin_up_watts: Mean power while it gets ready again, the bound; None where that is no more
            than serving. `spin_up_watts_expected` and `exit_seconds_expected`: the values.
        cycles_rated: Starts and stops that wear it out; None where resting wears nothing.
    """

    power_state: int
    watts: float
    watts_expected: float
    entry_seconds: float
    exit_seconds: float
    name: str = ""
    spin_up_watts: float | None = None
    cycles_rated: float | None = None
    spin_up_watts_expected: float = 0.0
    exit_seconds_expected: float = 0.0

    @property
    def word(self) -> str:
        """Its name, or that of its power state."""
        return self.name or f"PS{self.power_state}"

    def spin_up_joules(self, *, expected: bool) -> float:
        """Energy to get ready again, where it is more than serving takes: value, or bound."""
        if self.spin_up_watts is None:
            return 0.0
        if expected:
            return self.spin_up_watts_expected * self.exit_seconds_expected
        return self.spin_up_watts * self.exit_seconds


class DriveModel:
    """One profile as a fleet plan sees it.

    Args:
        profile: Must know the drive's power.
        confidence: One-sided, of every bound.
        scope: Drive alone, or with what its work adds to the CPU.

    Raises:
        InputError: The profile knows no power.
    """

    def __init__(self, profile: DeviceProfile, confidence: float, scope: Scope) -> None:
        if profile.device_power is None:
            raise InputError(
                f"{profile.model_name}: its profile knows no power of the drive, so no plan can "
                "bound it; measure power and fit it, or leave these drives out"
            )
        self.profile = profile
        self.power = profile.device_power
        self.confidence = confidence
        self.scope = scope
        self.with_cpu = scope is Scope.DEVICE_CPU
        if self.with_cpu and profile.host_power is None:
            raise InputError(
                f'{profile.model_name}: its profile knows no CPU power; say scope = "device" in '
                "the fleet file, or put the profile on a host that was measured"
            )
        self.scale = confidence_scale(confidence)
        self.predictor = Predictor(profile)
        self.layout = Layout(profile)

    def rest(self) -> Rest:
        """Serving nothing, ready: the operational state that idles with the least watts."""
        known = self._transitions()
        states = [state for state, (operational, _, _) in known.items() if operational]
        return self._rest(states)

    def standby(self) -> Rest | None:
        """The sleep state of the least watts that is known with its times; None without one.

        Of NVMe drives a power state, of hard disks standing platters, of SATA SSDs a sleeping link.
        """
        states = [
            state for state, (operational, _, _) in self._transitions().items() if not operational
        ]
        found = [self._rest(states)] if states else []
        found += self._of_sata()
        best = min(found, key=lambda one: one.watts, default=None)
        return best if best is not None and best.watts < self.rest().watts else None

    def _of_sata(self) -> Iterator[Rest]:
        idle = self.profile.idle
        if idle is not None and idle.standby is not None:
            one = idle.standby
            yield Rest(
                0,
                self._bound(one.watts),
                one.watts.value,
                one.entry_seconds.value,
                self._log_bound(one.exit_seconds),
                "standby",
                self._log_bound(one.spin_up_watts),
                one.cycles_rated.value,
                one.spin_up_watts.value,
                one.exit_seconds.value,
            )
        elif idle is not None and idle.link is not None:
            link = idle.link
            yield Rest(
                0,
                self._bound(link.slumber_watts),
                link.slumber_watts.value,
                link.exit_seconds.value,
                self._log_bound(link.exit_seconds),
                "slumber",
            )

    def _bound(self, known: Parameter) -> float:
        return known.value + self.scale * NORMAL_90 * known.sd

    def _log_bound(self, known: Parameter) -> float:
        return known.value * float(np.exp(self.scale * NORMAL_90 * known.sd))

    def _rest(self, states: list[int]) -> Rest:
        bounds = {state: self._idle(state) for state in states}
        state = min(bounds, key=lambda one: (bounds[one], one))
        _, entry, leave = self._transitions()[state]
        return Rest(state, bounds[state], self.power.idle_watts[state].value, entry, leave)

    def _idle(self, state: int) -> float:
        return self._bound(self.power.idle_watts[state])

    def _transitions(self) -> dict[int, tuple[bool, float, float]]:
        """Power states of which idle watts and both times are known."""
        idle = self.profile.idle
        found = {0: (True, 0.0, 0.0)}
        for row in idle.transitions if idle is not None else ():
            if row.entry_seconds is None or row.exit_seconds is None:
                continue
            if row.power_state < len(self.power.idle_watts):
                found[row.power_state] = (row.operational, row.entry_seconds, row.exit_seconds)
        return found

    def modes(
        self,
        workload: WorkloadProfile,
        part: Part,
        peak_over_mean: float | None,
        share_bytes_per_second: float | None = None,
        drives_per_host: int = 1,
        spin_ups_a_year: float | None = None,
    ) -> list[Mode]:
        """Modes that keep the SLA, none beaten in capacity and watts together.

        Args:
            workload: The class's; its demand is not looked at.
            part: Reads or writes alone, or all.
            peak_over_mean: As `DriveGroup.peak_over_mean`.
            share_bytes_per_second: What every drive must serve; None: whatever it is given.
            drives_per_host: As `DriveGroup.drives_per_host`.
            spin_ups_a_year: As `DriveGroup.spin_ups_per_drive_year`.

        Raises:
            InfeasibleError: No configuration keeps the SLA.
        """
        limited = with_limits_of(self.profile, workload)
        if limited is not self.profile:
            under_limits = DriveModel(limited, self.confidence, self.scope)
            return under_limits.modes(
                workload,
                part,
                peak_over_mean,
                share_bytes_per_second,
                drives_per_host,
                spin_ups_a_year,
            )
        asked = _part_of(workload, part, self.confidence, share_bytes_per_second)
        try:
            candidates = build_candidates(self.profile, self.predictor.performance.paths, asked)
        except InputError as error:
            if share_bytes_per_second is None or error.field != DEMAND_FIELDS[0]:
                raise
            raise InfeasibleError(
                f"class {workload.name}: each of its drives serves the same share, and "
                f"{error.message.partition(': ')[2]}"
            ) from None
        judge = self._judge(asked, candidates.current.request_bytes)
        polling = candidates.current_frame().polls[0]
        kept: list[tuple[Frame, Floats]] = []
        for judged in judge.search(candidates):
            # where the drives alone count, nothing starts to poll: the CPU would pay for it
            allowed = judged.feasible & (self.with_cpu | polling | ~judged.frame.polls)
            if spin_ups_a_year is not None:  # no timer that stops the platters too often
                often = idle_gaps.spin_ups_a_year(judged.frame.gap_seconds) > spin_ups_a_year
                allowed &= ~((judged.frame.host[:, STANDBY] > 0) & often)
            frame, good = judged.frame, np.flatnonzero(allowed)
            rest = judge.question.demand.rest
            costs = self._counted(judged, rest, drives_per_host).costs[good]
            best = pareto.non_dominated(costs)
            if best.any():
                kept.append((frame.take(good[best]), costs[best]))
        if not kept:
            raise self._none(workload, share_bytes_per_second)
        frames, costs = join([part[0] for part in kept]), np.concatenate([p[1] for p in kept])
        rows = np.flatnonzero(pareto.non_dominated(costs))
        if len(rows) > MOST_MODES:
            first = rows[cheapest(costs[rows])[:MOST_MODES]]
            others = np.setdiff1d(rows, first)
            spread = pareto.thin(costs[others], MOST_MODES - len(first))
            rows = np.concatenate([first, others[spread]])
        found = judge.judge(frames.take(rows))
        if share_bytes_per_second is not None:
            return self._described(found, judge, part, peak_over_mean, drives_per_host)
        most = self._counted(found, judge.question.demand.rest, drives_per_host).capacity
        stated = demand_with_flushes(
            self.profile,
            _part_of(workload, part, self.confidence, 1.0),
            candidates.current.request_bytes,
        )
        stated = replace(stated, rest=judge.question.demand.rest)
        loads, judge, found = self._loaded(judge, found.frame, stated, most)
        if not len(loads):
            raise self._none(workload, share_bytes_per_second)
        return [
            replace(one, capacity_bytes_per_second=float(load))
            for one, load in zip(
                self._described(found, judge, part, peak_over_mean, drives_per_host),
                loads,
                strict=True,
            )
        ]

    def _loaded(
        self, judge: Judge, frame: Frame, demand: Demand, most: Floats
    ) -> tuple[Floats, Judge, Judged]:
        """The most of a load that arrives at which each keeps the SLA, and what it does there.

        Without those that keep it at none; `most` is the most of each.

        At full speed the next request waits for a slot; those of a demand wait for each other,
        without bound towards the capacity.
        """
        known = predicted(judge.predictor, frame, demand)

        def under(loads: Floats) -> Judge:
            each = replace(demand, bytes_per_second=loads)  # type: ignore[arg-type]
            return Judge(judge.predictor, self.layout, replace(judge.question, demand=each))

        def keep(loads: Floats) -> NDArray[np.bool_]:
            return under(loads * (1.0 - ROUNDING)).judge(known).feasible

        low, high = np.where(keep(most), most, 0.0), most
        if (low < most).any():
            for _ in range(HALVINGS):
                middle = (low + high) / 2.0
                kept = keep(middle)
                low, high = np.where(kept, middle, low), np.where(kept, high, middle)
        rows = np.flatnonzero(low > 0.0)
        judge_there = under(low[rows])
        return low[rows], judge_there, judge_there.judge(known.take(rows))

    def _none(self, workload: WorkloadProfile, share: float | None) -> InfeasibleError:
        flush = flush_of(self.profile, workload)
        unknown = flush is not None and not flush.is_known
        remedy = (
            "what a flush costs is not known for this drive: leave flushes out of the class "
            "(flush_every_writes, force_unit_access), or measure with and without them and fit"
            if unknown
            else "`iojoule recommend` shows the nearest misses: relax a bound, or put the class on "
            "other drives"
        )
        return InfeasibleError(
            f"class {workload.name}: no configuration of {self.profile.model_name} is shown to "
            f"keep its SLA{_of(share)} at {self.confidence:.0%} confidence; {remedy}"
        )

    def _judge(self, asked: WorkloadProfile, current_bytes: int) -> Judge:
        demand = demand_with_flushes(self.profile, asked, current_bytes)
        if demand.bytes_per_second is None:  # what each will serve is not known yet
            demand = replace(demand, rest=_restful(asked))
        question = Question(
            demand, asked.sla, Scope.DEVICE, Objective.JOULES_PER_USEFUL_GB, "latency_mean_ns"
        )
        predictor, _ = predictor_for(self.predictor, asked, current_bytes)
        return Judge(predictor, self.layout, question)

    def _counted(self, judged: Judged, rest: float, drives_per_host: int) -> _Counted:
        frame, work = judged.frame, judged.work
        draw = self._draw(judged, rest, drives_per_host)
        every = all_gradients(self.layout, frame, judged.prediction, work, judged.watts, rest)
        margin = self._margin(every["device"])
        cpu_margin = self._margin(every["cpu"]) if self.with_cpu else np.ones(len(frame))
        gap_expected = draw.gap + draw.cpu_gap
        at_expected = draw.at + draw.cpu_at
        # idle power is often known less well than that under load; bounds that fell with the load
        # would have drives serve next to nothing instead of rest
        ready = self.rest()
        unsure = ready.watts - ready.watts_expected
        gap = draw.gap * margin + draw.cpu_gap * cpu_margin
        gap = np.maximum(gap, gap_expected + unsure)
        at = draw.at * margin + draw.cpu_at * cpu_margin
        at = np.maximum(at, gap + at_expected - gap_expected)
        capacity = work.capacity_bytes * np.exp(
            -self.scale * work.log_capacity_half * work.capacity_elasticity
        )
        return _Counted(
            gap,
            gap_expected,
            (at - gap) / work.served_bytes,
            (at_expected - gap_expected) / work.served_bytes,
            capacity,
            margin,
            cpu_margin,
        )

    def _draw(self, judged: Judged, rest: float, drives_per_host: int) -> _Draw:
        """Expected watts at the work that was asked for and in gaps.

        What serving adds to a host is that of all its drives together, shared equally.
        """
        assert judged.watts.device is not None
        law = judged.prediction["device_power_watts"].value
        factor = judged.prediction.activity.awake_factor
        at = idle_gaps.levels(self.profile, judged.frame, law, factor)
        assert at is not None
        nothing = np.zeros(len(judged.frame))
        gap = rest * at.idle + (1.0 - rest) * at.awake
        if not self.with_cpu:
            return _Draw(judged.watts.device, gap, nothing, nothing)
        idle = replace(judged.work, busy=nothing, requests=nothing, served_bytes=nothing)
        busy, waiting = (
            cpu_watts(
                self.profile,
                *together(judged.frame, judged.prediction, work, drives_per_host),
            )
            for work in (judged.work, idle)
        )
        assert busy is not None
        assert waiting is not None
        assert self.profile.host_power is not None
        idle_host = self.profile.host_power.parameters[0].value
        floor = idle_host + judged.prediction.activity.drawn.floor_watts
        return _Draw(
            judged.watts.device,
            gap,
            (busy - floor) / drives_per_host,
            np.maximum(waiting - floor, 0.0) / drives_per_host,
        )

    def _described(
        self,
        judged: Judged,
        judge: Judge,
        part: Part,
        peak_over_mean: float | None,
        drives_per_host: int,
    ) -> list[Mode]:
        frame = judged.frame
        counted = self._counted(judged, judge.question.demand.rest, drives_per_host)
        full = self._full_speed(judged, drives_per_host)
        ratio = peak_over_mean or self._peak_ratio(full.at, frame)
        peak = full.at * counted.margin * ratio + full.cpu_at * counted.cpu_margin
        codes = judged.prediction["device_power_watts"].evidence
        return [
            Mode(
                part,
                configuration_of(frame, row),
                float(counted.capacity[row]),
                float(counted.gap[row]),
                float(counted.gap_expected[row]),
                float(counted.byte[row]),
                float(counted.byte_expected[row]),
                float(peak[row]),
                Evidence(EVIDENCE[codes[row]]),
            )
            for row in range(len(frame))
        ]

    def _full_speed(self, judged: Judged, drives_per_host: int) -> _Draw:
        """The same rows as fast as they can: what they draw at a moment when all is in flight."""
        demand = Demand(None, 1.0, np.inf, rest=0.0)
        work = work_of(judged.frame, judged.prediction, demand)
        watts = watts_of(self.profile, judged.frame, judged.prediction, work, demand.rest)
        return self._draw(replace(judged, work=work, watts=watts), demand.rest, drives_per_host)

    def _margin(self, power: Gradients) -> Floats:
        """Bound over value, shape (n,)."""
        return np.asarray(1.0 + self.scale * NORMAL_90 * power.sd(self.layout) / power.watts)

    def _peak_ratio(self, active: Floats, frame: Frame) -> float:
        """Peak over mean where it was not measured: the drive's peak over its busiest mode.

        The peak is that of the profile (the most that was seen or is stated); fluctuations are
        taken to grow with the mean.
        """
        peak = self.power.peak_watts
        most = float(active[frame.power_state == frame.power_state.min()].max())
        return max(1.0, (peak.value + self.scale * NORMAL_90 * peak.sd) / most)


def _part_of(
    workload: WorkloadProfile, part: Part, confidence: float, share: float | None
) -> WorkloadProfile:
    """The workload profile of a part of the requests, with the demand on one drive."""
    sla = workload.sla.model_copy(update={"confidence": confidence})
    alone: dict[str, object] = {"demand_bytes_per_second": share}
    if part is not Part.ALL:
        operation = Operation.READ if part is Part.READS else Operation.WRITE
        alone |= {"operation": operation, "read_fraction": None, "mix_dispatch": None}
    stated = workload.workload.model_copy(update=alone)
    return workload.model_copy(update={"workload": stated, "sla": sla, "scope": Scope.DEVICE})


def _of(share: float | None) -> str:
    return "" if share is None else f" with {share / 1e6:,.4g} MB/s of one drive"


def _restful(workload: WorkloadProfile) -> float:
    """1 where the work comes in bursts, so that gaps are idle; else drives stay awake."""
    stated = workload.workload
    bursts = stated.burst_bytes is not None or (
        (stated.arrival_process or "").lower() in BURSTY_ARRIVALS
    )
    return 1.0 if bursts else 0.0
