"""Laws 17 to 19: the words of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from iojoule.datasets.errors import IojouleError
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.recommender.validation.laws.drawing import (
    Source,
    capacity,
    draw_current,
    draw_demand,
    draw_work,
    fixed,
    pick,
    polls,
    question,
    row_at,
    rows_of,
    told,
)
from iojoule.recommender.validation.laws.form import PREDICTED
from iojoule.recommender.validation.laws.registry import (
    Finding,
    NotApplicableError,
    law,
    obeys,
)
from iojoule.recommender.validation.laws.subject import POWER, Answer, Figure, Subject, figure
from iojoule.recommender.workloads.presets import presets

SURE = 0.9
"""Probability with which a change must save."""

MEASURED = ("measured", "interpolated")
"""Evidence that "proven" may rest on."""

PROBABLE = 0.02
"""What an approximation from the interval may be off by."""


@law(
    17,
    "Proven means measured",
    "`proven` only where both ends are measured or lie between measured neighbours. Where "
    "`current` is stated and meets the SLA, a change is recommended only if it saves with a "
    "probability of at least 0.9, else no change. Where it breaks the SLA, what is recommended is "
    "shown to hold. "
    "Without `current`: a ranking by expected power, and no saving.",
    "random questions with and without today's configuration, under bounds that it keeps and "
    "breaks, and the presets, which state none: verdict against evidence, probability of the "
    "saving, SLA of the recommended row, order of the ranking, absence of a saving",
)
def words_mean_something(subject: Subject, source: Source) -> Iterator[Finding]:
    """The same work with today's configuration, under a bound, and without."""
    work = draw_work(subject.profile, source)
    current = draw_current(subject.profile, source, work["useful_request_bytes"], spinning=True)
    demand = draw_demand(subject, source, work, [current], share=0.7, least=0.02)
    today = row_at(subject, work, current, demand)
    known = [scope for scope in POWER if figure(today, POWER[scope]) is not None]
    scope = pick(source, known or ["device"])
    sla: Answer = {}
    late = figure(today, "latency_mean_ns")
    if source.random() < 0.6 and late is not None and np.isfinite(late.high):
        sla = {"latency_mean_ns_max": late.high * float(source.uniform(0.5, 3.0))}
    asked = question(work, current, demand, scope=scope, sla=sla)
    if source.random() < 0.4:
        asked["concurrency_max"] = 256
    probe = told(
        work,
        current,
        demand,
        f"scope {scope}",
        *(f"{name} {bound:.4g}" for name, bound in sla.items()),
    )
    found = subject.recommend(asked)
    row, saving = found["recommended"], found["saving"]
    if row is not None:
        yield obeys(
            probe,
            "the recommended row is shown to hold",
            f"meets_sla {row['meets_sla']}",
            float(not row["meets_sla"]),
        )
    if row is not None and saving is not None:
        yield from _of_a_saving(probe, found, row, saving, scope)
    asked.pop("current")
    yield from _without_today(told(work, None, demand, f"scope {scope}"), subject, asked, scope)
    open_ = [one for one in presets() if not one.profile.current.model_dump(exclude_none=True)]
    preset = pick(source, presets()).profile
    try:
        answered = subject.recommend(preset.model_dump(exclude_unset=True))
    except IojouleError:
        return
    stated = preset.name not in [one.name for one in open_]
    claimed = answered["saving"] is not None
    yield obeys(
        f"preset {preset.name}",
        "a preset has no today: no saving",
        f"{'a saving' if claimed else 'none'}, current {'stated' if stated else 'left out'}",
        float(claimed),
    )


