"""The plan: pydantic models that go to JSON as they are. Units are in the names."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

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
