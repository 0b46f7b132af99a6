"""A recommendation on a terminal: the verdict, a table that fits, and on request the reasons."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from iojoule.api.cli import console
from iojoule.api.reports import sentences
from iojoule.api.reports.configurations import (
    HEADINGS,
    SCOPE_POWER,
    evidence,
    knob,
    setting,
    setting_in_short,
    shown,
    split_knobs,
    target,
)
from iojoule.api.reports.quantities import quantity
from iojoule.datasets.schema import Configuration
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.response import Estimate, MeasureNext, Miss, Recommendation, Row

if TYPE_CHECKING:
    from rich.table import Table

    from iojoule.api.application.recommend import RecommendationAnswer
    from iojoule.api.reports.summary import Summary

BRIEF_LINES = 15
"""Lines below the verdict, at most."""

BRIEF_ROWS = 5
"""Rows of the Pareto table that are shown unless told otherwise; with every column ALL_ROWS."""

ALL_ROWS = 10


def verdict(summary: Summary, columns: int) -> Iterator[str]:
    """What to change, what it saves, whether it is safe, and what to type next."""
    parts = (summary.sentence, summary.safety, summary.would_change)
    yield from textwrap.wrap(" ".join(part for part in parts if part), columns)
    yield f"Next, {summary.next.sentence}:"
    yield from console.command_lines(summary.next.command, columns)


def brief(found: Recommendation, rows: int | None, columns: int) -> Iterator[Any]:
    """The table that fits, and what it is about, in at most BRIEF_LINES lines."""
    about = list(_about(found, columns))
    if found.recommended is None:
        yield from ["", "Nearest misses"]
        left = BRIEF_LINES - len(about) - 2
        for miss in found.nearest_misses:
            lines = list(_miss(miss, columns))
            left -= len(lines)
            if left >= 0:
                yield from lines
        yield from about
        return
    listed = shown(found, rows or BRIEF_ROWS)
    fixed, varying = split_knobs([row.configuration for _, row in listed])
    all_rows = textwrap.wrap(f"All rows: {fixed}.", columns) if fixed else []
    if rows is None:  # blank line, headings, rule
        spare = BRIEF_LINES - 3 - len(about) - len(all_rows)
        listed = shown(found, max(1, min(BRIEF_ROWS, spare - (len(listed) > BRIEF_ROWS))))
    listed = [(mark.removesuffix(" expected"), row) for mark, row in listed]
    if rows is None and _folds(found, listed, varying, columns):
        listed = [listed[0], *(one for one in listed[1:] if not one[0].isdigit())][:4]
    yield ""
    yield _fitting(found, listed, varying, columns)
    yield from all_rows
    yield from about


def _folds(
    found: Recommendation, listed: Sequence[tuple[str, Row]], varying: Sequence[str], columns: int
) -> bool:
    """Whether settings do not fit into one line."""
    return console.natural_width(_fitting(found, listed, varying, columns)) > columns


def _about(found: Recommendation, columns: int) -> Iterator[str]:
    """Workload, SLA and counts, and where the rest stands."""
    bounds = [
        sentences.sla_bound(found.sla, name, limit) for name, limit in found.sla.bounds().items()
    ]
    work = "as fast as possible"
    if found.demand_bytes_per_second is not None:
        work = quantity("demand_bytes_per_second", found.demand_bytes_per_second)
    counts = found.counts
    text = (
        f"{found.workload} on {found.model_name}, {work}; energy of "
        f"{SCOPE_POWER[found.scope][1]}, ranked by {target(found)}; SLA at {found.confidence:.0%}: "
        f"{'; '.join(bounds) or 'no bounds'}. {counts.feasible:,} of {counts.total:,} candidates "
        f"meet it, {counts.on_front:,} on the Pareto front. [90 % interval]. --explain adds the "
        "reasons, --wide all columns."
    )
    yield from textwrap.wrap(text, columns)


def _miss(miss: Miss, columns: int) -> Iterator[str]:
    short = "; ".join(map(sentences.short, miss.shortfalls))
    text = f"{setting(miss.row.configuration)}: {short}"
    yield from textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="    ")


def _fitting(
    found: Recommendation, listed: Sequence[tuple[str, Row]], varying: Sequence[str], columns: int
) -> Table:
    """The table with the most that fits into the columns."""
    power, scope = SCOPE_POWER[found.scope]
    ranked_by = YEARLY.get(found.objective, power)
    names = {ranked_by: f"power ({scope})" if ranked_by == power else f"{target(found)} a year"}
    if found.ranked_by == "joules_per_useful_gb":
        names = {"joules_per_useful_gb": f"energy ({scope})"}
    elif found.ranked_by == "edp":
        names = {"edp_joule_seconds": f"EDP ({scope})"}
    names |= {"latency_p99_ns": "p99 latency", "capacity_bytes_per_second": "capacity"}
    columns_of = list(names.items())
    for knobs in (varying, None):
        for count, intervals, basis in DETAIL:
            table = _table_of(
                listed, knobs, columns_of[:count], intervals, power if basis else None
            )
            if console.natural_width(table) <= columns:
                return table
    # the settings stand in more than one line
    table.columns[1].max_width = columns - (console.natural_width(table) - _widest(table))
    return table


DETAIL = ((3, 2, True), (2, 2, True), (2, 1, True), (2, 1, False), (2, 0, False), (1, 0, False))
"""Quantities, how many of them with intervals, and whether with evidence; most first."""


def _widest(table: Table) -> int:
    """Columns of the widest setting."""
    return max(map(len, map(str, table.columns[1].cells)))


def _table_of(
    listed: Sequence[tuple[str, Row]],
    knobs: Sequence[str] | None,
    quantities: Sequence[tuple[str, str]],
    intervals: int,
    power: str | None,
) -> Table:
    """A table of rows.

    Args:
        listed: Marks and rows.
        knobs: Knobs with a column each; None: one column holds all.
        quantities: Fields and their headings; the first `intervals` with intervals.
        intervals: How many of them.
        power: Field whose evidence is shown beside that of performance; None: no evidence.
    """
    of_knobs = (
        ["request, depth, jobs"] if knobs is None else [HEADINGS.get(name, name) for name in knobs]
    )
    of_basis = [] if power is None else ["evidence"]
    table = console.new_table(["", *of_knobs, *(heading for _, heading in quantities), *of_basis])
    for mark, row in listed:
        configuration = row.configuration
        cells = [mark]
        if knobs is None:
            cells.append(_compact(configuration))
        else:
            cells += [knob(configuration, name) for name in knobs]
        for place, (name, _) in enumerate(quantities):
            estimate = _estimate(row, name)
            cells.append(estimate if place < intervals else estimate.partition(" [")[0])
        table.add_row(*cells, *([] if power is None else [evidence(row, power)]))
    return table


_BROAD = 180
"""On a narrower terminal intervals and second words stand below."""

LABELLED = ("Not taken:", "Preferred:", "Today:", "Saving:", "Wear:", "Durability:", " " * 13)
"""How lines begin that have a label of 13 characters."""

_BREAK = re.compile(r" (\[|recommended|misses|/ )")


def explained(found: RecommendationAnswer, rows: int, columns: int) -> Iterator[Any]:
    """The whole answer below its verdict: lines and tables."""
    for part in _explained(found, rows, columns):
        if not isinstance(part, str):
            caption = str(part.caption or "")
            part.caption = "\n".join(textwrap.wrap(caption, columns)) or None
            yield part
            continue
        if len(part) <= columns:
            yield part
            continue
        indent = " " * (13 if part.startswith(LABELLED) else len(part) - len(part.lstrip()) + 2)
        yield from textwrap.wrap(
            part, columns, subsequent_indent=indent, break_long_words=False, drop_whitespace=True
        )


def _explained(found: RecommendationAnswer, rows: int, columns: int) -> Iterator[Any]:
    yield f"{found.workload} on {found.model_name} (profile version {found.profile_version})"
    yield from _asked(found)
    if shown(found, rows):
        yield ""
        yield table(found, rows, columns)
    yield ""
    yield from _against_today(found)
    if found.attribution is not None and found.recommended and found.current:
        yield ""
        best = found.recommended.configuration
        today = found.current.configuration
        yield console.table_of(sentences.knobs(found.attribution, today, best))
        yield from sentences.of_knobs(found.attribution)
    if found.measure_next is not None:
        yield ""
        yield from _measure_next(found.measure_next)
    if found.bounds:
        yield ""
        yield console.table_of(sentences.bounds(found.bounds, found.ranked_by))
        yield from sentences.of_bounds(found.bounds)
    if found.nearest_misses:
        yield ""
        yield from _misses(found.nearest_misses)
        yield from (f"  {line}" for line in sentences.relaxations(found.relaxations))
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


def table(found: Recommendation, rows: int, columns: int) -> Table:
    """The Pareto table with all columns; second words stand below where columns are few."""
    listed = shown(found, rows)
    everything = [row for _, row in listed]
    fixed, varying = split_knobs([row.configuration for row in everything])
    power, scope = SCOPE_POWER[found.scope]
    quantities = {power: f"power ({scope})", "joules_per_useful_gb": "energy per GB"}
    if found.objective.value == "edp":
        quantities["edp_joule_seconds"] = "EDP"
    if found.objective in YEARLY:
        quantities[YEARLY[found.objective]] = f"{target(found)} a year"
    quantities |= {"capacity_bytes_per_second": "capacity", "latency_p99_ns": "p99 latency"}
    headings = ["", *(HEADINGS.get(name, name) for name in varying), *quantities.values()]
    full = console.new_table([*headings, "evidence"])
    for mark, row in listed:
        cells = [
            mark,
            *(knob(row.configuration, name) for name in varying),
            *(_estimate(row, name) for name in quantities),
            evidence(row, power),
        ]
        if columns < _BROAD:
            cells = [_BREAK.sub(r"\n\1", cell) for cell in cells]
        full.add_row(*cells)
    full.caption = (f"All rows: {fixed}. " if fixed else "") + (
        "In brackets: 90 % interval. Evidence: of performance / of power."
    )
    return full


def _compact(configuration: Configuration) -> str:
    """A configuration in one cell."""
    route = setting_in_short(configuration).splitlines()[1]
    request = knob(configuration, "request_bytes")
    return f"{request}, {configuration.queue_depth}, {configuration.jobs}, {route}"


def _estimate(row: Row, name: str) -> str:
    found: Estimate | None = getattr(row, name)
    return "-" if found is None else quantity(name, found.value, found.low, found.high)


def _against_today(found: Recommendation) -> Iterator[str]:
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
    asked, runs = sentences.measure_next(found)
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
