"""Fleet plans as text: what every drive does, what every domain draws, how to get there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iojoule.api.answer_words import setting_in_short
from iojoule.api.cli import console
from iojoule.api.fleets import FleetAnswer, FrontierAnswer
from iojoule.api.quantities import quantity
from iojoule.datasets.schema import Configuration
from iojoule.recommender.fleet.plan import Assignment, Plan, YearlyCosts
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
    yield ""
    table = console.new_table(
        ["drives", "count", "domain", "do", "configuration", "load each", "of", "watts each",
         "peak", "evidence"]
    )  # fmt: skip
    for group in plan.groups:
        for one in group.assignments:
            table.add_row(
                group.name, f"{one.drives:,}", group.domain, _doing(one), _setting(one),
                _rate(one.load_bytes_per_second), _rate(one.capacity_bytes_per_second),
                f"{one.watts:.3g} W", f"{one.peak_watts:.3g} W",
                "-" if one.evidence is None else one.evidence.value,
            )  # fmt: skip
    yield table
    yield ""
    table = console.new_table(["class", "demand", "served", ""])
    for item in plan.classes:
        share = item.served_bytes_per_second / item.demand_bytes_per_second
        table.add_row(
            item.name, _rate(item.demand_bytes_per_second), _rate(item.served_bytes_per_second),
            "all" if share > 0.9999 else f"{share:.1%}",
        )  # fmt: skip
    yield table
    yield ""
    table = console.new_table(["domain", "limit", f"{plan.percentile:.1%} of the time", "expected"])
    for domain in plan.domains:
        limit = "-" if domain.limit_watts is None else _watts(domain.limit_watts)
        drawn = (_watts(domain.percentile_watts), _watts(domain.expected_watts))
        table.add_row(domain.name, limit, *drawn)
    yield table


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


def _stages(stages: list[Stage]) -> Any:
    headings = ("done after", "drives", "of", "change", "peak of one")
    table = console.new_table(headings, title="Roll-out")
    for stage in stages:
        for move in stage.moves:
            table.add_row(
                f"{stage.share:.0%}", f"{move.drives:,}", move.group,
                f"{_words(move.before)} -> {_words(move.after)}",
                f"{move.peak_watts_change:+.3g} W",
            )  # fmt: skip
    table.caption = "In each stage from top to bottom: falling power first."
    return table


def frontier_parts(found: FrontierAnswer) -> Iterator[Any]:
    """The frontier as a table; each step down says what a watt costs in demand."""
    table = console.new_table(["budget", "expected", "served", "share", "for the last watt"])
    before = None
    for point in found.points:
        step = ""
        if before is not None and point.budget_watts > before.budget_watts:
            gained = point.served_bytes_per_second - before.served_bytes_per_second
            step = f"{_rate(gained / (point.budget_watts - before.budget_watts))} a watt"
        table.add_row(
            _watts(point.budget_watts), _watts(point.expected_watts),
            _rate(point.served_bytes_per_second), f"{point.served_share:.1%}", step,
        )  # fmt: skip
        before = point
    yield f"{found.fleet}: what a budget buys, every class counted as if it could be curtailed"
    yield ""
    yield table


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


def _words(one: Assignment) -> str:
    return f"{_doing(one)}, {_setting(one)}"


def _doing(one: Assignment) -> str:
    if one.workload_class is None:
        return one.doing
    part = "" if one.part is None or one.part.value == "all" else f" ({one.part.value})"
    return f"{one.workload_class}{part}"


def _setting(one: Assignment) -> str:
    if one.configuration is None:
        return f"PS{one.power_state}"
    return setting_in_short(one.configuration).replace("\n", ", ")


def _rate(value: float) -> str:
    return quantity("throughput_bytes_per_second", value) if value else "-"


def _watts(value: float) -> str:
    return f"{value:,.0f} W" if value >= 100.0 else f"{value:.3g} W"
