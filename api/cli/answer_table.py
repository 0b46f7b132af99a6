"""A recommendation as text: the ranked rows, the saving, what to know before acting on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from iojoule.api.cli import console
from iojoule.api.words import reasons, sentences
from iojoule.api.words.configurations import KNOBS, SCOPE_POWER, knob, setting
from iojoule.api.words.quantities import quantity
from iojoule.api.words.rows import HEADINGS, evidence, shown, split_knobs, target
from iojoule.recommender.answer import Miss, Recommendation, Row
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.reasons import MeasureNext

_BROAD = 180
"""On a narrower terminal intervals and second words stand below."""

_BREAK = re.compile(r" (\[|recommended|misses|/ )")


def parts(found: Recommendation, rows: int) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    yield sentences.headline(found, target(found))
    yield f"{found.workload} on {found.model_name} (profile version {found.profile_version})"
    yield from _asked(found)
    if shown(found, rows):
        yield ""
        yield _table(found, rows)
    yield ""
    yield from _verdict(found)
    if found.attribution is not None and found.recommended and found.current:
        yield ""
        best = found.recommended.configuration
        today = found.current.configuration
        yield console.table_of(reasons.knobs(found.attribution, today, best))
        yield from reasons.of_knobs(found.attribution)
    if found.measure_next is not None:
        yield ""
        yield from _measure_next(found.measure_next)
    if found.bounds:
        yield ""
        yield console.table_of(reasons.bounds(found.bounds, found.ranked_by))
        yield from reasons.of_bounds(found.bounds)
    if found.nearest_misses:
        yield ""
        yield from _misses(found.nearest_misses)
        yield from (f"  {line}" for line in reasons.relaxations(found.relaxations))
    yield ""
    yield from _reading(found)


def _asked(found: Recommendation) -> Iterator[str]:
    demand = quantity("demand_bytes_per_second", found.demand_bytes_per_second)
    mode = (
        "as fast as possible" if found.demand_bytes_per_second is None else f"useful work {demand}"
    )
    yield f"{mode}; energy of {SCOPE_POWER[found.scope][1]}; ranked by {target(found)}"
    bounds = [
        sentences.sla_bound(found.sla, name, limit) for name, limit in found.sla.bounds().items()
    ]
    yield f"SLA at {found.confidence:.0%} confidence: {'; '.join(bounds) or 'no bounds'}"
    counts = found.counts
    yield (
        f"{counts.total:,} candidates, {counts.feasible:,} meet the SLA, "
        f"{counts.on_front:,} on the Pareto front"
    )


def _table(found: Recommendation, rows: int) -> Any:
    listed = shown(found, rows)
    everything = [row for _, row in listed]
    fixed, varying = split_knobs([row.configuration for row in everything])
    power, scope = SCOPE_POWER[found.scope]
    columns = {power: f"power ({scope})", "joules_per_useful_gb": "energy per GB"}
    if found.objective.value == "edp":
        columns["edp_joule_seconds"] = "EDP"
    if found.objective in YEARLY:
        columns[YEARLY[found.objective]] = f"{target(found)} a year"
    columns |= {"capacity_bytes_per_second": "can carry", "latency_p99_ns": "p99 latency"}
    headings = ["", *(HEADINGS.get(name, name) for name in varying), *columns.values()]
    table = console.new_table([*headings, "evidence"])
    for mark, row in listed:
        cells = [
            mark,
            *(knob(row.configuration, name) for name in varying),
            *(_estimate(row, name) for name in columns),
            evidence(row, power),
        ]
        if console.width() < _BROAD:
            cells = [_BREAK.sub(r"\n\1", cell) for cell in cells]
        table.add_row(*cells)
    table.caption = (f"All rows: {fixed}. " if fixed else "") + (
        "In brackets: 90 % interval. Evidence: of performance / of power."
    )
    return table


def _estimate(row: Row, name: str) -> str:
    found: Estimate | None = getattr(row, name)
    return "-" if found is None else quantity(name, found.value, found.low, found.high)


def _verdict(found: Recommendation) -> Iterator[str]:
    if found.recommended is None:
        return
    if found.not_taken is not None:
        yield f"Not taken:   {setting(found.not_taken.row.configuration)}"
        if found.not_taken.saving is not None:
            yield from _labelled("", sentences.saving(found.not_taken.saving, found.factors))
    for one in found.preferred_missed:
        yield f"Preferred:   not kept by anything: {sentences.short(one)}"
    if found.current is None:
        yield "Today:       not stated, so no saving is stated"
    else:
        yield f"Today:       {setting(found.current.configuration)}; {sentences.place(found)}"
    if found.action == "change" and found.saving is None:
        yield "Saving:      unknown, the profile has no power for this scope"
    elif found.action == "change" and found.saving is not None:
        yield from _labelled("Saving:", sentences.saving(found.saving, found.factors))
    if found.endurance is not None:
        yield from _labelled("Wear:", sentences.wear(found.endurance, found.factors))
    yield from _labelled("Durability:", sentences.durability(found.durability))


def _measure_next(found: MeasureNext) -> Iterator[str]:
    asked, runs = reasons.measure_next(found)
    yield asked
    yield from (f"  {place}. {run}" for place, run in enumerate(runs, start=1))
    if runs:
        yield f"  {found.command}"


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:13}{line}"
        label = ""


def _misses(misses: Sequence[Miss]) -> Iterator[str]:
    yield "Nearest misses"
    for miss in misses:
        yield f"  {setting(miss.row.configuration)}"
        yield from (f"    {sentences.short(one)}" for one in miss.shortfalls)


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
    if found.current is not None:
        rows.append(("current", found.current))
    quantities = [name for name in Row.model_fields if name not in _PLAIN]
    header = ["role", *KNOBS, *_PLAIN[1:]]
    for name in quantities:
        header += [name, f"{name}_low", f"{name}_high", f"{name}_evidence"]
    console.emit_csv(header, (_flat(role, row, quantities) for role, row in rows))


_PLAIN = (
    "configuration",
    "concurrency",
    "busy_share",
    "host_bytes_written_per_second",
    "meets_sla",
)


def _flat(role: str, row: Row, quantities: Sequence[str]) -> list[Any]:
    cells: list[Any] = [role, *(getattr(row.configuration, name) for name in KNOBS)]
    cells += [row.concurrency, row.busy_share, row.host_bytes_written_per_second, row.meets_sla]
    for name in quantities:
        one: Estimate | None = getattr(row, name)
        cells += [None] * 4 if one is None else [one.value, one.low, one.high, one.evidence]
    return [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
