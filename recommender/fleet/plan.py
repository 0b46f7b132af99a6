"""The plan: pydantic models that go to JSON as they are. Units are in the names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Literal

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Section
from iojoule.datasets.vocabulary import Evidence
from iojoule.recommender.fleet.document import Aim

PLAN_VERSION = 1
"""Version of the plan's JSON layout."""


class Part(StrEnum):
    """Which of a class's requests a drive serves."""

    ALL = "all"
    READS = "reads"
    WRITES = "writes"


class Assignment(Section):
    """Drives of a group that run alike.

    Attributes:
        drives: How many.
        doing: Whether they serve, wait for work, or stand by.
        workload_class: What they serve; None for drives that serve nothing.
        part: Which of its requests.
        configuration: What the host sets; None for drives that serve nothing.
        power_state: Of the configuration, or where the drive rests.
        rest: Name of the rest, such as standby of a disk or slumber of a SATA SSD's link; None for
            drives that serve.
        load_bytes_per_second: Useful bytes of one drive, of `capacity_bytes_per_second` at most.
        watts: Expected mean power of one drive; `watts_bound` its one-sided bound.
        peak_watts: Of one drive, exceeded in the share of time that the fleet allows.
        evidence: Of the watts.
    """

    drives: int
    doing: Literal["serving", "ready", "standby"]
    workload_class: str | None
    part: Part | None
    configuration: Configuration | None
    power_state: int
    rest: str | None = None
    load_bytes_per_second: float
    capacity_bytes_per_second: float
    watts: float
    watts_bound: float
    peak_watts: float
    evidence: Evidence | None


class GroupPlan(Section):
    """One group of interchangeable drives.

    Attributes:
        spin_ups: Drives that go to a standby which wears them, each for one start later.
        spin_ups_left: Of those that the wear budget allows from the plan's beginning on; None where
            resting wears nothing.
        wake_seconds: How long a demand waits for one of them at the most; 0 where none stands by.
    """

    name: str
    device: str
    domain: str
    count: int
    assignments: list[Assignment]
    spin_ups: int = 0
    spin_ups_left: float | None = None
    wake_seconds: float = 0.0


class DomainPlan(Section):
    """A power domain under the plan.

    Attributes:
        percentile_watts: What it draws at most in the share of time that the fleet states, base
            included, at the fleet's confidence.
        limit_watts: Its limit; None where it has none.
        expected_watts: Mean power as predicted, base included.
    """

    name: str
    limit_watts: float | None
    percentile_watts: float
    expected_watts: float


class Served(Section):
    """A class of workload under the plan."""

    name: str
    demand_bytes_per_second: float
    served_bytes_per_second: float
    must: bool


class YearlyCosts(Section):
    """What a year of running as planned would take, bases of the domains included.

    Attributes:
        kwh_per_year: As predicted; `_bound` its one-sided bound, here and below. Without the
            overhead of the factors, which is in money and CO2.
        cost_per_year: Electricity and wear in `currency`; None where no price is stated.
        co2_kilograms_per_year: Likewise, with the share of making the drives that is worn.
        drives_worn_per_year: Rated endurance that is used up, in drives; 0 where no price or
            carbon of a drive is stated.
    """

    kwh_per_year: float
    kwh_per_year_bound: float
    cost_per_year: float | None
    cost_per_year_bound: float | None
    co2_kilograms_per_year: float | None
    co2_kilograms_per_year_bound: float | None
    currency: str | None
    drives_worn_per_year: float


class Plan(Section):
    """What every drive of a fleet does under one budget.

    Attributes:
        budget_watts: Of the whole fleet, base included; None without one.
        from_seconds: When it begins; `period_seconds` how long it holds.
        percentile_watts: Exceeded by the fleet in no more than the stated share of the time.
        expected_watts: Mean power as predicted, base included; `bound_watts` its one-sided bound.
        costs: Of a year of it; None in plans of earlier versions.
        changed_drives: Drives that do something else than in the plan before.
        transition_seconds: Before `from_seconds` that drives which go to rest must begin to.
        optimality_gap: How far the objective may be from the best, relative, as proven.
        relaxed_objective: The objective if drives were divisible: no plan can beat it.
        objective: Watts and a little for each change, or weighted bytes a second where the demand
            is what is made large.
    """

    plan_version: int = PLAN_VERSION
    fleet: str
    aim: Aim
    budget_watts: float | None
    from_seconds: float
    period_seconds: float
    percentile: float
    confidence: float
    percentile_watts: float
    expected_watts: float
    bound_watts: float
    costs: YearlyCosts | None = None
    classes: list[Served]
    domains: list[DomainPlan]
    groups: list[GroupPlan]
    changed_drives: int
    transition_seconds: float
    objective: float
    relaxed_objective: float
    optimality_gap: float
    notes: list[str]


