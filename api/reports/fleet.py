"""Tables, sentences and reports of fleet plans and of fleet frontiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iojoule.api.reports import report_file
from iojoule.api.reports.chart import Axis, Chart, Point, Span, draw
from iojoule.api.reports.configurations import setting_in_short
from iojoule.api.reports.document import Block, Document, Picture, Points, Section, Table, Text
from iojoule.api.reports.quantities import quantity
from iojoule.api.reports.report_file import Asked
from iojoule.recommender.fleet.plan import Assignment, FrontierPoint, Plan, Stage, YearlyCosts

if TYPE_CHECKING:
    from iojoule.api.application.fleet import FleetAnswer, FrontierAnswer


def summary(plan: Plan) -> Iterator[str]:
    """What is planned, and what it draws and costs."""
    budget = "no budget" if plan.budget_watts is None else f"budget {_watts(plan.budget_watts)}"
    when = f"from second {plan.from_seconds:,.0f} for {plan.period_seconds:,.0f} s"
    yield f"{plan.fleet}: {plan.aim.replace('_', ' ')}, {budget}, {when}"
    yield (
        f"{_watts(plan.expected_watts)} expected, at most {_watts(plan.bound_watts)} in the mean "
        f"({plan.confidence:.0%} confidence) and {_watts(plan.percentile_watts)} in "
        f"{plan.percentile:.1%} of the time; within {plan.optimality_gap:.2%} of the best plan"
    )
    if plan.costs is not None:
        yield f"a year of it: {_yearly(plan.costs)}"
    if plan.changed_drives:
        yield f"{plan.changed_drives:,} drives change"
    for group in plan.groups:
        if group.spin_ups_left is not None:
            yield (
                f"{group.name}: {group.spin_ups:,} stop, of {group.spin_ups_left:,.0f} that their "
                "wear budget leaves"
                + (
                    f"; a demand waits up to {group.wake_seconds:.3g} s for one of them"
                    if group.wake_seconds
                    else ""
                )
            )


def _yearly(costs: YearlyCosts) -> str:
    """Energy, money and CO2, each with its bound."""
    told = [f"{costs.kwh_per_year:,.0f} kWh (at most {costs.kwh_per_year_bound:,.0f})"]
    for value, bound, unit in (
        (costs.cost_per_year, costs.cost_per_year_bound, costs.currency),
        (costs.co2_kilograms_per_year, costs.co2_kilograms_per_year_bound, "kg CO2"),
    ):
        if value is not None and bound is not None:
            told.append(f"{value:,.0f} {unit} ({bound:,.0f})")
    if costs.drives_worn_per_year:
        told.append(f"wear of {costs.drives_worn_per_year:.3g} drives among it")
    return "; ".join(told)


def groups(plan: Plan) -> Table:
    """What every drive does."""
    rows = [
        (
            group.name,
            f"{one.drives:,}",
            group.domain,
            _doing(one),
            _setting(one),
            _rate(one.load_bytes_per_second),
            _rate(one.capacity_bytes_per_second),
            f"{one.watts:.3g} W",
            f"{one.peak_watts:.3g} W",
            "-" if one.evidence is None else one.evidence.value,
        )
        for group in plan.groups
        for one in group.assignments
    ]
    headings = (
        "drives",
        "count",
        "domain",
        "do",
        "configuration",
        "load each",
        "of",
        "watts each",
        "peak",
        "evidence",
    )
    return Table.of(headings, rows)


def classes(plan: Plan) -> Table:
    """What is served of each class of work."""
    rows = []
    for item in plan.classes:
        share = item.served_bytes_per_second / item.demand_bytes_per_second
        rows.append(
            (
                item.name,
                _rate(item.demand_bytes_per_second),
                _rate(item.served_bytes_per_second),
                "all" if share > 0.9999 else f"{share:.1%}",
            )
        )
    return Table.of(("class", "demand", "served", ""), rows)


def domains(plan: Plan) -> Table:
    """What every power domain draws, of what it may."""
    rows = []
    for domain in plan.domains:
        limit = "-" if domain.limit_watts is None else _watts(domain.limit_watts)
        drawn = (_watts(domain.percentile_watts), _watts(domain.expected_watts))
        rows.append((domain.name, limit, *drawn))
    headings = ("domain", "limit", f"{plan.percentile:.1%} of the time", "expected")
    return Table.of(headings, rows)


def stages(found: Sequence[Stage]) -> Table:
    """How to get there, stage by stage."""
    rows = [
        (
            f"{stage.share:.0%}",
            f"{move.drives:,}",
            move.group,
            f"{_words(move.before)} -> {_words(move.after)}",
            f"{move.peak_watts_change:+.3g} W",
        )
        for stage in found
        for move in stage.moves
    ]
    headings = ("done after", "drives", "of", "change", "peak of one")
    caption = "In each stage from top to bottom: falling power first."
    return Table.of(headings, rows, caption=caption)


def frontier(found: FrontierAnswer) -> Table:
    """What budgets buy; each step says what a watt brings in demand."""
    rows = []
    before = None
    for point in found.points:
        step = ""
        if before is not None and point.budget_watts > before.budget_watts:
            gained = point.served_bytes_per_second - before.served_bytes_per_second
            step = f"{_rate(gained / (point.budget_watts - before.budget_watts))} a watt"
        rows.append(
            (
                _watts(point.budget_watts),
                _watts(point.expected_watts),
                _rate(point.served_bytes_per_second),
                f"{point.served_share:.1%}",
                step,
            )
        )
        before = point
    return Table.of(("budget", "expected", "served", "share", "for the last watt"), rows)


def _words(one: Assignment) -> str:
    return f"{_doing(one)}, {_setting(one)}"


def _doing(one: Assignment) -> str:
    if one.workload_class is None:
        return one.doing
    part = "" if one.part is None or one.part.value == "all" else f" ({one.part.value})"
    return f"{one.workload_class}{part}"


def _setting(one: Assignment) -> str:
    if one.configuration is None:
        return one.rest or f"PS{one.power_state}"
    return setting_in_short(one.configuration).replace("\n", ", ")


def _rate(value: float) -> str:
    return quantity("throughput_bytes_per_second", value) if value else "-"


def _watts(value: float) -> str:
    return f"{value:,.0f} W" if value >= 100.0 else f"{value:.3g} W"


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
        report_file.data_of_report(PLAN, asked, found),
    )


def _heading(found: FleetAnswer, number: int) -> str:
    if len(found.plans) == 1:
        return "The plan"
    return f"Plan {number + 1}, from second {found.plans[number].from_seconds:,.0f}"


def _plan(plan: Plan, rollout: list[Stage] | None) -> Iterator[Block]:
    for line in summary(plan):
        yield Text(line)
    yield from (groups(plan), classes(plan), domains(plan))
    if rollout:
        yield Text("How to get there:")
        yield stages(rollout)


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
                    frontier(found),
                ),
            ),
            *_end(found.iojoule_version, asked),
        ),
        report_file.data_of_report(FRONTIER, asked, found),
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
            "frontier",
            "Served over watts",
            caption,
            Axis("power of the fleet (W)", lambda value: f"{value:,g}"),
            Axis("served", lambda value: quantity("bytes_per_second", value)),
            lines=lines,
            kinds={"recommended": "budget", "today": "expected mean power"},
        )
    )


def _point(point: FrontierPoint, name: str, kind: str) -> Point:
    watts, served = getattr(point, name), point.served_bytes_per_second
    says = f"{watts:,.4g} W: {quantity('bytes_per_second', served)}"
    at = Span(watts, watts, watts)
    return Point(at, Span(served, served, served), None, kind, says)


def _end(iojoule: str, asked: Asked) -> Iterator[Section]:
    versions = Table.of(("part", "version"), [("iojoule", iojoule)])
    yield Section("Evidence and versions", (Text(BUILT_ON), versions, *report_file.sources(asked)))
    yield report_file.again(asked)
