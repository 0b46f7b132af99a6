"""A recommendation as text: the ranked rows, the saving, what to know before acting on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from iojoule.api.answer_words import (
    KNOBS,
    OF_HOST,
    SCOPE_POWER,
    bound,
    knob,
    plain_name,
    same_setting,
    setting,
)
from iojoule.api.cli import console, why_table
from iojoule.api.quantities import digits, quantity, size
from iojoule.datasets.schema import Configuration
from iojoule.recommender.answer import Endurance, Miss, Recommendation, Row, Saving, Shortfall
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import YEARLY, Factors
from iojoule.recommender.power_cut import DurabilityAnswer, PowerCut
from iojoule.recommender.sla import Sla

_HEADINGS = {
    "request_bytes": "request",
    "queue_depth": "depth",
    "submission_polling": "SQ poll",
    "power_state": "state",
    **OF_HOST,
}

_BROAD = 180
"""On a narrower terminal intervals and second words stand below."""

_BREAK = re.compile(r" (\[|recommended|misses|/ )")


def parts(found: Recommendation, rows: int) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    yield f"{found.workload} on {found.model_name} (profile version {found.profile_version})"
    yield from _asked(found)
    yield ""
    yield _table(found, rows)
    yield ""
    yield from _verdict(found)
    if found.attribution is not None and found.recommended is not None:
        yield ""
        best = found.recommended.configuration
        yield from why_table.attribution(found.attribution, found.current.configuration, best)
    if found.measure_next is not None:
        yield ""
        yield from why_table.measure_next(found.measure_next)
    if found.bounds:
        yield ""
        yield from why_table.bounds(found.bounds, found.ranked_by)
    if found.nearest_misses:
        yield ""
        yield from _misses(found.nearest_misses)
        yield from why_table.relaxations(found.relaxations)
    yield ""
    yield from _reading(found)


def _asked(found: Recommendation) -> Iterator[str]:
    demand = quantity("demand_bytes_per_second", found.demand_bytes_per_second)
    mode = (
        "as fast as possible" if found.demand_bytes_per_second is None else f"useful work {demand}"
    )
    yield f"{mode}; energy of {SCOPE_POWER[found.scope][1]}; ranked by {_target(found)}"
    bounds = [_bound(found.sla, name, limit) for name, limit in found.sla.bounds().items()]
    yield f"SLA at {found.confidence:.0%} confidence: {'; '.join(bounds) or 'no bounds'}"
    counts = found.counts
    yield (
        f"{counts.total:,} candidates, {counts.feasible:,} meet the SLA, "
        f"{counts.on_front:,} on the Pareto front"
    )


def _target(found: Recommendation) -> str:
    """What rows are ranked by, in words."""
    words = {
        "joules_per_useful_gb": "joules per useful GB", "edp": "EDP", "kwh_per_year": "kWh a year",
        "cost": f"cost ({found.factors.currency})", "co2": "CO2",
    }  # fmt: skip
    return words.get(found.ranked_by, found.ranked_by)


def _bound(sla: Sla, name: str, limit: float) -> str:
    said = bound(name, limit)
    if name in sla.soft:
        said += " preferred"
    own = sla.confidence_of(name)
    return said if own == sla.confidence else f"{said} at {own:.3g}"


def _table(found: Recommendation, rows: int) -> Any:
    shown = _shown(found, rows)
    everything = [row for _, row in shown]
    fixed, varying = _split_knobs([row.configuration for row in everything])
    power, scope = SCOPE_POWER[found.scope]
    columns = {power: f"power ({scope})", "joules_per_useful_gb": "energy per GB"}
    if found.objective.value == "edp":
        columns["edp_joule_seconds"] = "EDP"
    if found.objective in YEARLY:
        columns[YEARLY[found.objective]] = f"{_target(found)} a year"
    columns |= {"capacity_bytes_per_second": "can carry", "latency_p99_ns": "p99 latency"}
    headings = ["", *(_HEADINGS.get(name, name) for name in varying), *columns.values()]
    table = console.new_table([*headings, "evidence"])
    for mark, row in shown:
        cells = [
            mark,
            *(knob(row.configuration, name) for name in varying),
            *(_estimate(row, name) for name in columns),
            _evidence(row, power),
        ]
        if console.width() < _BROAD:
            cells = [_BREAK.sub(r"\n\1", cell) for cell in cells]
        table.add_row(*cells)
    table.caption = (f"All rows: {fixed}. " if fixed else "") + (
        "In brackets: 90 % interval. Evidence: of performance / of power."
    )
    return table


def _shown(found: Recommendation, most: int) -> list[tuple[str, Row]]:
    """Rows of the front by rank, the recommended one among them, and today's."""
    best = found.recommended
    ranked = list(enumerate(_ranked(found), start=1))
    head = ranked[:most]
    if best is not None and not any(row is best for _, row in head):
        head = [*ranked[: most - 1], *(one for one in ranked if one[1] is best)]
    marked = [(f"{place} recommended" if row is best else str(place), row) for place, row in head]
    if best is None or not same_setting(found.current, best):
        marked.append(("today" if found.current.meets_sla else "today, misses SLA", found.current))
    return marked


