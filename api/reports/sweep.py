"""The report of a sweep: its points drawn and listed, and from which value on the answer turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iojoule.api.application.what_if import SweepAnswer
from iojoule.api.documents.chart import Axis, Chart, Limit, Point, Span, draw
from iojoule.api.documents.content import Block, Document, Picture, Points, Section, Table, Text
from iojoule.api.reports import asked as questions
from iojoule.api.reports.asked import Asked
from iojoule.api.words import what_ifs as words
from iojoule.api.words.quantities import quantity
from iojoule.datasets.vocabulary import Evidence

KIND = "sweep"


def report(found: SweepAnswer, shown: str, asked: Asked) -> Document:
    """The report of a sweep.

    Args:
        found: The sweep.
        shown: The quantity that is drawn and listed, a field of `Totals`.
        asked: How it was asked for.
    """
    name = words.NAMES[shown]
    of = asked.request.get("workload_profile", {}).get("name", "")
    title = f"{of} on {asked.request.get('device', '')}: {name} over {' and '.join(found.axes)}"
    counted = f"{found.points} points, {found.feasible} meet the SLA, {found.failed} have no answer"
    return Document(
        "Sweep",
        f"sweep-over-{'-'.join(found.axes)}",
        title,
        (
            ("Points", counted),
            ("Asked", asked.moment),
        ),
        (
            Section("What changes", tuple(_shown(found, shown))),
            Section("All points", (words.sweep(found, shown, len(found.records)),)),
            Section("Evidence and versions", (_versions(found), *questions.sources(asked))),
            questions.again(asked),
        ),
        questions.data_of_report(KIND, asked, found),
    )


def _shown(found: SweepAnswer, shown: str) -> Iterator[Block]:
    if len(found.axes) == 1 and all(_number(one) for one in _values(found, found.axes[0])):
        drawn = _line(found, shown)
        yield Text("Nobody knows this quantity here.") if drawn is None else drawn
    elif len(found.axes) == 2:
        yield _grid(found, shown)
    turns = tuple(words.turns(found.thresholds))
    if turns:
        yield Text("Where the answer changes:")
        yield Points(turns)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(found: SweepAnswer, field: str) -> list[Any]:
    values = list(dict.fromkeys(each.get(f"change.{field}") for each in found.records))
    return sorted(values) if all(map(_number, values)) else values


def _line(found: SweepAnswer, shown: str) -> Picture | None:
    """One quantity along one axis, with its intervals as a band."""
    field = found.axes[0]
    known = [each for each in found.records if each[shown] is not None]
    if not known:
        return None
    line = [
        _point(each, field, shown) for each in sorted(known, key=lambda one: one[f"change.{field}"])
    ]
    turns = [Limit(one.above, "the answer changes", upright=True) for one in found.thresholds[:1]]
    turns += [Limit(one.above, "", upright=True) for one in found.thresholds[1:]]
    caption = (
        "The shape of a marker says what its value rests on; the band holds the 90 % intervals. "
        "Where nothing meets the SLA there is no marker."
    )
    return draw(
        Chart(
            "sweep", f"{words.NAMES[shown]} over {field}", caption,
            Axis(field, lambda value: f"{value:,.6g}"),
            Axis(words.NAMES[shown], lambda value: quantity(shown, value)),
            limits=turns, lines=[line],
        )
    )  # fmt: skip


def _point(each: dict[str, Any], field: str, shown: str) -> Point:
    at = float(each[f"change.{field}"])
    middle, low, high = (float(each[f"{shown}{end}"]) for end in ("", "_low", "_high"))
    says = f"{field} {at:g}: {quantity(shown, middle, low, high)}"
    evidence = Evidence(each[f"{shown}_evidence"])
    return Point(Span(at, at, at), Span(middle, low, high), evidence, "recommended", says)


def _grid(found: SweepAnswer, shown: str) -> Table:
    """Two axes as a table of their own."""
    across, down = found.axes
    columns: Sequence[Any] = _values(found, across)
    cells = {
        (each.get(f"change.{down}"), each.get(f"change.{across}")): quantity(
            shown, *(each[f"{shown}{end}"] for end in ("", "_low", "_high"))
        )
        for each in found.records
    }
    rows = [
        (str(row), *(cells.get((row, column), "") for column in columns))
        for row in _values(found, down)
    ]
    headings = (f"{down} below, {across} across", *map(str, columns))
    caption = f"{words.NAMES[shown]}; in brackets: 90 % interval; -: nothing meets the SLA."
    return Table.of(headings, rows, caption=caption)


def _versions(found: SweepAnswer) -> Table:
    rows = [("iojoule", found.iojoule_version), ("points, with every quantity", found.file)]
    return Table.of(("part", "version"), rows)