def _of_a_saving(
    probe: str, found: Answer, row: Answer, saving: Answer, scope: str
) -> Iterator[Finding]:
    """Verdict and probability of one saving."""
    today = found["current"]
    words = {
        one.evidence
        for each in (row, today)
        for name in (POWER[scope], "throughput_bytes_per_second")
        if (one := figure(each, name)) is not None
    }
    if saving["verdict"] == "proven":
        yield obeys(
            probe,
            "proven rests on measurements",
            ", ".join(sorted(words)),
            float(not words <= set(MEASURED)),
        )
    if not today["meets_sla"]:
        return
    if row["configuration"] == today["configuration"]:
        other = found.get("not_taken") or {}
        sure = (other.get("saving") or {}).get("probability")
        if sure is not None and scope != "device":  # there law 3 may speak against it
            worth = other["objective_saved_percent"] >= found["least_saving_percent"]
            yield obeys(
                probe,
                "no change only where no row saves surely",
                f"{sure:.2f} not taken",
                float(worth and sure >= SURE + PROBABLE),
            )
        return
    probability, what = _probability(saving)
    yield obeys(
        probe,
        f"a change saves with a probability of {SURE:g}",
        f"{probability:.2f} ({what})",
        SURE - PROBABLE * (what != "stated") - probability,
    )


def _probability(saving: Answer) -> tuple[float, str]:
    """That anything is saved: as stated, else as the interval says."""
    if saving.get("probability") is not None:
        return float(saving["probability"]), "stated"
    aim = figure(saving, "percent")
    assert aim is not None
    sd = (aim.high - aim.low) / (2 * NORMAL_90)
    if sd <= 0:
        return float(aim.value > 0), "without interval"
    return NormalDist().cdf(aim.value / sd), "from the interval"


def _with_cpu(row: Answer) -> float:
    """Energy of drive and CPU for a byte; 0 where the CPU's is unknown."""
    watts, rate = (
        figure(row, name) for name in ("device_cpu_power_watts", "throughput_bytes_per_second")
    )
    return 0.0 if watts is None or rate is None else watts.value / rate.value


def _without_today(probe: str, subject: Subject, asked: Answer, scope: str) -> Iterator[Finding]:
    found = subject.recommend(asked)
    yield obeys(
        f"{probe}, no current",
        "no saving",
        "none" if found["saving"] is None else "a saving",
        float(found["saving"] is not None),
    )
    ranked = [row for row in rows_of(found) if row["meets_sla"]]
    if scope == "device" and ranked:  # law 3: no watt of the drive for more watts of the CPU
        first = ranked[0]
        ranked = [
            row
            for row in ranked
            if (polls(first) or not polls(row)) and _with_cpu(row) <= _with_cpu(first)
        ]
    aim = "joules_per_useful_gb" if found["mode"] == "as_fast_as_possible" else POWER[scope]
    costs = [one.value for row in ranked if (one := figure(row, aim)) is not None]
    if costs:
        yield obeys(
            f"{probe}, no current",
            "the first row has the lowest expected power",
            f"{costs[0]:.4g}, the lowest is {min(costs):.4g}",
            costs[0] / min(costs) - 1.01,
        )


EQUAL, EQUAL_ENDS = 1e-6, 0.02
"""What two answers about one configuration may differ by: values, and ends of intervals (which
allow for spread that one door knows and another does not)."""

ROUNDING = 1e-9

CACHE_SHARE = 0.02


