"""Fleet plans in words: what every drive does, what every domain draws, how to get there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iojoule.api.application.fleet import FrontierAnswer
from iojoule.api.documents.content import Table
from iojoule.api.words.configurations import setting_in_short
from iojoule.api.words.quantities import quantity
from iojoule.recommender.fleet.plan import Assignment, Plan, YearlyCosts
from iojoule.recommender.fleet.rollout import Stage


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
            group.name, f"{one.drives:,}", group.domain, _doing(one), _setting(one),
            _rate(one.load_bytes_per_second), _rate(one.capacity_bytes_per_second),
            f"{one.watts:.3g} W", f"{one.peak_watts:.3g} W",
            "-" if one.evidence is None else one.evidence.value,
        )
        for group in plan.groups
        for one in group.assignments
    ]  # fmt: skip
    headings = (
        "drives", "count", "domain", "do", "configuration", "load each", "of", "watts each",
        "peak", "evidence",
    )  # fmt: skip
    return Table.of(headings, rows)


def classes(plan: Plan) -> Table:
    """What is served of each class of work."""
    rows = []
    for item in plan.classes:
        share = item.served_bytes_per_second / item.demand_bytes_per_second
        rows.append(
            (
                item.name, _rate(item.demand_bytes_per_second), _rate(item.served_bytes_per_second),
                "all" if share > 0.9999 else f"{share:.1%}",
            )
        )  # fmt: skip
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
            f"{stage.share:.0%}", f"{move.drives:,}", move.group,
            f"{_words(move.before)} -> {_words(move.after)}", f"{move.peak_watts_change:+.3g} W",
        )
        for stage in found
        for move in stage.moves
    ]  # fmt: skip
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
                _watts(point.budget_watts), _watts(point.expected_watts),
                _rate(point.served_bytes_per_second), f"{point.served_share:.1%}", step,
            )
        )  # fmt: skip
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
