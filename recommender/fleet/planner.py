"""From a fleet and its profiles to plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from iojoule.datasets.errors import InfeasibleError, InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import YEAR_SECONDS, AskedConditions
from iojoule.model.evaluate import idle_gaps
from iojoule.model.evaluate.validity import under
from iojoule.model.prior.host import host_standing, on_host_of
from iojoule.recommender.factors import JOULES_A_KWH, rated_bytes
from iojoule.recommender.fleet.document import Aim, Budget, DriveGroup, Fleet, WorkloadClass
from iojoule.recommender.fleet.modes import DriveModel, Mode, Rest
from iojoule.recommender.fleet.plan import (
    Assignment,
    DomainPlan,
    FrontierPoint,
    GroupPlan,
    Part,
    Plan,
    Served,
    Tried,
    YearlyCosts,
)
from iojoule.recommender.fleet.program import (
    MB,
    Before,
    Option,
    Program,
    mode_key,
    rest_key,
    value_of,
)
from iojoule.recommender.fleet.solver import Solution
from iojoule.recommender.request import Scope
from iojoule.sim.workers import Pool
from iojoule.sim.workers.checkpoint import Kept, key_of, map_kept
from iojoule.sim.workers.local import HERE

SLACK = 1e-4
"""Share of the served bytes that may be forgone when the watts are made small afterwards: to serve
exactly as much in another way is a puzzle that costs the search more than it saves."""


Modes = dict[tuple[int, int, Part], list[Mode]]
"""By place of the group of drives, place of the class, and part of its requests."""


def _weights(program: Program) -> dict[int, float]:
    """Objective of most demand: what is served, by importance; what must be weighs nothing."""
    return {
        program.served[place]: -(workload.importance or 0.0)
        for place, workload in enumerate(program.fleet.classes)
    }


def most_demand(program: Program, gap: float) -> tuple[Solution, Solution] | None:
    """Most demand, and of the ways to serve it the one of least watts; and the first of both."""
    first = program.solve(_weights(program), program.must(), gap=gap)
    if first is None:
        return None
    kept = {
        place: float(first.values[place]) * (1.0 - SLACK)
        for place, workload in zip(program.served, program.fleet.classes, strict=True)
        if workload.importance is not None
    }
    second = program.solve(program.cost(), program.must(kept), gap=gap, within=first)
    return second or first, first


def percentile_watts(program: Program, solution: Solution) -> float:
    """Watts that the fleet exceeds in no more than the stated share of the time."""
    return value_of(program.all_terms, solution.values) + program.all_constant


def expected_watts(program: Program, solution: Solution) -> float:
    """Mean watts as predicted, bases included."""
    return value_of(program.watts(expected=True), solution.values) + program.fleet.base_watts


def tried(
    shared: tuple[Fleet, Modes, list[tuple[Rest, Rest | None]], float], watts: float
) -> Tried:
    """The point of one budget; what is shared is the fleet, its modes and rests, and the gap."""
    fleet, modes, rests, gap = shared
    program = Program(fleet, modes, rests, watts)
    found = most_demand(program, gap)
    if found is None:
        return Tried(point=None)
    solution, first = found
    served = sum(float(solution.values[place]) for place in program.served) * MB
    point = FrontierPoint(
        budget_watts=watts,
        percentile_watts=percentile_watts(program, solution),
        expected_watts=expected_watts(program, solution),
        served_bytes_per_second=served,
        served_share=served / sum(c.demand_bytes_per_second for c in fleet.classes),
        optimality_gap=first.gap,
    )
    return Tried(point=point)


def write(fleet: Fleet, models: Mapping[str, DriveModel]) -> list[str]:
    """The notes of a plan, in plain sentences."""
    said = [_peaks(fleet)]
    unmeasured = sorted({group.device for group in fleet.drives if group.peak_over_mean is None})
    if unmeasured:
        said.append(
            f"peaks of {', '.join(unmeasured)}: the peak of each profile over its busiest mode is "
            "taken for every mode; measure 1 ms power near full speed, with requests that arrive "
            "as in operation, and state `peak_over_mean` to plan closer"
        )
    for name, model in models.items():
        if model.standby() is None:
            said.append(
                f"{name}: no standby, since its profile knows no sleep state with its watts and "
                "both its times"
            )
    hosts = {
        model.profile.host_power.host_id
        for model in models.values()
        if model.profile.host_power is not None
    }
    if fleet.scope is Scope.DEVICE_CPU:
        shared = any(group.drives_per_host > 1 for group in fleet.drives)
        said.append(
            f"all drives stand on hosts of one kind, {', '.join(sorted(hosts))}; "
            + (
                "the drives of a host share what serving adds to its CPU (drives_per_host)"
                if shared
                else "each wakes up a host of its own: state drives_per_host where they share one"
            )
        )
    said.append(
        "drives that serve stay awake between requests unless the class comes in bursts; their "
        "hosts are the base watts of the domains, whatever they serve"
    )
    return said


def _peaks(fleet: Fleet) -> str:
    if fleet.power_correlation is None:
        return (
            f"limits hold {fleet.percentile:.3%} of the time even if all drives peak at once: no "
            "correlation was measured"
        )
    return (
        f"limits hold {fleet.percentile:.3%} of the time at a correlation of "
        f"{fleet.power_correlation:g} between drives, each fluctuating as much as two levels can"
    )


def costs_of(
    fleet: Fleet,
    profiles: Mapping[str, DeviceProfile],
    groups: Sequence[GroupPlan],
    expected_watts: float,
    bound_watts: float,
) -> YearlyCosts:
    """Of the whole fleet, bases included, and of the wear of every drive that writes.

    Args:
        fleet: Its factors and classes.
        profiles: By device; their rated endurance spreads what a drive costs.
        groups: What the drives do.
        expected_watts: Mean power as predicted.
        bound_watts: Its one-sided bound.

    Raises:
        InputError: A drive's price is stated, and a drive that writes has no endurance rating.
    """
    factors = fleet.factors
    kwh, most = (one * YEAR_SECONDS / JOULES_A_KWH for one in (expected_watts, bound_watts))
    worn = 0.0  # in drives: shares of their ratings, summed
    if factors.drive_price is not None or factors.drive_carbon_kilograms is not None:
        for group in groups:
            written = sum(_written(fleet, one) for one in group.assignments) * YEAR_SECONDS
            if written > 0.0:
                worn += written / rated_bytes(profiles[group.device], "factors.drive_price")
    found: dict[str, float | None] = {}
    for name, per_kwh, drive in (
        ("cost_per_year", factors.electricity_price_per_kwh, factors.drive_price),
        (
            "co2_kilograms_per_year",
            factors.grid_carbon_kilograms_per_kwh,
            factors.drive_carbon_kilograms,
        ),
    ):
        for ending, energy in (("", kwh), ("_bound", most)):
            found[name + ending] = (
                None
                if per_kwh is None
                else energy * factors.overhead * per_kwh + worn * (drive or 0.0)
            )
    return YearlyCosts.model_validate(
        {
            "kwh_per_year": kwh,
            "kwh_per_year_bound": most,
            "currency": factors.currency,
            "drives_worn_per_year": worn,
            **found,
        }
    )


def _written(fleet: Fleet, one: Assignment) -> float:
    """Host bytes a second that the drives of an assignment write."""
    if one.workload_class is None:
        return 0.0
    asked = next(item.workload for item in fleet.classes if item.name == one.workload_class)
    share = {Part.READS: 0.0, Part.WRITES: 1.0}.get(one.part or Part.ALL, 1.0 - asked.read_fraction)
    return one.drives * one.load_bytes_per_second * share


DAY_SECONDS = 86400.0
"""A day's starts may be used at once, however short the plan."""