class FrontierPoint(Section):
    """What a budget buys at the best: one point of the fleet's power-throughput frontier."""

    budget_watts: float
    percentile_watts: float
    expected_watts: float
    served_bytes_per_second: float
    served_share: float
    optimality_gap: float


class Tried(Section):
    """A budget that was tried for the frontier: its point, or None where it is below rest."""

    point: FrontierPoint | None


SHARES = (0.01, 0.1, 0.5, 1.0)
"""Share of the changes that is done after each stage."""


class Move(Section):
    """Drives of a group that change from one assignment to another.

    Attributes:
        peak_watts_change: Of one drive; negative where its power falls.
    """

    group: str
    domain: str
    drives: int
    before: Assignment
    after: Assignment
    peak_watts_change: float


class Stage(Section):
    """Moves that go out together, falling power first.

    Attributes:
        share: Of all changes that is done after this stage.
        peak_watts: Most that each domain's drives draw while it runs, all peaking together; by
            domain of the drives, bases and domains above left out.
    """

    share: float
    moves: list[Move]
    peak_watts: dict[str, float]


def rollout(before: Plan, after: Plan, shares: Sequence[float] = SHARES) -> list[Stage]:
    """Stages from one plan to another of the same fleet.

    Args:
        before: What runs.
        after: What shall run.
        shares: Rising shares of the changes, the last one 1.

    Raises:
        InputError: The plans are of different drives, or the shares do not rise to 1.
    """
    if list(shares) != sorted(set(shares)) or not shares or shares[0] <= 0 or shares[-1] != 1.0:
        raise InputError(f"stages: shares must rise from above 0 to 1, not {list(shares)}")
    now = {group.name: group for group in before.groups}
    every: list[Move] = []
    for group in after.groups:
        old = now.pop(group.name, None)
        if old is None or (old.count, old.domain) != (group.count, group.domain):
            raise InputError(
                f"drives {group.name}: the plans differ in how many there are or where; plan the "
                "fleet that runs, then the one that shall run"
            )
        every += _moves(old, group)
    if now:
        raise InputError(f"drives {', '.join(sorted(now))}: only the first plan has them")
    every.sort(key=lambda move: move.peak_watts_change)
    drawn = dict.fromkeys((group.domain for group in before.groups), 0.0)
    for group in before.groups:
        drawn[group.domain] += sum(a.drives * a.peak_watts for a in group.assignments)
    stages: list[Stage] = []
    done = [0] * len(every)
    for share in shares:
        moves = []
        most = dict(drawn)
        for place, move in enumerate(every):
            drives = ceil(share * move.drives) - done[place]
            if drives <= 0:
                continue
            done[place] += drives
            moves.append(move.model_copy(update={"drives": drives}))
            drawn[move.domain] += drives * move.peak_watts_change
            most[move.domain] = max(most[move.domain], drawn[move.domain])
        if moves:
            stages.append(Stage(share=share, moves=moves, peak_watts=most))
    if stages:  # few changes are done before the shares are
        stages[-1] = stages[-1].model_copy(update={"share": 1.0})
    return stages


@dataclass
class _Open:
    """Drives that still need a partner."""

    assignment: Assignment
    drives: int


def _moves(before: GroupPlan, after: GroupPlan) -> list[Move]:
    """Pair what runs too often with what runs too seldom, the least change of power first."""
    have = _counted(before)
    want = _counted(after)
    surplus, missing = _beyond(have, want), _beyond(want, have)
    found = []
    while surplus and missing:
        here, there = surplus[0], missing[0]
        drives = min(here.drives, there.drives)
        found.append(
            Move(
                group=after.name,
                domain=after.domain,
                drives=drives,
                before=here.assignment,
                after=there.assignment,
                peak_watts_change=there.assignment.peak_watts - here.assignment.peak_watts,
            )
        )
        here.drives -= drives
        there.drives -= drives
        surplus = [o for o in surplus if o.drives]
        missing = [o for o in missing if o.drives]
    return found


def _counted(group: GroupPlan) -> dict[tuple[object, ...], _Open]:
    """Drives by what they are set to; the load of a drive is not a setting."""
    found: dict[tuple[object, ...], _Open] = {}
    for one in group.assignments:
        key = (one.doing, one.workload_class, one.part, one.configuration, one.power_state)
        found.setdefault(key, _Open(one, 0)).drives += one.drives
    return found


def _beyond(
    have: dict[tuple[object, ...], _Open], want: dict[tuple[object, ...], _Open]
) -> list[_Open]:
    """What there is more of than wanted, by rising power."""
    found = [
        _Open(one.assignment, one.drives - (want[key].drives if key in want else 0))
        for key, one in have.items()
    ]
    more = (one for one in found if one.drives > 0)
    return sorted(more, key=lambda one: one.assignment.peak_watts)
