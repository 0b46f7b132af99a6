"""The report of a what-if: both answers, what differs between them, and how surely."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.api.application.what_if_response import WhatIfAnswer
from iojoule.api.documents.chart import Axis, Chart, Point, Span, draw
from iojoule.api.documents.content import Block, Document, Picture, Points, Section, Table, Text
from iojoule.api.reports import asked as questions
from iojoule.api.reports.asked import Asked
from iojoule.api.reports.recommendation import answer, question, versions
from iojoule.api.words import what_ifs as words
from iojoule.api.words.configurations import SCOPE_POWER
from iojoule.api.words.quantities import quantity
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.what_if.outcome import Outcome, Side
from iojoule.recommender.what_if.shared_error import weaker

KIND = "what-if"


def report(found: WhatIfAnswer, asked: Asked) -> Document:
    """The report of what the changes change."""
    base = found.base.answer
    return Document(
        "What if",
        f"{base.workload}-on-{base.device}-what-if",
        words.question(found),
        (
            ("As it is", words.recommended(found.base)),
            ("Changed", words.recommended(found.changed)),
            ("Asked", asked.moment),
        ),
        (
            Section("What changes", tuple(_changes(found))),
            answer(base, "As things are"),
            answer(found.changed.answer, "As they would be"),
            Section("The question", (_changed(found), question(base, asked))),
            Section("Before acting on it", (Points(tuple(found.notes)),)),
            Section("Evidence and versions", tuple(versions(found.iojoule_version, base, asked))),
            questions.again(asked),
        ),
        questions.data_of_report(KIND, asked, found),
    )


def _changes(found: Outcome) -> Iterator[Block]:
    yield Points(tuple(words.knobs(found)) or ("One of the two recommends nothing.",))
    if found.differences:
        yield words.differences(found)
        drawn = _picture(found)
        if drawn is not None:
            yield drawn
    if missed := tuple(words.misses(found.changed)):
        yield Points(missed)
    sides = (("as it is", found.base), ("changed", found.changed))
    rows = [(name, words.saving(side)) for name, side in sides]
    yield Table.of(("side", "saving against today's configuration"), rows)
    if found.changed.cap is not None:
        told, *more = words.cap(found.changed.cap)
        yield Text(told)
        yield Points(tuple(more))


def _picture(found: Outcome) -> Picture | None:
    """Both sides, power of all drives over latency."""
    tail = "latency_p99_ns" if _told(found.base, "latency_p99_ns") else "latency_mean_ns"
    points = []
    for name, side, kind in (
        ("as it is", found.base, "today"),
        ("changed", found.changed, "recommended"),
    ):
        x, y = _told(side, tail), _told(side, "power_watts")
        if x is None or y is None:
            return None
        told = "; ".join(
            quantity(field, one.value, one.low, one.high)
            for field, one in ((tail, x), ("power_watts", y))
        )
        points.append(
            Point(_span(x), _span(y), weaker(x.evidence, y.evidence), kind, f"{name}: {told}", name)
        )
    scope = SCOPE_POWER[found.base.answer.scope][1]
    across = Axis(words.NAMES[tail], lambda value: quantity(tail, value), log=True)
    upwards = Axis(f"mean power of {scope} (W)", lambda value: f"{value:,g}")
    caption = (
        "What is recommended on either side, all drives together. Arms are 90 % intervals; what "
        "both sides err alike is in the arms, but not in the table's change."
    )
    return draw(Chart("sides", "Power over latency", caption, across, upwards, points))


def _told(side: Side, name: str) -> Estimate | None:
    return None if side.totals is None else getattr(side.totals, name)


def _span(one: Estimate) -> Span:
    return Span(one.value, one.low, one.high)


def _changed(found: Outcome) -> Table:
    rows = [(name, str(value)) for name, value in found.changes.items()]
    return Table.of(("changed", "to"), rows)
