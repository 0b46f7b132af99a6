"""The Pareto front in a report: drawn, and as a table."""

from __future__ import annotations

import math

from iojoule.api.documents.chart import Axis, Chart, Limit, Point, Span, draw
from iojoule.api.documents.content import Picture, Table
from iojoule.api.plots.front import Measure, limits, measures
from iojoule.api.words.configurations import SCOPE_POWER, knob, same_setting, setting
from iojoule.api.words.quantities import quantity
from iojoule.api.words.rows import HEADINGS, evidence, shown, split_knobs
from iojoule.recommender.answer import Recommendation, Row
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.what_if.shared_error import weaker

MOST_ROWS = 50
"""More than any answer holds."""

KINDS = {
    "recommended": "recommended",
    "today": "today",
    "front": "Pareto front",
    "miss": "misses the SLA",
}


def picture(found: Recommendation) -> Picture | None:
    """The front with intervals and evidence; None where no row has a number on both axes."""
    x, y = measures(found)
    points = [
        point
        for mark, row in _rows(found)
        if (point := _point(found, mark, row, (x, y))) is not None
    ]
    if not points:
        return None
    bounds = [
        Limit(limit * one.scale, f"SLA {quantity(one.field, limit)}", upright=one is x)
        for one in (x, y)
        for limit in limits(found, one)
    ]
    caption = (
        "Each marker is a configuration that meets the SLA and that no other beats in objective, "
        "capacity and tail latency; numbers are those of the table. Its shape says what the weaker "
        "of its two values rests on, its arms are 90 % intervals, the dashed line is the SLA."
    )
    if not found.pareto:
        caption = (
            "Nothing meets the SLA: today's configuration and the nearest misses. The shape of a "
            "marker says what the weaker of its two values rests on, its arms are 90 % intervals, "
            "the dashed line is the SLA."
        )
    return draw(
        Chart("front", f"{y.label} over {x.label}", caption, _axis(x), _axis(y), points, bounds,
              kinds=KINDS)
    )  # fmt: skip


def table(found: Recommendation) -> Table:
    """The same rows with every quantity that counts."""
    listed = _rows(found)
    fixed, varying = split_knobs([row.configuration for _, row in listed])
    columns = _columns(found)
    rows = [
        (
            mark,
            *(knob(row.configuration, name) for name in varying),
            *(_cell(row, name) for name in columns),
            evidence(row, SCOPE_POWER[found.scope][0]),
        )
        for mark, row in listed
    ]
    marked = [(place, kind) for place, (mark, _) in enumerate(listed) if (kind := _kind(mark))]
    headings = (
        "row", *(HEADINGS.get(name, name.replace("_", " ")) for name in varying),
        *columns.values(), "evidence",
    )  # fmt: skip
    caption = f"All rows: {fixed}. " if fixed else ""
    caption += "In brackets: 90 % interval. Evidence: of performance / of power."
    return Table.of(headings, rows, caption=caption, marked=marked)


def _columns(found: Recommendation) -> dict[str, str]:
    power, scope = SCOPE_POWER[found.scope]
    columns = {power: f"power ({scope})", "joules_per_useful_gb": "energy per GB"}
    if found.objective.value == "edp":
        columns["edp_joule_seconds"] = "EDP"
    if found.objective in YEARLY:
        columns[YEARLY[found.objective]] = "a year"
    return columns | {"capacity_bytes_per_second": "can carry", "latency_p99_ns": "p99 latency"}


def _rows(found: Recommendation) -> list[tuple[str, Row]]:
    misses = [(f"miss {place}", miss.row) for place, miss in enumerate(found.nearest_misses, 1)]
    return [*shown(found, MOST_ROWS), *misses]


def _kind(mark: str) -> str:
    return next((kind for kind in ("recommended", "today", "miss") if kind in mark), "")


def _point(
    found: Recommendation, mark: str, row: Row, axes: tuple[Measure, Measure]
) -> Point | None:
    told: list[tuple[Measure, Estimate]] = [
        (one, value)
        for one in axes
        if (value := getattr(row, one.field)) is not None and math.isfinite(value.value)
    ]
    if len(told) < len(axes):
        return None
    x, y = (_span(one, value) for one, value in told)
    values = "; ".join(_cell(row, one.field) for one, _ in told)
    label = mark.split(" ")[-1] if _kind(mark) in ("recommended", "today") else mark
    if mark.startswith("today"):
        label = "today"
    elif found.recommended is not None and same_setting(row, found.recommended):
        label = "recommended"
    return Point(
        x, y, weaker(told[0][1].evidence, told[1][1].evidence), _kind(mark) or "front",
        f"{mark}: {setting(row.configuration)}: {values}", label,
    )  # fmt: skip


def _span(measure: Measure, value: Estimate) -> Span:
    scale = measure.scale
    return Span(value.value * scale, value.low * scale, value.high * scale)


def _axis(measure: Measure) -> Axis:
    return Axis(measure.label, lambda value: measure.tick(value), measure.log)


def _cell(row: Row, name: str) -> str:
    one: Estimate | None = getattr(row, name)
    return "-" if one is None else quantity(name, one.value, one.low, one.high)