@law(
    18,
    "Every command tells the same story",
    "Recommend, predict, what-if, timeline, fleet, HTTP and the page give one configuration one "
    "set of numbers.",
    "one random configuration: recommend at full speed against predict, and at any speed against "
    "its row without a search; recommend at a demand against what-if (base, and growth from half "
    "of it) and against a fleet of one drive; first second of a time line against predict; the "
    "service's answers against the library's",
)
def same_story(subject: Subject, source: Source) -> Iterator[Finding]:
    """One configuration through every door."""
    work = draw_work(subject.profile, source)
    used = draw_current(subject.profile, source, work["useful_request_bytes"], spinning=True)
    flat = {name: cell for name, cell in work.items() if name != "useful_request_bytes"} | used
    # a state is stated to both: left out, each command takes that which follows from its question
    state = {} if work["operation"] == "read" else {"device_state": "steady"}
    row = subject.recommend(fixed(work, used, state=state))["current"]
    yield _same_row(told(work, used), row, row_at(subject, work, used, state=state))
    [predicted] = subject.predict([flat | state])
    probe = told(work, used)
    for name in PREDICTED:
        one, other = figure(row, name), predicted.get(name)
        if one is not None and other is not None:
            yield from _equal(f"{probe}, recommend and predict, {name}", one, other)
    demand = float(source.uniform(0.02, 0.8)) * capacity(subject, work, used)
    probe = told(work, used, demand)
    row = subject.recommend(fixed(work, used, demand))["current"]
    yield _same_row(probe, row, row_at(subject, work, used, demand))
    half = fixed(work, used, demand / 2)
    grown = subject.what_if(half, {"growth": 2.0})["changed"]["answer"]["current"]
    for name, stated in row.items():
        one, other = figure(row, name) if _estimated(stated) else None, None
        if one is not None:
            other = figure(grown, name)
        if one is not None and other is not None:
            yield from _equal(f"{probe}, recommend and what-if growth, {name}", one, other)
    yield from _fleet(probe, subject, work, used, row, demand)
    if work["operation"] == "write":
        yield from _timeline(subject, work, flat)
    yield from _served(probe, subject, question(work, used, demand), flat)


