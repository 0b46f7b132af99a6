"""Fleet plans as text: what every drive does, what every domain draws, how to get there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iojoule.api.cli import console
from iojoule.api.fleets import FleetAnswer, FrontierAnswer
from iojoule.api.words import fleets as words
from iojoule.datasets.schema import Configuration
from iojoule.recommender.fleet.plan import Assignment, Plan
from iojoule.recommender.fleet.replacement import Replacement
from iojoule.recommender.fleet.rollout import Stage


def parts(found: FleetAnswer) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    for number, (plan, stages) in enumerate(zip(found.plans, found.rollouts, strict=True)):
        if number:
            yield ""
        yield from _plan(plan)
        if stages:
            yield ""
            yield _stages(stages)
    yield ""
    for note in found.plans[-1].notes:
        yield f"- {note}"


def _plan(plan: Plan) -> Iterator[Any]:
    yield from words.summary(plan)
    for table in (words.groups(plan), words.classes(plan), words.domains(plan)):
        yield ""
        yield console.table_of(table)


def _stages(stages: list[Stage]) -> Any:
    table = console.table_of(words.stages(stages))
    table.title = "Roll-out"
    return table


def frontier_parts(found: FrontierAnswer) -> Iterator[Any]:
    """The frontier as a table; each step down says what a watt costs in demand."""
    yield f"{found.fleet}: what a budget buys, every class counted as if it could be curtailed"
    yield ""
    yield console.table_of(words.frontier(found))


def replacement_parts(found: Replacement) -> Iterator[str]:
    """The replacement in three lines."""
    yield (
        f"{found.servers:.2f} new servers do the work of one old one "
        f"({found.servers_whole} where one is replaced alone)"
    )
    interval = f"[{found.power_ratio_low:.3g}, {found.power_ratio_high:.3g}]"
    yield (
        f"They draw {found.power_ratio:.3g} {interval} times its power "
        f"({found.power_ratio_whole:.3g} times where one is replaced alone)"
    )
    yield f"Does it pay in watts? {found.pays}"


def emit_csv(found: FleetAnswer) -> None:
    """One row for each assignment of each plan."""
    knobs = list(Configuration.model_fields)
    header = ["from_seconds", "budget_watts", "drives", "device", "domain"]
    fields = [name for name in Assignment.model_fields if name != "configuration"]
    rows = []
    for plan in found.plans:
        for group in plan.groups:
            for one in group.assignments:
                data = one.model_dump(mode="json")
                settings = data["configuration"] or {}
                rows.append(
                    [plan.from_seconds, plan.budget_watts, group.name, group.device, group.domain]
                    + [data[name] for name in fields]
                    + [settings.get(name) for name in knobs if name not in fields]
                )
    names = ["count" if name == "drives" else name for name in fields]
    console.emit_csv([*header, *names, *(name for name in knobs if name not in fields)], rows)