GAP = 0.001
"""Relative gap at which a plan is good enough, where nobody asks for less."""


@dataclass(frozen=True)
class _Step:
    """One plan, and what the next one must know of it."""

    plan: Plan
    drives: Mapping[tuple[str, ...], int]


class Planner:
    """Plans one fleet.

    Args:
        fleet: What there is, what it serves.
        profiles: By the `device` of the fleet's drives.

    Raises:
        InputError: A profile knows no power, or a class asks for what a drive cannot.
        InfeasibleError: A class's SLA cannot be kept by drives that hold it.
    """

    def __init__(self, fleet: Fleet, profiles: Mapping[str, DeviceProfile]) -> None:
        self.fleet = fleet
        devices = list(dict.fromkeys(group.device for group in fleet.drives))
        host = host_of([profiles[name] for name in devices])
        asked = AskedConditions(interval_for=fleet.interval_for)
        self.models = {
            name: DriveModel(
                under(on_host_of(profiles[name], host), asked), fleet.confidence, fleet.scope
            )
            for name in sorted(devices)
        }
        rests = {name: (model.rest(), model.standby()) for name, model in self.models.items()}
        self.rests: list[tuple[Rest, Rest | None]] = [rests[group.device] for group in fleet.drives]
        self.modes = self._modes()

    def _modes(self) -> Modes:
        names = [workload.name for workload in self.fleet.classes]
        known: dict[tuple[str, int, Part, float | None, int, float | None], list[Mode]] = {}
        found = {}
        for place, group in enumerate(self.fleet.drives):
            for name in group.classes:
                number = names.index(name)
                workload = self.fleet.classes[number]
                for part in _parts(workload):
                    key = (
                        group.device,
                        number,
                        part,
                        group.peak_over_mean,
                        group.drives_per_host,
                        group.spin_ups_per_drive_year,
                    )
                    if key not in known:
                        known[key] = self._modes_of(group, workload, part)
                    found[place, number, part] = known[key]
        return found

    def _modes_of(self, group: DriveGroup, workload: WorkloadClass, part: Part) -> list[Mode]:
        """Modes of a group's drives, exact at the loads that they may have.

        Of a class that is not redirectable that is an equal share. Else it may be that too, or the
        whole demand where one drive can serve it, or what the drive can.

        Raises:
            InfeasibleError: No configuration keeps the SLA at any of them.
        """
        demand, share = (
            workload.demand_bytes_per_second,
            self.fleet.share_bytes_per_second(workload),
        )
        loads: list[float | None] = [None] if workload.redirectable else [share]
        shared = workload.redirectable and part is Part.ALL
        if shared:
            loads += sorted({demand, share})
        found: list[Mode] = []
        problems: list[InfeasibleError] = []
        most = share  # of one drive, as far as it is known
        for load in loads:
            if load is not None and load > most:
                continue
            try:
                modes = self.models[group.device].modes(
                    workload.workload.model_copy(update={"name": workload.name}),
                    part,
                    group.peak_over_mean,
                    load,
                    group.drives_per_host,
                    group.spin_ups_per_drive_year,
                )
            except InfeasibleError as error:
                problems.append(error)
                continue
            if shared and load is None:  # nothing is served beyond the demand
                most = max(one.capacity_bytes_per_second for one in modes)
                modes = [one for one in modes if one.capacity_bytes_per_second < demand]
            elif shared and load is not None:  # known at that load, and no promise beyond it
                modes = [replace(one, capacity_bytes_per_second=load) for one in modes]
            found += modes
        if not found:
            raise problems[0]
        return found

    def plans(
        self,
        aim: Aim = "least_watts",
        *,
        budgets: Sequence[Budget] | None = None,
        gap: float = GAP,
    ) -> list[Plan]:
        """One plan for each budget in turn; the changes from one to the next cost time.

        Every budget is planned by itself, with the plan before as its start: a later budget does
        not change an earlier plan.

        Args:
            aim: Least watts for the demand, or most demand within the watts.
            budgets: Instead of the fleet's own.
            gap: Relative gap at which HiGHS stops.

        Raises:
            InfeasibleError: A demand or a limit cannot be kept; says by how much.
        """
        asked = list(self.fleet.budgets if budgets is None else budgets)
        steps: list[_Step] = []
        times = [budget.seconds for budget in asked] or [0.0]
        ends = [*times[1:], times[-1] + self.fleet.period_seconds]
        left = self.spin_ups_allowed(ends[-1] - times[0])
        for place, start in enumerate(times):
            watts = asked[place].watts if asked else None
            period = ends[place] - start
            before = Before(steps[-1].drives, period) if steps else None
            step = self._step(aim, watts, start, period, before, gap, left)
            steps.append(step)
            left = [
                None if one is None else one - group.spin_ups
                for one, group in zip(left, step.plan.groups, strict=True)
            ]
        return [step.plan for step in steps]

    def spin_ups_allowed(self, seconds: float) -> list[float | None]:
        """Starts that each group's wear budget allows within a time, a day at least."""
        share = max(seconds, DAY_SECONDS) / YEAR_SECONDS
        found: list[float | None] = []
        for group, (_, standby) in zip(self.fleet.drives, self.rests, strict=True):
            rated = None if standby is None else standby.cycles_rated
            stated = group.spin_ups_per_drive_year
            if rated is None:
                found.append(None)
                continue
            each = idle_gaps.spin_ups_allowed(rated) if stated is None else stated
            found.append(each * group.count * share)
        return found

    def frontier(
        self,
        budgets: Sequence[float],
        *,
        gap: float = GAP,
        pool: Pool = HERE,
        kept: Kept[Tried] | None = None,
        done: Callable[[int, object], None] | None = None,
    ) -> list[FrontierPoint]:
        """Most demand within each budget, all classes counted as if they could be curtailed.

        Budgets below what the fleet draws at rest serve nothing and are left out.

        Args:
            budgets: In watts.
            gap: Relative gap at which HiGHS stops.
            pool: Where budgets are planned, each by itself.
            kept: Keeps the points as they come.
            done: Told of each that is there.
        """
        elastic = self.fleet.model_copy(
            update={
                "classes": tuple(
                    workload.model_copy(update={"importance": workload.importance or 1.0})
                    for workload in self.fleet.classes
                )
            }
        )
        shared = (elastic, self.modes, self.rests, gap)
        found = map_kept(
            pool,
            tried,
            budgets,
            shared=shared,
            kept=kept,
            done=done,
            keys=self.frontier_keys(budgets, gap),
        )
        return [each.point for each in found if each.point is not None]

    def frontier_keys(self, budgets: Sequence[float], gap: float) -> list[str]:
        """What names the points among kept ones: all that they depend on."""
        profiles = {name: model.profile.model_dump_json() for name, model in self.models.items()}
        return [key_of(self.fleet.model_dump_json(), profiles, gap, watts) for watts in budgets]

    def budgets_between(
        self, least: float | None = None, most: float | None = None, points: int = 12
    ) -> list[float]:
        """Budgets from one to another, evenly; by default from rest to all that can be used, W."""
        nothing = Program(self.fleet, self.modes, self.rests, None)
        free = np.zeros(len(nothing.upper))
        stated = least is not None
        if least is None:
            found = nothing.solve(nothing.all_terms, free, gap=GAP)
            if found is None:
                raise self._why_not(nothing, "most_demand")
            least = nothing.all_constant + found.objective
        if most is None:
            weights = dict.fromkeys(nothing.served, -1.0)
            full = nothing.solve(weights, free, gap=GAP)
            if full is None:
                raise self._why_not(nothing, "most_demand")
            kept = {place: float(full.values[place]) * (1 - SLACK) for place in nothing.served}
            low = free.copy()
            low[list(kept)] = list(kept.values())
            cheapest = nothing.solve(nothing.all_terms, low, gap=GAP)
            most = percentile_watts(nothing, cheapest or full)
            # where all drives are pinned, rest and all that can be used are one, but for rounding
            most = most if stated else max(most, least)
        if most < least:
            raise InputError(
                f"budgets: {most:g} W is below {least:g} W; swap the least and the most"
            )
        # a thousandth more, so that rounding does not make the ends infeasible
        return [float(watts) for watts in np.linspace(least * 1.001, most * 1.001, points)]

    def _step(
        self,
        aim: Aim,
        budget: float | None,
        start: float,
        period: float,
        before: Before | None,
        gap: float,
        left: Sequence[float | None],
    ) -> _Step:
        program = Program(self.fleet, self.modes, self.rests, budget, before, period, left)
        if aim == "most_demand":
            both = most_demand(program, gap)
            solution, judged = both if both is not None else (None, None)
        else:
            every = {place: program.upper[place] for place in program.served}
            solution = program.solve(program.cost(), program.must(every), gap=gap)
            judged = solution
        if solution is None or judged is None:
            raise self._why_not(program, aim)
        drives = _doing(program, solution)
        changed = 0 if before is None else _changed(before.drives, drives)
        plan = self._described(program, solution, judged, aim, start, period, changed)
        return _Step(plan, drives)

    def _why_not(self, program: Program, aim: Aim) -> InfeasibleError:
        """By how much the demand must fall, or the watts rise."""
        fleet = self.fleet
        elastic = np.zeros(len(program.upper))
        needed = [
            place
            for place, workload in enumerate(fleet.classes)
            if aim == "least_watts" or workload.importance is None
        ]
        weights = {program.served[place]: -1.0 for place in needed}
        most = program.solve(weights, elastic, gap=GAP)
        if most is not None:
            missing = [
                f"class {fleet.classes[place].name}: {_digits(served)} of {_digits(asked)} MB/s"
                for place in needed
                if (served := float(most.values[program.served[place]]))
                < (asked := program.upper[program.served[place]]) * (1.0 - 1e-6)
            ]
            return InfeasibleError(
                "the fleet cannot serve the demand within its drives and watts; at the best it "
                f"serves {'; '.join(missing)}. Add drives or watts, or give a class an importance "
                "and plan with --aim most_demand"
            )
        return InfeasibleError(
            f"even serving nothing, {'; '.join(self._above_rest(program.budget_watts))}; raise "
            "the limit, or take drives out"
        )

    def _above_rest(self, budget_watts: float | None) -> list[str]:
        """Limits below what drives draw at rest, with what they draw."""
        domains = tuple(
            domain.model_copy(update={"limit_watts": None}) for domain in self.fleet.domains
        )
        free = self.fleet.model_copy(update={"domains": domains})
        # without a plan before, which has more variables
        program = Program(free, self.modes, self.rests, None)

        def rest(terms: Mapping[int, float], constant: float) -> float:
            least = program.solve(terms, np.zeros(len(program.upper)), gap=GAP)
            return constant if least is None else constant + least.objective

        limits = [
            ("the fleet", budget_watts, program.all_terms, program.all_constant),
            *(
                (
                    f"domain {each.name}",
                    each.limit_watts,
                    program.domain_terms[each.name],
                    program.domain_constant[each.name],
                )
                for each in self.fleet.domains
            ),
        ]
        needs = [
            (name, limit, rest(terms, constant))
            for name, limit, terms, constant in limits
            if limit is not None
        ]
        above = [each for each in needs if each[2] > each[1]]
        # limits that only a plan before makes too low are all told
        return [
            f"{name} may need {_digits(watts)} W, bases included, and has {limit:g} W"
            for name, limit, watts in above or needs
        ]

    def _described(
        self,
        program: Program,
        solution: Solution,
        judged: Solution,
        aim: Aim,
        start: float,
        period: float,
        changed: int,
    ) -> Plan:
        """The plan in words; `judged` is the solution whose objective is the plan's."""
        fleet = self.fleet
        values = solution.values
        objectives = [judged.objective, judged.relaxed]
        if aim == "most_demand":
            objectives = [-value * MB for value in objectives]
        else:
            objectives = [value + fleet.base_watts for value in objectives]
        groups = [
            GroupPlan(
                name=group.name,
                device=group.device,
                domain=group.domain,
                count=group.count,
                spin_ups=program.going_to_standby(values, place),
                spin_ups_left=program.spin_ups[place],
                wake_seconds=program.standby_wait(values, place),
                assignments=[
                    *(
                        _serving(option, fleet.classes[option.workload].name, solution)
                        for option in program.options
                        if option.group == place and round(values[option.drives])
                    ),
                    *(
                        _resting(one.rest, round(values[one.variable]), standby=one.standby)
                        for one in program.resting
                        if one.group == place and round(values[one.variable])
                    ),
                ],
            )
            for place, group in enumerate(fleet.drives)
        ]
        going = [one.rest.entry_seconds for one in program.resting if round(values[one.variable])]
        expected = expected_watts(program, solution)
        bound = value_of(program.watts(), values) + fleet.base_watts
        profiles = {name: model.profile for name, model in self.models.items()}
        return Plan(
            fleet=fleet.name,
            aim=aim,
            budget_watts=program.budget_watts,
            from_seconds=start,
            period_seconds=period,
            percentile=fleet.percentile,
            confidence=fleet.confidence,
            percentile_watts=percentile_watts(program, solution),
            expected_watts=expected,
            bound_watts=bound,
            costs=costs_of(fleet, profiles, groups, expected, bound),
            classes=[
                Served(
                    name=workload.name,
                    demand_bytes_per_second=workload.demand_bytes_per_second,
                    served_bytes_per_second=float(values[program.served[place]]) * MB,
                    must=workload.importance is None,
                )
                for place, workload in enumerate(fleet.classes)
            ],
            domains=self._domains(program, solution),
            groups=groups,
            changed_drives=changed,
            transition_seconds=max(going, default=0.0),
            objective=objectives[0],
            relaxed_objective=objectives[1],
            optimality_gap=judged.gap,
            notes=write(fleet, self.models),
        )

    def _domains(self, program: Program, solution: Solution) -> list[DomainPlan]:
        fleet, values = self.fleet, solution.values
        found = []
        for domain in fleet.domains:
            mean = program.watts(expected=True, groups=fleet.groups_in(domain.name))
            most = value_of(program.domain_terms[domain.name], values)
            found.append(
                DomainPlan(
                    name=domain.name,
                    limit_watts=domain.limit_watts,
                    percentile_watts=most + program.domain_constant[domain.name],
                    expected_watts=value_of(mean, values) + fleet.base_watts_in(domain.name),
                )
            )
        return found


