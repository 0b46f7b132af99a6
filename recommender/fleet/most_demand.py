"""What every budget is asked: how much demand it carries, and what that draws."""

from __future__ import annotations

from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.modes import Mode, Rest
from iojoule.recommender.fleet.plan import FrontierPoint, Part, Tried
from iojoule.recommender.fleet.program import MB, Program, value_of
from iojoule.recommender.fleet.solver import Solution

SLACK = 1e-4
"""Share of the served bytes that may be given up when the watts are made small afterwards: to serve
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
        budget_watts=watts, percentile_watts=percentile_watts(program, solution),
        expected_watts=expected_watts(program, solution), served_bytes_per_second=served,
        served_share=served / sum(c.demand_bytes_per_second for c in fleet.classes),
        optimality_gap=first.gap,
    )  # fmt: skip
    return Tried(point=point)
