"""The plan as a mixed-integer linear program, solved with HiGHS (`highspy`).

For a group g of N interchangeable drives, a class c and a mode m of capacity X, the variables are
n, how many drives run so, and L, the useful bytes a second that they serve together:

    sum of n over classes and modes + ready + standby = N         every drive does one thing
    L <= n X - t X s / T                                           t enter the mode, s seconds each
    n in standby - before <= what the wear budget leaves          each wears a disk by one start
    L = n d, or at most that                where a class is not redirectable, d its share a drive
    sum of L >= demand                                             by class, and by part

Where reads and writes go to different drives, a mode that serves all of a class's requests serves
them in the class's own proportion. Power of a domain, base included, is bounded by

    sum of n P_peak + resting                                      all drives peak together, or
    mean + z (sqrt(r) sum of n s + sqrt(1 - r) s_max sqrt(N))      r the measured correlation,

s = (P_peak - P_gap) / 2, which no fluctuation between two levels exceeds (Popoviciu), and z the
normal quantile of the percentile. The second follows from var = r (sum s)^2 + (1 - r) sum s^2 and
sqrt(a + b) <= sqrt(a) + sqrt(b), so that it is linear and, where the sum of many drives is near a
normal distribution, not too low. Drives that do everything in step are not: for them nothing but
the first holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from iojoule.recommender.fleet.document import DriveGroup, Fleet, WorkloadClass
from iojoule.recommender.fleet.modes import Mode, Rest
from iojoule.recommender.fleet.plan import Part
from iojoule.recommender.fleet.solver import Matrix, Solution, solve

Floats = NDArray[np.float64]

MB = 1e6
"""Loads are counted in 10^6 bytes a second: coefficients near 1 keep the solver exact."""

UNUSED = 1e-7
"""Drives below which a mode counts as not used."""

CHANGE_WATTS = 0.05
"""What a change of a drive must save to be worth it, W: below what any power law tells apart."""


@dataclass(frozen=True)
class Option:
    """Drives of a group in a mode for a class; places of its variables in the program."""

    group: int
    workload: int
    mode: Mode
    drives: int
    load: int
    entering: int | None


@dataclass(frozen=True)
class Resting:
    """Drives of a group that serve nothing; `variable` counts them.

    Where resting takes energy or wear, `entering` counts those that go there, and `leaving` those
    that come back.
    """

    group: int
    rest: Rest
    standby: bool
    variable: int
    entering: int | None = None
    leaving: int | None = None


@dataclass(frozen=True)
class Before:
    """How the fleet ran until now: drives by what they did, and the seconds until the next plan.

    Keys are (group, class or "", part or "", configuration as JSON or the power state).
    """

    drives: Mapping[tuple[str, ...], int]
    period_seconds: float


@dataclass
class _Rows:
    """Linear constraints as they are collected."""

    cells: list[tuple[int, int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, terms: Mapping[int, float], low: float, high: float) -> int:
        row = len(self.low)
        self.cells += [(row, column, value) for column, value in terms.items()]
        self.low.append(low)
        self.high.append(high)
        return row


class Program:
    """The program of one budget.

    Args:
        fleet: What there is.
        modes: Of each (group, class, part) that may be served.
        rests: Of each group: ready, and standby where there is one.
        budget_watts: Of all drives and bases; None bounds nothing.
        before: The plan until now, whose changes cost time; None: nothing runs yet.
        period_seconds: How long the plan holds, over which the energy of a spin-up is spread.
        spin_ups: By group, drives that may go to a standby which wears them; None bounds nothing.
    """

    def __init__(
        self,
        fleet: Fleet,
        modes: Mapping[tuple[int, int, Part], Sequence[Mode]],
        rests: Sequence[tuple[Rest, Rest | None]],
        budget_watts: float | None,
        before: Before | None = None,
        period_seconds: float | None = None,
        spin_ups: Sequence[float | None] | None = None,
    ) -> None:
        self.fleet = fleet
        self.period_seconds = fleet.period_seconds if period_seconds is None else period_seconds
        self.spin_ups = spin_ups or [None] * len(fleet.drives)
        self.budget_watts = budget_watts
        self.before = before
        self.integer: list[int] = []
        self.upper: list[float] = []
        self.rows = _Rows()
        self.options: list[Option] = []
        self.resting: list[Resting] = []
        self.served: list[int] = []
        self._groups(modes, rests)
        self._classes()
        self._power()

    def _variable(self, upper: float, *, whole: bool = False) -> int:
        self.upper.append(upper)
        self.integer.append(int(whole))
        return len(self.upper) - 1

    def _groups(
        self,
        modes: Mapping[tuple[int, int, Part], Sequence[Mode]],
        rests: Sequence[tuple[Rest, Rest | None]],
    ) -> None:
        names = [one.name for one in self.fleet.classes]
        for place, group in enumerate(self.fleet.drives):
            own: dict[int, float] = {}
            for name in group.classes:
                workload = names.index(name)
                for part in Part:
                    for mode in modes.get((place, workload, part), ()):
                        option = self._option(place, group, workload, mode, rests[place])
                        own[option.drives] = 1.0
            pinned = not self.fleet.classes[names.index(group.classes[0])].redirectable
            for rest, standby in zip(rests[place], (False, True), strict=True):
                if rest is None or pinned:
                    continue
                if standby and not self._wakes_in_time(group, rest):
                    continue
                variable = self._variable(group.count, whole=True)
                self.resting.append(
                    Resting(place, rest, standby, variable, *self._turning(place, rest, variable))
                )
                own[variable] = 1.0
            self.rows.add(own, group.count, group.count)

    def _wakes_in_time(self, group: DriveGroup, rest: Rest) -> bool:
        """Whether every class that the drives hold may wait for them."""
        bounds = (one.wake_seconds_max for one in self.fleet.classes if one.name in group.classes)
        return all(bound is None or rest.exit_seconds <= bound for bound in bounds)

    def _turning(self, place: int, rest: Rest, drives: int) -> tuple[int | None, int | None]:
        """Variables of a rest that takes energy or wear: who goes there, and who comes back."""
        if rest.spin_up_watts is None:
            return None, None
        group = self.fleet.drives[place]
        there = 0
        if self.before is not None:
            there = self.before.drives.get(rest_key(group, rest), 0)
        allowed = self.spin_ups[place]
        # drives are whole, and a part of one within the optimiser's tolerance moves the objective
        most = group.count if allowed is None else min(floor(allowed), group.count)
        entering = self._variable(most)
        self.rows.add({entering: 1.0, drives: -1.0}, -there, np.inf)
        leaving = None
        if there:
            leaving = self._variable(there)
            self.rows.add({leaving: 1.0, drives: 1.0}, there, np.inf)
        return entering, leaving

    def _option(
        self,
        place: int,
        group: DriveGroup,
        workload: int,
        mode: Mode,
        rests: tuple[Rest, Rest | None],
    ) -> Option:
        drives = self._variable(group.count, whole=True)
        load = self._variable(np.inf)
        capacity = mode.capacity_bytes_per_second / MB
        terms = {load: 1.0, drives: -capacity}
        entering = None
        if self.before is not None:
            entering = self._variable(group.count)
            there = self.before.drives.get(mode_key(group, self.fleet.classes[workload], mode), 0)
            self.rows.add({entering: 1.0, drives: -1.0}, -there, np.inf)
            # whoever enters may come from the deepest rest there is
            slowest = max(rest.exit_seconds for rest in rests if rest is not None)
            lost = min(slowest / self.before.period_seconds, 1.0)
            terms[entering] = capacity * lost
        self.rows.add(terms, -np.inf, 0.0)
        option = Option(place, workload, mode, drives, load, entering)
        self.options.append(option)
        return option

    def _classes(self) -> None:
        for place, workload in enumerate(self.fleet.classes):
            demand = workload.demand_bytes_per_second / MB
            served = self._variable(demand)
            self.served.append(served)
            own = [option for option in self.options if option.workload == place]
            if workload.segregate:
                self._by_part(own, served, workload)
                continue
            self.rows.add({served: -1.0} | {option.load: 1.0 for option in own}, 0.0, np.inf)
            if not workload.redirectable:
                self._evenly(own, place)

    def _by_part(self, own: list[Option], served: int, workload: WorkloadClass) -> None:
        reads = workload.workload.read_fraction
        for part, share in ((Part.READS, reads), (Part.WRITES, 1.0 - reads)):
            terms = {served: -share}
            for option in own:
                if option.mode.part is part:
                    terms[option.load] = 1.0
                elif option.mode.part is Part.ALL:
                    terms[option.load] = share
            self.rows.add(terms, 0.0, np.inf)

    def _evenly(self, own: list[Option], place: int) -> None:
        """No drive serves more than its own share; where all must be served, exactly that."""
        workload = self.fleet.classes[place]
        share = self.fleet.share_bytes_per_second(workload) / MB
        for option in own:
            terms = {option.load: 1.0, option.drives: -share}
            self.rows.add(terms, 0.0 if workload.importance is None else -np.inf, 0.0)

    def _power(self) -> None:
        fleet = self.fleet
        limits: dict[str, float] = {
            domain.name: domain.limit_watts
            for domain in fleet.domains
            if domain.limit_watts is not None
        }
        self.domain_terms: dict[str, dict[int, float]] = {}
        self.domain_constant: dict[str, float] = {}
        for domain in fleet.domains:
            inside = fleet.groups_in(domain.name)
            self.domain_terms[domain.name], constant = self._percentile(inside)
            self.domain_constant[domain.name] = constant + fleet.base_watts_in(domain.name)
        self.all_terms, constant = self._percentile(set(range(len(fleet.drives))))
        self.all_constant = constant + fleet.base_watts
        for name, limit in limits.items():
            self.rows.add(self.domain_terms[name], -np.inf, limit - self.domain_constant[name])
        if self.budget_watts is not None:
            self.rows.add(self.all_terms, -np.inf, self.budget_watts - self.all_constant)

    def _percentile(self, inside: set[int]) -> tuple[dict[int, float], float]:
        """Bound of the power of some groups that is exceeded rarely enough: terms and constant."""
        together = self.fleet.power_correlation
        terms = {one.variable: one.rest.watts for one in self.resting if one.group in inside}
        for one in self.resting:
            # starts that last longer than the share of the time that a limit leaves open
            long = one.rest.exit_seconds > (1.0 - self.fleet.percentile) * self.period_seconds
            if one.leaving is not None and one.group in inside and long:
                terms[one.leaving] = one.rest.spin_up_watts or 0.0
        own = [option for option in self.options if option.group in inside]
        if together is None:
            terms |= {option.drives: option.mode.peak_watts for option in own}
            return terms, 0.0
        quantile = NormalDist().inv_cdf(self.fleet.percentile)
        for option in own:
            mode = option.mode
            terms[option.drives] = mode.gap_watts + quantile * sqrt(together) * _spread(mode)
            terms[option.load] = mode.joules_per_byte * MB
        widest = max((_spread(option.mode) for option in own), default=0.0)
        count = sum(self.fleet.drives[number].count for number in inside)
        return terms, quantile * sqrt(1.0 - together) * widest * sqrt(count)

    def watts(
        self, *, expected: bool = False, groups: Collection[int] | None = None
    ) -> dict[int, float]:
        """Terms of the mean power of all drives, or of some groups: its bound, or its value."""
        terms: dict[int, float] = {}
        waking: dict[int, float] = {}
        for one in self.resting:
            if groups is None or one.group in groups:
                terms[one.variable] = one.rest.watts_expected if expected else one.rest.watts
            if one.entering is not None and (groups is None or one.group in groups):
                # whoever stops has to start again
                joules = one.rest.spin_up_joules(expected=expected)
                terms[one.entering] = joules / self.period_seconds
            elif one.standby:
                waking[one.group] = one.rest.exit_seconds
        for option in self.options:
            if groups is not None and option.group not in groups:
                continue
            mode = option.mode
            gap = mode.gap_watts_expected if expected else mode.gap_watts
            each = mode.joules_per_byte_expected if expected else mode.joules_per_byte
            terms[option.drives] = gap
            terms[option.load] = each * MB
            if option.entering is not None and self.before is not None:
                # waking at the power of full speed, before it serves anything
                seconds = waking.get(option.group, 0.0)
                share = min(seconds / self.before.period_seconds, 1.0)
                terms[option.entering] = mode.full_watts * share
        return terms

    def going_to_standby(self, values: Floats, group: int) -> int:
        """Drives of a group that go to a rest which wears them."""
        return sum(
            max(round(values[one.variable]) - self._standing(one), 0)
            for one in self.resting
            if one.group == group and one.entering is not None
        )

    def standby_wait(self, values: Floats, group: int) -> float:
        """Seconds that a demand waits for one of a group's drives in standby at the most."""
        return max(
            (
                one.rest.exit_seconds
                for one in self.resting
                if one.group == group and one.standby and round(values[one.variable])
            ),
            default=0.0,
        )

    def _standing(self, one: Resting) -> int:
        """Drives that rested so in the plan before."""
        if self.before is None:
            return 0
        return self.before.drives.get(rest_key(self.fleet.drives[one.group], one.rest), 0)

    def cost(self) -> dict[int, float]:
        """What a plan of least watts makes small: the bound of its mean power, and its changes."""
        terms = self.watts()
        for option in self.options:
            if option.entering is not None:
                terms[option.entering] += CHANGE_WATTS
        return terms

    def must(self, extra: Mapping[int, float] | None = None) -> Floats:
        """Lower bounds of all variables: classes of no importance are served in full."""
        low = np.zeros(len(self.upper))
        for place, workload in enumerate(self.fleet.classes):
            if workload.importance is None:
                low[self.served[place]] = self.upper[self.served[place]]
        for variable, least in (extra or {}).items():
            low[variable] = least
        return low

    def solve(
        self,
        objective: Mapping[int, float],
        low: Floats,
        *,
        gap: float,
        within: Solution | None = None,
    ) -> Solution | None:
        """Minimise; None where nothing satisfies the constraints.

        Divisible drives come first: they take a hundredth of the time, bound what is possible, and
        use few of the modes. Whole drives are then looked for in those modes alone, and in all
        only where that leaves more than the gap. What runs already is taken where it is as good
        within the gap.

        Args:
            objective: Coefficients by variable.
            low: Lower bounds.
            gap: Relative gap at which to stop.
            within: Look no further than the modes of this solution and of divisible drives.

        Raises:
            SolverError: HiGHS gave up, or its solution breaks a constraint.
        """
        cost = np.zeros(len(self.upper))
        cost[list(objective)] = list(objective.values())
        divisible = self._minimise(cost, low, np.array(self.upper), gap, whole=False)
        if divisible is None:
            return divisible
        kept = self._kept(cost, low, gap)
        if kept is not None:
            kept = replace(kept, bound=divisible.objective, relaxed=divisible.objective)
            if kept.gap <= gap:
                return kept
        found = self._changed(cost, low, divisible, within, gap)
        if found is None or kept is None:
            return found or kept
        worse = kept.objective - found.objective > gap * abs(found.objective)
        return found if worse else replace(kept, bound=found.bound)

    def _kept(self, cost: Floats, low: Floats, gap: float) -> Solution | None:
        """The best that drives do without a change of what they are set to."""
        if self.before is None:
            return None
        low, upper = low.copy(), np.array(self.upper)
        for option in self.options:
            group = self.fleet.drives[option.group]
            key = mode_key(group, self.fleet.classes[option.workload], option.mode)
            low[option.drives] = upper[option.drives] = self.before.drives.get(key, 0)
        for one in self.resting:
            key = rest_key(self.fleet.drives[one.group], one.rest)
            low[one.variable] = upper[one.variable] = self.before.drives.get(key, 0)
        return self._minimise(cost, low, upper, gap, whole=True)

    def _changed(
        self,
        cost: Floats,
        low: Floats,
        divisible: Solution,
        within: Solution | None,
        gap: float,
    ) -> Solution | None:
        """The best for whole drives, whatever runs now."""
        few = self._minimise(cost, low, self._used_by(divisible, within), gap, whole=True)
        if few is not None:
            few = replace(few, bound=divisible.objective, relaxed=divisible.objective)
            if few.gap <= gap or within is not None:
                return few
        every = self._minimise(cost, low, np.array(self.upper), gap, whole=True)
        if every is None:
            return few
        best = every if few is None or every.objective <= few.objective else few
        bound = max(every.bound, divisible.objective)
        return replace(best, bound=bound, relaxed=divisible.objective)

    def _used_by(self, *solutions: Solution | None) -> Floats:
        """Upper bounds that leave out modes that no solution uses."""
        known = [solution.values for solution in solutions if solution is not None]
        upper = np.array(self.upper)
        for option in self.options:
            if all(values[option.drives] <= UNUSED for values in known):
                upper[option.drives] = upper[option.load] = 0.0
        return upper

    def _minimise(
        self, cost: Floats, low: Floats, upper: Floats, gap: float, *, whole: bool
    ) -> Solution | None:
        integer = np.array(self.integer) if whole else np.zeros(len(upper), dtype=np.intp)
        return solve(
            cost,
            integer,
            low,
            upper,
            self._matrix,
            np.array(self.rows.low),
            np.array(self.rows.high),
            gap=gap,
        )

    @cached_property
    def _matrix(self) -> Matrix:
        rows, columns, values = map(np.array, zip(*self.rows.cells, strict=True))
        return Matrix(rows, columns, values, (len(self.rows.low), len(self.upper)))


def _spread(mode: Mode) -> float:
    """Largest standard deviation of power between gap and peak, W."""
    return (mode.peak_watts - mode.gap_watts) / 2.0


def mode_key(group: DriveGroup, workload: WorkloadClass, mode: Mode) -> tuple[str, ...]:
    """What tells drives in a mode from all others, from one plan to the next."""
    return group.name, workload.name, mode.part.value, mode.configuration.model_dump_json()


def rest_key(group: DriveGroup, rest: Rest) -> tuple[str, ...]:
    """Likewise of drives that serve nothing."""
    return group.name, "", "", rest.word


def value_of(terms: Mapping[int, float], values: Floats) -> float:
    """A linear expression at a solution."""
    return float(sum(value * values[column] for column, value in terms.items()))