def _ranked(found: Recommendation) -> list[Row]:
    best = found.recommended
    if best is None:
        return list(found.pareto)
    if any(same_setting(row, best) for row in found.pareto):
        return [best if same_setting(row, best) else row for row in found.pareto]
    return sorted([best, *found.pareto], key=lambda row: rank_value(found, row))


def rank_value(found: Recommendation, row: Row) -> float:
    """What rows are ranked by: the objective, or less capacity where power is unknown."""
    name = {
        "watts": SCOPE_POWER[found.scope][0],
        "joules_per_useful_gb": "joules_per_useful_gb",
        "edp": "edp_joule_seconds",
        **{str(one.value): name for one, name in YEARLY.items()},
    }.get(found.ranked_by)
    estimate: Estimate | None = getattr(row, name) if name else None
    return -row.capacity_bytes_per_second.value if estimate is None else estimate.value


def _split_knobs(configurations: Sequence[Configuration]) -> tuple[str, list[str]]:
    """What all rows share, in words, and the knobs in which they differ."""
    varying = [name for name in KNOBS if len({getattr(one, name) for one in configurations}) > 1]
    fixed = ", ".join(
        f"{_HEADINGS.get(name, name)} {knob(configurations[0], name)}"
        for name in KNOBS
        if name not in varying and getattr(configurations[0], name) is not None
    )
    return fixed, varying


def _estimate(row: Row, name: str) -> str:
    found: Estimate | None = getattr(row, name)
    return "-" if found is None else quantity(name, found.value, found.low, found.high)


def _evidence(row: Row, power: str) -> str:
    watts: Estimate | None = getattr(row, power)
    of_power = "none" if watts is None else watts.evidence.value
    performance = row.capacity_bytes_per_second.evidence.value
    return performance if of_power == performance else f"{performance} / {of_power}"


def _verdict(found: Recommendation) -> Iterator[str]:
    if found.recommended is None:
        yield "No configuration meets the SLA."
        return
    yield f"Recommended: {setting(found.recommended.configuration)}{_in_doubt(found.saving)}"
    if found.not_taken is not None:
        yield f"Not taken:   {setting(found.not_taken.row.configuration)}"
    elif found.pareto and found.recommended.configuration != found.pareto[0].configuration:
        yield (
            "             level with row 1 (within 1 %, which no profile tells apart): "
            "today's, else the better known, else the simpler one is taken"
        )
    for one in found.preferred_missed:
        yield f"Preferred:   not kept by anything: {_short(one)}"
    yield f"Today:       {setting(found.current.configuration)}; {_place(found)}"
    if found.saving is None:
        yield "Saving:      unknown, the profile has no power for this scope"
    else:
        yield from _saving(found.saving, found.factors)
    if found.endurance is not None:
        change = found.endurance.change_host_bytes_per_year
        more = quantity("host_bytes_per_year", abs(change))
        than = f"{more} {'more' if change > 0 else 'less'} than" if change else "as much as"
        yearly = quantity("host_bytes_per_year", found.endurance.host_bytes_per_year)
        told = f"the host writes {yearly} a year, {than} today"
        years = found.endurance.years_left
        if years is not None:
            told += f"; the rated endurance lasts {years:.2g} years"
        yield f"Wear:        {told}; {found.endurance.reason}"
        yield from _wear_costs(found.endurance, found.factors)
    yield from _durability(found.durability)


def _durability(found: DurabilityAnswer | None) -> Iterator[str]:
    if found is None:
        yield "Durability:  untouched; file systems stay as they are"
        return
    yield f"Durability:  {found.reason}"
    today = f"; today {_power_cut(found.power_cut_today)}" if found.weakened else ""
    yield f"             a power cut takes at most {_power_cut(found.power_cut)}{today}"
    for one in found.options if found.weaker_allowed else ():
        yield f"             {one.setting}: at most {_power_cut(one.loses)}; known: {one.known}"


def _power_cut(found: PowerCut) -> str:
    """What a power cut takes, in words."""
    if found.writes == 0.0:
        return "nothing that was acknowledged"
    if found.seconds is None:
        return "what the drive has not written back by itself: nothing bounds it"
    seconds = quantity("seconds", found.seconds)
    if found.writes is None or found.written_bytes is None:
        return f"the writes of {seconds}"
    writes = f"{found.writes:,.0f} write{'' if found.writes == 1 else 's'}"
    return f"{writes}, {size(found.written_bytes)} or those of {seconds}"


