"""The report of a recommendation: the question, the answer, why, how sure, and how to act on it."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.api.application.recommend import RecommendationAnswer
from iojoule.api.documents.content import (
    Block,
    Code,
    Document,
    Points,
    Section,
    Table,
    Text,
)
from iojoule.api.reports import asked as questions
from iojoule.api.reports import front
from iojoule.api.reports.asked import Asked
from iojoule.api.words import reasons, sentences
from iojoule.api.words.configurations import SCOPE_POWER, setting
from iojoule.api.words.quantities import quantity
from iojoule.api.words.rows import target
from iojoule.recommender.answer import Miss, Recommendation

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
            Section("Before acting on it", (Points(tuple(found.notes)), *_defaults(found))),
            Section("Evidence and versions", tuple(_evidence(found, asked))),
            questions.again(asked),
        ),
        questions.data_of_report(KIND, asked, found),
    )


HEADS = {
    "change": "Recommended",
    "no change": "No change",
    "ranking": "Lowest expected",
    "none": "Nothing recommended",
}
"""What stands before the configuration, by action."""


def _lead(found: RecommendationAnswer, asked: Asked) -> Iterator[tuple[str, str]]:
    best = found.recommended
    told = sentences.why_nothing(found) if best is None else setting(best.configuration)
    yield HEADS[found.action], told
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
    return Section(heading, tuple(_answer(found)))


def _answer(found: Recommendation) -> Iterator[Block]:
    today = "not stated"
    if found.current is not None:
        today = f"{setting(found.current.configuration)}; {sentences.place(found)}"
    if found.recommended is None:
        yield Text(f"{sentences.why_nothing(found)} The nearest misses:")
        yield Points(tuple(map(_missed, found.nearest_misses)))
        yield Points(tuple(reasons.relaxations(found.relaxations)))
        yield Table.of(("what", "is"), [("today", today)])
        return
    rows = [(HEADS[found.action].lower(), setting(found.recommended.configuration))]
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
            for row in questions.flat({part: profile.get(part) or {}})
        ]
    rows += questions.flat({"conditions": request.get("conditions") or {}})
    return Table.of(("field", "value"), rows)


def front_section(found: Recommendation) -> Section:
    """The front, drawn and as a table."""
    drawn = front.picture(found)
    counts = found.counts
    told = Text(
        f"{counts.total:,} candidates, {counts.feasible:,} meet the SLA, {counts.on_front:,} on "
        "the Pareto front."
    )
    drawing = (
        Text("No row has a number on both axes, so nothing is drawn.") if drawn is None else drawn
    )
    return Section("The Pareto front", (told, drawing, front.table(found)))


def _reasons(found: Recommendation) -> Iterator[Section]:
    if found.attribution is not None and found.recommended and found.current:
        today, best = found.current.configuration, found.recommended.configuration
        behind = tuple(reasons.of_knobs(found.attribution))
        yield Section(
            "Why this one",
            (reasons.knobs(found.attribution, today, best), *_points(behind)),
        )
    if found.bounds:
        yield Section(
            "What bounds cost",
            (
                reasons.bounds(found.bounds, found.ranked_by),
                *_points(tuple(reasons.of_bounds(found.bounds))),
            ),
        )
    if found.measure_next is not None:
        told, runs = reasons.measure_next(found.measure_next)
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
    yield from questions.sources(asked)
