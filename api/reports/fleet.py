"""Reports of a fleet: its plans, and what budgets buy."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.api.application.fleet import FleetAnswer, FrontierAnswer
from iojoule.api.documents.chart import Axis, Chart, Point, Span, draw
from iojoule.api.documents.content import Block, Document, Picture, Points, Section, Table, Text
from iojoule.api.reports import asked as questions
from iojoule.api.reports.asked import Asked
from iojoule.api.words import fleets as words
from iojoule.api.words.quantities import quantity
from iojoule.recommender.fleet.plan import FrontierPoint, Plan
from iojoule.recommender.fleet.rollout import Stage

PLAN, FRONTIER = "fleet plan", "fleet frontier"

BUILT_ON = "Powers are predicted at each configuration; what they rest on stands in the plan."


def plan_report(found: FleetAnswer, asked: Asked) -> Document:
    """The report of a fleet's plans, one for each budget in turn."""
    first = found.plans[0]
    sections = [
        Section(_heading(found, number), tuple(_plan(plan, stages)))
        for number, (plan, stages) in enumerate(zip(found.plans, found.rollouts, strict=True))
    ]
    return Document(
        "Fleet plan",
        f"{first.fleet}-plan",
        f"{first.fleet}: {first.aim.replace('_', ' ')}",
        (("Plans", str(len(found.plans))), ("Asked", asked.moment)),
        (
            *sections,
            Section("Before acting on it", (Points(tuple(found.plans[-1].notes)),)),
            *_end(found.iojoule_version, asked),
        ),
        questions.data_of_report(PLAN, asked, found),
    )


def _heading(found: FleetAnswer, number: int) -> str:
    if len(found.plans) == 1:
        return "The plan"
    return f"Plan {number + 1}, from second {found.plans[number].from_seconds:,.0f}"


def _plan(plan: Plan, stages: list[Stage] | None) -> Iterator[Block]:
    for line in words.summary(plan):
        yield Text(line)
    yield from (words.groups(plan), words.classes(plan), words.domains(plan))
    if stages:
        yield Text("How to get there:")
        yield words.stages(stages)


def frontier_report(found: FrontierAnswer, asked: Asked) -> Document:
    """The report of what budgets buy."""
    drawn = [_curve(found)] if found.points else []
    return Document(
        "Fleet frontier",
        f"{found.fleet}-frontier",
        f"{found.fleet}: what a budget buys",
        (("Budgets", str(len(found.points))), ("Asked", asked.moment)),
        (
            Section(
                "What a budget buys",
                (
                    Text("Every class is counted as if it could be curtailed."),
                    *drawn,
                    words.frontier(found),
                ),
            ),
            *_end(found.iojoule_version, asked),
        ),
        questions.data_of_report(FRONTIER, asked, found),
    )


def _curve(found: FrontierAnswer) -> Picture:
    """Served over watts: those that are allowed, and those that are expected."""
    lines = [
        [_point(point, name, kind) for point in found.points]
        for name, kind in (("budget_watts", "recommended"), ("expected_watts", "today"))
    ]
    caption = (
        "From right to left it is the demand-response curve: what must go unserved for each watt "
        "given back. A plan keeps its budget at the fleet's percentile and confidence, so it is "
        "expected to draw less."
    )
    return draw(
        Chart(
            "frontier", "Served over watts", caption,
            Axis("power of the fleet (W)", lambda value: f"{value:,g}"),
            Axis("served", lambda value: quantity("bytes_per_second", value)),
            lines=lines,
            kinds={"recommended": "budget", "today": "expected mean power"},
        )
    )  # fmt: skip


def _point(point: FrontierPoint, name: str, kind: str) -> Point:
    watts, served = getattr(point, name), point.served_bytes_per_second
    says = f"{watts:,.4g} W: {quantity('bytes_per_second', served)}"
    at = Span(watts, watts, watts)
    return Point(at, Span(served, served, served), None, kind, says)


def _end(iojoule: str, asked: Asked) -> Iterator[Section]:
    versions = Table.of(("part", "version"), [("iojoule", iojoule)])
    yield Section("Evidence and versions", (Text(BUILT_ON), versions, *questions.sources(asked)))
    yield questions.again(asked)