def host_of(profiles: Sequence[DeviceProfile]) -> DeviceProfile:
    """The profile whose host all drives of a fleet stand on, so that only drives differ.

    One whose host somebody measured or published, else one with an assumed host, else any: of
    several the first by the name of its device, so that the order of the file changes nothing.
    """
    order = ("known", "assumed", "unknown")
    return min(profiles, key=lambda one: (order.index(host_standing(one)), one.device))


def _parts(workload: WorkloadClass) -> tuple[Part, ...]:
    return tuple(Part) if workload.segregate else (Part.ALL,)


def _serving(option: Option, name: str, solution: Solution) -> Assignment:
    mode, drives = option.mode, round(solution.values[option.drives])
    load = float(solution.values[option.load]) * MB / drives
    return Assignment(
        drives=drives,
        doing="serving",
        workload_class=name,
        part=mode.part,
        configuration=mode.configuration,
        power_state=mode.power_state,
        load_bytes_per_second=load,
        capacity_bytes_per_second=mode.capacity_bytes_per_second,
        watts=mode.gap_watts_expected + load * mode.joules_per_byte_expected,
        watts_bound=mode.gap_watts + load * mode.joules_per_byte,
        peak_watts=mode.peak_watts,
        evidence=mode.evidence,
    )


def _resting(rest: Rest, drives: int, *, standby: bool) -> Assignment:
    return Assignment(
        drives=drives,
        doing="standby" if standby else "ready",
        workload_class=None,
        part=None,
        configuration=None,
        power_state=rest.power_state,
        rest=rest.word,
        load_bytes_per_second=0.0,
        capacity_bytes_per_second=0.0,
        watts=rest.watts_expected,
        watts_bound=rest.watts,
        peak_watts=rest.watts,
        evidence=None,
    )


def _doing(program: Program, solution: Solution) -> dict[tuple[str, ...], int]:
    """Drives by what they do, as `Before` counts them."""
    fleet = program.fleet
    found: Counter[tuple[str, ...]] = Counter()
    for option in program.options:
        group, workload = fleet.drives[option.group], fleet.classes[option.workload]
        found[mode_key(group, workload, option.mode)] += round(solution.values[option.drives])
    for one in program.resting:
        key = rest_key(fleet.drives[one.group], one.rest)
        found[key] += round(solution.values[one.variable])
    return {key: count for key, count in found.items() if count}


def _changed(before: Mapping[tuple[str, ...], int], after: Mapping[tuple[str, ...], int]) -> int:
    return sum(max(count - before.get(key, 0), 0) for key, count in after.items())


def _digits(value: float) -> str:
    """Four digits, without a power of ten."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"