def _same_row(probe: str, row: Answer, alone: Answer) -> Finding:
    differ = [name for name in row.keys() | alone.keys() if not _same(row[name], alone[name])]
    return obeys(
        f"{probe}, recommend and its row without a search",
        "the same row",
        ", ".join(sorted(differ)) or "the same",
        float(len(differ)),
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two parts of answers are the same but for the order in which numbers were added."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return _relative(one, other) <= ROUNDING
    return bool(one == other)


def _estimated(stated: Any) -> bool:
    return isinstance(stated, dict) and {"value", "low", "high"} <= set(stated)


def _equal(probe: str, one: Figure, other: Figure) -> Iterator[Finding]:
    apart = _relative(one.value, other.value)
    yield obeys(probe, f"{one.value:.6g}", f"{other.value:.6g}", apart / EQUAL - 1.0)
    ends = max(_relative(one.low, other.low), _relative(one.high, other.high))
    yield obeys(f"{probe}, interval", one.text, other.text, ends / EQUAL_ENDS - 1.0)


def _relative(one: float, other: float) -> float:
    return 0.0 if one == other else abs(other - one) / max(abs(one), abs(other), 1e-12)


def _fleet(
    probe: str, subject: Subject, work: Answer, used: Answer, row: Answer, demand: float
) -> Iterator[Finding]:
    """A fleet of one drive that must serve the demand."""
    watts = figure(row, "device_power_watts")
    if watts is None or not row["meets_sla"]:
        return
    asked = question(
        work | {"arrival_process": "poisson"}, used, free={"power_state": [used["power_state"]]}
    )
    plan = subject.fleet(
        {
            "domains": [{"name": "rack"}],
            "drives": [
                {
                    "name": "one",
                    "device": subject.device,
                    "count": 1,
                    "domain": "rack",
                    "classes": ["work"],
                }
            ],
            "classes": [{"name": "work", "demand_bytes_per_second": demand, "workload": asked}],
            "scope": "device",
        }
    )
    serving = [one for one in plan["groups"][0]["assignments"] if one["load_bytes_per_second"] > 0]
    if len(serving) == 1:
        yield obeys(
            f"{probe}, recommend and fleet, device_power_watts",
            f"{watts.value:.4f} W",
            f"{serving[0]['watts']:.4f} W",
            _relative(watts.value, serving[0]["watts"]) / 1e-3 - 1,
        )


def _timeline(subject: Subject, work: Answer, flat: Answer) -> Iterator[Finding]:
    """The first second of writing on a drive that was purged."""
    if subject.profile.write_state is None or subject.profile.device_power is None:
        return
    state = {"host_bytes_written_since_purge": 0.0}
    [fresh] = subject.predict([flat | state])
    fields = {name: cell for name, cell in flat.items() if name != "operation"}
    story = subject.timeline(fields | state, [("write", 2.0, None)], 1.0)
    for name, seen in (
        ("throughput_bytes_per_second", story["bytes_per_second"][0]),
        ("device_power_watts", story["watts"][0]),
    ):
        if name in fresh:
            yield obeys(
                told(work, flat, None, f"predict and time line, {name}"),
                f"{fresh[name].value:.5g}",
                f"{float(seen):.5g}",
                _relative(fresh[name].value, float(seen)) / CACHE_SHARE - 1.0,
            )


def _served(probe: str, subject: Subject, asked: Answer, flat: Answer) -> Iterator[Finding]:
    """Another door to the same answers, where there is one."""
    answer = subject.served.recommend(subject.profile, asked)
    if answer is not None:
        own = subject.recommend(asked)
        for part in ("recommended", "current", "saving"):
            one, other = own.get(part) or {}, answer.get(part) or {}
            for name, stated in one.items():
                if _estimated(stated):
                    first, second = figure(one, name), figure(other, name)
                    assert first is not None
                    if second is None:
                        yield obeys(f"{probe}, HTTP, {part}.{name}", first.text, "nothing", 1.0)
                    else:
                        yield from _equal(f"{probe}, HTTP, {part}.{name}", first, second)
    rows = subject.served.predict(subject.profile, [flat])
    if rows is not None:
        [own_row] = subject.predict([flat])
        for name in PREDICTED:
            if name in own_row and rows[0].get(name) is not None:
                one_, other_ = own_row[name].value, float(rows[0][name])
                yield obeys(
                    f"{probe}, predict over HTTP, {name}",
                    f"{one_:.6g}",
                    f"{other_:.6g}",
                    _relative(one_, other_) / EQUAL - 1.0,
                )


@law(
    19,
    "A number is labelled by what it rests on",
    "An assumption is never `published`.",
    "every number of the profile, and of the shipped recipes: evidence `published` beside a source "
    "that says assumption; any evidence but `datasheet` beside a source that begins with it",
)
def labelled_by_what_it_rests_on(subject: Subject, source: Source) -> Iterator[Finding]:
    """Every number of the profile; the draw changes nothing but is cheap."""
    if subject.memo.get("labels") is not None and source is not None:
        raise NotApplicableError("labels do not change from draw to draw")
    subject.memo["labels"] = True
    for where, document in subject.documents().items():
        numbers = list(_numbers(document, where))
        wrong = [place for place, evidence, text in numbers if _mislabelled(evidence, text)]
        for place in wrong:
            yield obeys(place, "evidence other than published", "published", 1.0)
        yield obeys(
            f"{where}: {len(numbers)} labelled numbers",
            "none mislabelled",
            f"{len(wrong)} mislabelled",
            float(len(wrong)),
        )


def _mislabelled(evidence: str, text: str) -> bool:
    text = text.strip().lower()
    if "assum" in text and evidence == "published":
        return True
    return text.startswith("assum") and evidence in ("measured", "interpolated")


def _numbers(node: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """Place, evidence and source of every part of a document that has both."""
    if isinstance(node, dict):
        evidence, text = node.get("evidence"), node.get("source")
        if isinstance(evidence, str) and isinstance(text, str):
            yield f"{where}{_name(node)}: {text[:80]}", evidence, text
        for name, part in node.items():
            yield from _numbers(part, f"{where}.{name}")
    elif isinstance(node, list):
        for place, part in enumerate(node):
            yield from _numbers(part, f"{where}[{place}]")


def _name(node: Answer) -> str:
    return f" ({node['name']})" if isinstance(node.get("name"), str) else ""
