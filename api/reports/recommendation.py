"""The report of a recommendation: request, result, Pareto front, reasons, confidence, actions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from iojoule.api.application.recommend import RecommendationAnswer
from iojoule.api.reports import report_file, sentences
from iojoule.api.reports.chart import Axis, Chart, Limit, Point, Span, draw
from iojoule.api.reports.configurations import (
    HEADINGS,
    SCOPE_POWER,
    evidence,
    first_word,
    knob,
    same_setting,
    setting,
    shown,
    split_knobs,
    target,
)
from iojoule.api.reports.document import (
    Block,
    Code,
    Document,
    Picture,
    Points,
    Section,
    Table,
    Text,
)
from iojoule.api.reports.plots import Measure, limits, measures
from iojoule.api.reports.quantities import quantity
from iojoule.api.reports.report_file import Asked
from iojoule.api.reports.summary import Summary, summarise
from iojoule.recommender.factors import YEARLY
from iojoule.recommender.response import Estimate, Miss, Recommendation, Row
from iojoule.recommender.what_if.compare import weaker

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
        Chart(
            "front",
            f"{y.label} over {x.label}",
            caption,
            _axis(x),
            _axis(y),
            points,
            bounds,
            kinds=KINDS,
        )
    )


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
        "row",
        *(HEADINGS.get(name, name.replace("_", " ")) for name in varying),
        *columns.values(),
        "evidence",
    )
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
    return columns | {"capacity_bytes_per_second": "capacity", "latency_p99_ns": "p99 latency"}


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
        x,
        y,
        weaker(told[0][1].evidence, told[1][1].evidence),
        _kind(mark) or "front",
        f"{mark}: {setting(row.configuration)}: {values}",
        label,
    )


def _span(measure: Measure, value: Estimate) -> Span:
    scale = measure.scale
    return Span(value.value * scale, value.low * scale, value.high * scale)


def _axis(measure: Measure) -> Axis:
    return Axis(measure.label, lambda value: measure.tick(value), measure.log)


def _cell(row: Row, name: str) -> str:
    one: Estimate | None = getattr(row, name)
    return "-" if one is None else quantity(name, one.value, one.low, one.high)


KIND = "recommendation"


def report(found: RecommendationAnswer, asked: Asked) -> Document:
    """The report of an answer to a question."""
    return Document(
        "Recommendation",
        f"{found.workload}-on-{found.device}",
        f"{found.workload} on {found.model_name}",
        tuple(_lead(found, asked)),
        (
            answer(found),
            Section("The question", (question(found, asked),)),
            front_section(found),
            *_reasons(found),
            *_acting(found),
            *_settings(found),
            Section("Before acting on it", (Points(tuple(found.notes)), *_defaults(found))),
            Section("Evidence and versions", tuple(_evidence(found, asked))),
            report_file.again(asked),
        ),
        report_file.data_of_report(KIND, asked, found),
    )


HEADS = {
    "change": "Recommended",
    "no change": "No change",
    "none": "Nothing recommended",
}
"""What stands before the configuration, by action; a ranking says what it is ranked by."""


def _head(found: Recommendation) -> str:
    return HEADS.get(found.action) or first_word(found).capitalize()


def _lead(found: RecommendationAnswer, asked: Asked) -> Iterator[tuple[str, str]]:
    best = found.recommended
    told = sentences.why_nothing(found) if best is None else setting(best.configuration)
    yield _head(found), told
    if found.saving is not None:
        one = found.saving.percent
        yield "Saves of today's energy", quantity("percent", one.value, one.low, one.high)
        yield "How sure", found.saving.verdict
    yield "Energy of", SCOPE_POWER[found.scope][1]
    yield "SLA", _sla(found)
    yield "Asked", asked.moment


def _sla(found: Recommendation) -> str:
    limits = found.sla.bounds().items()
    told = [sentences.sla_bound(found.sla, name, limit) for name, limit in limits]
    return f"{'; '.join(told) or 'no bounds'}, at {found.confidence:.0%} confidence"


def answer(found: Recommendation, heading: str = "The answer") -> Section:
    """What to use, what it saves and how surely, what wears and what becomes of durability."""
    return Section(heading, (*_brief(summarise(found)), *_answer(found)))


def _brief(summary: Summary) -> Iterator[Block]:
    """The summary: what to change, whether it is safe, and what would change the answer."""
    parts = (summary.sentence, summary.safety, summary.would_change)
    yield Text(" ".join(part for part in parts if part))


def _answer(found: Recommendation) -> Iterator[Block]:
    today = "not stated"
    if found.current is not None:
        today = f"{setting(found.current.configuration)}; {sentences.place(found)}"
    if found.recommended is None:
        yield Text("The nearest misses:")
        yield Points(tuple(map(_missed, found.nearest_misses)))
        yield Points(tuple(sentences.relaxations(found.relaxations)))
        yield Table.of(("what", "is"), [("today", today)])
        return
    rows = [(_head(found).lower(), setting(found.recommended.configuration))]
    rows.append(("today", today))
    if found.not_taken is not None:
        rows.append(("not taken", setting(found.not_taken.row.configuration)))
    if found.current is None:
        rows.append(("saving", "none is stated: nothing was said about what runs today"))
    elif found.saving is None:
        rows.append(("saving", "unknown: the profile has no power for this scope"))
    else:
        *saved, sure = sentences.saving(found.saving, found.factors)
        rows += [("saving", "; ".join(saved)), ("how sure", sure)]
    if found.endurance is not None:
        rows.append(("wear", "; ".join(sentences.wear(found.endurance, found.factors))))
    rows.append(("durability", "; ".join(sentences.durability(found.durability))))
    rows += [("preferred, not kept", sentences.short(one)) for one in found.preferred_missed]
    marked = [(0, "recommended"), (1, "today")]
    yield Table.of(("what", "is"), rows, marked=marked)


def _missed(miss: Miss) -> str:
    short = "; ".join(map(sentences.short, miss.shortfalls))
    return f"{setting(miss.row.configuration)}: {short}"


def question(found: Recommendation, asked: Asked) -> Table:
    """What was asked, field by field."""
    demand = quantity("demand_bytes_per_second", found.demand_bytes_per_second)
    work = "as fast as possible" if found.demand_bytes_per_second is None else demand
    request = asked.request
    profile = request.get("workload_profile") or {}
    rows = [
        ("drive", f"{found.model_name} ({found.device})"),
        ("useful work", work),
        ("energy of", SCOPE_POWER[found.scope][1]),
        ("made small", target(found).replace("_", " ")),
        ("SLA", _sla(found)),
        ("free knobs", ", ".join(name.replace("_", " ") for name in found.free)),
    ]
    if isinstance(profile, str):
        rows.append(("preset", profile))
    else:
        rows += [
            row
            for part in ("workload", "current", "state", "factors")
            for row in report_file.flat({part: profile.get(part) or {}})
        ]
    rows += report_file.flat({"conditions": request.get("conditions") or {}})
    return Table.of(("field", "value"), rows)


def front_section(found: Recommendation) -> Section:
    """The front, drawn and as a table."""
    drawn = picture(found)
    counts = found.counts
    told = Text(
        f"{counts.total:,} candidates, {counts.feasible:,} meet the SLA, {counts.on_front:,} on "
        "the Pareto front."
    )
    drawing = (
        Text("No row has a number on both axes, so nothing is drawn.") if drawn is None else drawn
    )
    return Section("The Pareto front", (told, drawing, table(found)))


def _reasons(found: Recommendation) -> Iterator[Section]:
    if found.attribution is not None and found.recommended and found.current:
        today, best = found.current.configuration, found.recommended.configuration
        behind = tuple(sentences.of_knobs(found.attribution))
        yield Section(
            "Why this one",
            (sentences.knobs(found.attribution, today, best), *_points(behind)),
        )
    if found.bounds:
        yield Section(
            "What bounds cost",
            (
                sentences.bounds(found.bounds, found.ranked_by),
                *_points(tuple(sentences.of_bounds(found.bounds))),
            ),
        )
    if found.measure_next is not None:
        told, runs = sentences.measure_next(found.measure_next)
        command = [Code("Measures it", found.measure_next.command)] if runs else []
        yield Section("To be surer", (Text(f"{told}."), *_points(runs), *command))


def _points(items: tuple[str, ...]) -> tuple[Points, ...]:
    return (Points(items),) if items else ()


def _acting(found: Recommendation) -> Iterator[Section]:
    if found.recommended is None:
        return
    yield Section(
        "Put it into effect",
        (
            Text("This file is an answer to act on: the commands read it as it is."),
            Code(
                "Shows what would change; with `--run` it is set",
                "iojoule apply --recommendation REPORT.html --drive /dev/nvme0n1",
            ),
        ),
    )


def _settings(found: RecommendationAnswer) -> Iterator[Section]:
    if found.settings is not None:
        one = found.settings
        title = f"Settings of {one.title} {one.version}"
        yield Section(title, (Code(f"For {one.file}", one.text),))


def _defaults(found: Recommendation) -> tuple[Block, ...]:
    if not found.defaults_used:
        return ()
    rows = [(name, str(value)) for name, value in found.defaults_used.items()]
    return (Table.of(("left out", "taken as"), rows),)


def _evidence(found: RecommendationAnswer, asked: Asked) -> Iterator[Block]:
    yield Table.of(
        ("quantity", "evidence"),
        [(name, said) for name, said in found.evidence.items()],
        caption="What the quantities of the recommended row, else of today's, rest on.",
    )
    yield from versions(found.iojoule_version, found, asked)


def versions(iojoule: str, found: Recommendation, asked: Asked) -> Iterator[Block]:
    """What computed the answer, from which data."""
    yield Table.of(
        ("part", "version"),
        [
            ("iojoule", iojoule),
            (f"profile of {found.model_name}", found.profile_version),
            ("layout of the answer", str(found.answer_version)),
        ],
    )
    yield from report_file.sources(asked)