def _wear_costs(wear: Endurance, factors: Factors) -> Iterator[str]:
    told = [
        f"{digits(yearly)} {unit} of the drive a year, {change:+.3g} {unit} against today"
        for yearly, change, unit in (
            (wear.cost_per_year, wear.change_cost_per_year, factors.currency),
            (wear.co2_kilograms_per_year, wear.change_co2_kilograms_per_year, "kg CO2"),
        )
        if yearly is not None and change is not None
    ]
    if told:
        yield f"             it uses up {'; '.join(told)}"


def _in_doubt(saving: Saving | None) -> str:
    if saving is None or saving.verdict in ("proven", "costs more"):
        return ""
    return "  (today's: stay)" if saving.verdict == "stay" else "  (not proven: measure this first)"


def _place(found: Recommendation) -> str:
    place = found.current_place
    if place.on_front:
        return "on the front"
    beaten = "no row of the front beats it in everything"
    if place.beaten_by:
        better = [found.pareto[index] for index in place.beaten_by_rows]
        ranks = [
            str(rank)
            for rank, row in enumerate(_ranked(found), start=1)
            if any(same_setting(row, one) for one in better)
        ]
        rows = f"row{'' if place.beaten_by == 1 else 's'}"
        beaten = f"beaten in everything by {place.beaten_by} {rows} of the front"
        beaten += f" ({', '.join(ranks)})" if ranks else ""
    return beaten if found.current.meets_sla else f"misses the SLA; {beaten}"


def _saving(saving: Saving, factors: Factors) -> Iterator[str]:
    told = [
        quantity(name, estimate.value, estimate.low, estimate.high) + ending
        for name, ending in (
            ("watts", ""),
            ("joules_per_useful_gb", ""),
            ("kwh_per_year", " a year"),
            ("percent", ""),
        )
        for estimate in [getattr(saving, name)]
    ]
    yield f"Saving:      {'; '.join(told)}"
    billed = [
        f"{quantity(name, one.value, one.low, one.high)}{unit} a year"
        for name, one, unit in (
            ("cost_per_year", saving.cost_per_year, f" {factors.currency}"),
            ("co2_kilograms_per_year", saving.co2_kilograms_per_year, ""),
        )
        if one is not None
    ]
    if billed:
        yield f"             {'; '.join(billed)}"
    yield f"             {saving.verdict}: {saving.reason}"


def _misses(misses: Sequence[Miss]) -> Iterator[str]:
    yield "Nearest misses"
    for miss in misses:
        yield f"  {setting(miss.row.configuration)}"
        yield from (f"    {_short(one)}" for one in miss.shortfalls)


def _short(one: Shortfall) -> str:
    name = one.bound.removesuffix("_min").removesuffix("_max")
    return (
        f"{plain_name(name)}: reaches {quantity(name, one.reached)}, bound "
        f"{quantity(name, one.limit)}, missed by {quantity(name, one.missed_by)} "
        f"({one.missed_by_percent:.0f} %)"
    )


def _reading(found: Recommendation) -> Iterator[str]:
    yield "Before acting on it"
    yield from (f"  {note}" for note in found.notes)
    if found.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in found.defaults_used.items())
        yield f"  defaults taken for what the workload profile leaves out: {said}"


def emit_csv(found: Recommendation) -> None:
    """Write one line per configuration: recommended, front, nearest misses, today's."""
    rows = [("recommended", found.recommended)] if found.recommended else []
    rows += [("pareto", row) for row in found.pareto]
    rows += [("nearest_miss", miss.row) for miss in found.nearest_misses]
    rows.append(("current", found.current))
    quantities = [name for name in Row.model_fields if name not in _PLAIN]
    header = ["role", *KNOBS, *_PLAIN[1:]]
    for name in quantities:
        header += [name, f"{name}_low", f"{name}_high", f"{name}_evidence"]
    console.emit_csv(header, (_flat(role, row, quantities) for role, row in rows))


_PLAIN = ("configuration", "busy_share", "host_bytes_written_per_second", "meets_sla")


def _flat(role: str, row: Row, quantities: Sequence[str]) -> list[Any]:
    cells: list[Any] = [role, *(getattr(row.configuration, name) for name in KNOBS)]
    cells += [row.busy_share, row.host_bytes_written_per_second, row.meets_sla]
    for name in quantities:
        one: Estimate | None = getattr(row, name)
        cells += [None] * 4 if one is None else [one.value, one.low, one.high, one.evidence]
    return [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
