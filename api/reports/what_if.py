"""Tables, sentences and reports of what-ifs and sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iojoule.api.reports import report_file
from iojoule.api.reports.chart import Axis, Chart, Limit, Point, Span, draw
from iojoule.api.reports.configurations import SCOPE_POWER, knob, setting
from iojoule.api.reports.document import Block, Document, Picture, Points, Section, Table, Text
from iojoule.api.reports.quantities import digits, quantity
from iojoule.api.reports.recommendation import answer, question, versions
from iojoule.api.reports.report_file import Asked
from iojoule.api.reports.sentences import short
from iojoule.api.reports.summary import summarise
from iojoule.datasets.vocabulary import Evidence
from iojoule.recommender.request import Scope
from iojoule.recommender.response import Estimate
from iojoule.recommender.what_if.compare import weaker
from iojoule.recommender.what_if.outcome import CapWhile, Outcome, Side
from iojoule.recommender.what_if.sweep import NOTHING_MEETS, Threshold

if TYPE_CHECKING:
    from iojoule.api.application.what_if import SweepAnswer
    from iojoule.api.application.what_if_response import WhatIfAnswer

NAMES = {
    "throughput_bytes_per_second": "throughput",
    "capacity_bytes_per_second": "capacity",
    "latency_mean_ns": "mean latency",
    "latency_p99_ns": "p99 latency",
    "device_power_watts": "power (drives)",
    "power_watts": "power",
    "joules_per_useful_gb": "energy per GB",
    "kwh_per_year": "energy a year",
    "cost_per_year": "cost a year",
    "co2_kilograms_per_year": "CO2 a year (kg)",
}


def title(found: Outcome) -> str:
    """What was asked."""
    said = ", ".join(f"{name} = {value}" for name, value in found.changes.items())
    return f"{found.base.answer.workload} on {found.base.answer.model_name}: what if {said}?"


_WHO = {
    Scope.DEVICE: "the drives",
    Scope.DEVICE_CPU: "drives and CPU",
    Scope.SYSTEM: "the whole system",
}


def verdict(found: Outcome) -> str:
    """What the changes bring, in a sentence or three."""
    asked = f"With {', '.join(f'{name} = {value}' for name, value in found.changes.items())}"
    base, changed = found.base, found.changed
    if not changed.feasible:
        nothing = summarise(changed.answer)
        told = [asked, nothing.sentence[0].lower() + nothing.sentence[1:]]
        if not base.feasible:
            told.append("That is so already as things are.")
        return " ".join([*told, nothing.would_change or ""]).strip()
    if changed.cap is not None:
        told = [f"{asked} {changed.cap.reason}."]
    else:
        holds = "Demand and SLA hold" + ("." if base.feasible else ", which they do not today.")
        told = [f"{asked} {_power_moved(found)}.", holds]
    return " ".join([*told, *knobs(found)])


def _power_moved(found: Outcome) -> str:
    moved = {each.quantity: each for each in found.differences}
    power = moved.get("power_watts") or moved.get("device_power_watts")
    if power is None:
        return "nobody knows what the drives would draw"
    who = _WHO[found.compared_scope]
    change = power.change
    if change.value == change.low == change.high == 0.0:
        return f"{who} draw what they draw today"
    way = "more" if change.value > 0 else "less"
    ends = sorted((abs(change.low), abs(change.high))) if change.low * change.high > 0 else None
    amount = quantity("watts", abs(change.value), *(ends or ()))
    said = f"{who} draw {amount} {way} ({power.change_percent:+.3g} %)"
    if ends is None:
        span = quantity("watts", change.value, change.low, change.high)
        said = f"{who} may draw as much as today: {span}, not sure"
    cost = moved.get("cost_per_year")
    if cost is not None and cost.certain:
        currency = found.base.answer.factors.currency
        said += f", {digits(abs(cost.change.value))} {currency} a year {way}"
    return said


def differences(found: Outcome) -> Table:
    """What differs, by quantity, and how surely."""
    rows = []
    for each in found.differences:
        name = each.quantity
        if name == "power_watts" and found.base.answer.scope == "device":
            continue  # the drives' again
        told = (
            quantity(name, one.value, one.low, one.high)
            for one in (each.base, each.changed, each.change)
        )
        percent = f"{'+' if each.change_percent > 0 else ''}{digits(each.change_percent)} %"
        if each.change.value == each.change.low == each.change.high == 0.0:
            percent = "none"
        elif not each.certain:
            percent += ", not sure"
        rows.append((_name(found, name), *told, percent, each.change.evidence.value))
    caption = "In brackets: 90 % interval; that of a change leaves out what both err alike."
    return Table.of(("", "as it is", "changed", "change", "", "evidence"), rows, caption=caption)


def recommended(side: Side) -> str:
    """What one side recommends."""
    best = side.row
    if best is None:
        return NOTHING_MEETS
    many = "" if side.drives == 1 else f"{side.drives} drives, each "
    return f"{many}{setting(best.configuration)}"


def knobs(found: Outcome) -> Iterator[str]:
    """What is set otherwise; nothing where one side recommends nothing."""
    one, other = found.base.row, found.changed.row
    if one is None or other is None:
        return
    if not found.knobs:
        yield "The configuration stays."
        return
    moved = (
        f"{name.replace('_', ' ')} {knob(one.configuration, name)} → "
        f"{knob(other.configuration, name)}"
        for name in found.knobs
    )
    yield f"Set otherwise: {', '.join(moved)}."


def saving(side: Side) -> str:
    """What one side saves against what runs today."""
    found = side.answer.saving
    if found is None:
        return "none known"
    told = quantity("percent", found.percent.value, found.percent.low, found.percent.high)
    return f"{told}, {found.verdict}"


def misses(side: Side) -> Iterator[str]:
    """What comes nearest where nothing meets the SLA."""
    for miss in side.answer.nearest_misses[:3]:
        missed = "; ".join(map(short, miss.shortfalls))
        yield f"Nearest miss: {setting(miss.row.configuration)}: {missed}"


def cap(stated: CapWhile) -> Iterator[str]:
    """What a power cap for a while does, and what is left to do after it."""
    scope = SCOPE_POWER[stated.scope][1]
    span = quantity("seconds", stated.seconds)
    yield f"Under {quantity('watts', stated.cap_watts)} of {scope} for {span}: {stated.reason}"
    if stated.row is not None and stated.power_watts is not None:
        power = stated.power_watts
        yield f"meanwhile: {setting(stated.row.configuration)}"
        yield f"power {quantity('watts', power.value, power.low, power.high)}"
        tail = stated.row.latency_p99_ns
        if tail is not None:
            yield f"p99 latency {quantity('latency_p99_ns', tail.value, tail.low, tail.high)}"
    yield f"served {digits(100 * stated.served_share)} % of the work"
    if stated.joules is not None and stated.joules_without is not None:
        less = stated.joules_without.value - stated.joules.value
        yield f"{quantity('joules', less)} less than without the cap"
    if stated.deferred_bytes > 0:
        left = f"{digits(stated.deferred_bytes / 1e9)} GB"
        if stated.catch_up_seconds is None or stated.catch_up_joules is None:
            yield f"{left} are not done, and never: nothing is left to catch up with"
        else:
            more = quantity("joules", stated.catch_up_joules)
            yield (
                f"{left} wait, and are caught up with in "
                f"{quantity('seconds', stated.catch_up_seconds)} for {more} more than usual"
            )


def _name(found: Outcome, name: str) -> str:
    if name == "power_watts":
        return f"power ({SCOPE_POWER[found.base.answer.scope][1]})"
    return NAMES[name]


def sweep(found: SweepAnswer, shown: str, most: int) -> Table:
    """The points of a sweep with one quantity of each; more than `most` are only counted."""
    rows = []
    for each in found.records[:most]:
        said = each["problem"] or ("" if each["feasible"] else NOTHING_MEETS)
        rows.append(
            (
                *(str(each.get(f"change.{name}", "")) for name in found.axes),
                quantity(shown, *(each[f"{shown}{end}"] for end in ("", "_low", "_high"))),
                quantity(shown, each[f"change_{shown}"]),
                each[f"{shown}_evidence"] or "",
                said or _knobs_of(each),
            )
        )
    left = len(found.records) - most
    caption = f"{left} more in {found.file}" if left > 0 else ""
    headings = (*found.axes, NAMES[shown], "change", "evidence", "recommended")
    return Table.of(headings, rows, caption=caption)


def _knobs_of(each: Mapping[str, Any]) -> str:
    names = ("request_bytes", "queue_depth", "jobs", "engine", "completion", "power_state")
    told = (each[f"recommended_{name}"] for name in names)
    said = ("{} B requests, depth {}, {} jobs, {} {}, PS{}").format(*told)
    return said if each["cap_kept_by"] is None else f"{said}; cap: {each['cap_kept_by']}"


def turns(found: Sequence[Threshold]) -> Iterator[str]:
    """From which value on the answer is another."""
    for moved in found:
        held = ", ".join(f"{name} = {value}" for name, value in moved.held.items())
        yield (
            f"{moved.field} between {moved.below:g} and {moved.above:g}{held and f' ({held})'}: "
            f"{_moved(moved.before, moved.after)}"
        )


def _moved(before: str, after: str) -> str:
    """What differs between two answers that are lists of settings."""
    if NOTHING_MEETS in (before, after):
        one, other = (said if said == NOTHING_MEETS else "met" for said in (before, after))
        return f"{one} → {other}"
    was, now = before.split(", "), after.split(", ")
    lost = [item for item in was if item not in now]
    new = [item for item in now if item not in was]
    return f"{', '.join(lost) or 'as before'} → {', '.join(new) or 'as before'}"


WHAT_IF_KIND = "what-if"


def report(found: WhatIfAnswer, asked: Asked) -> Document:
    """The report of what the changes change."""
    base = found.base.answer
    return Document(
        "What if",
        f"{base.workload}-on-{base.device}-what-if",
        title(found),
        (
            ("As it is", recommended(found.base)),
            ("Changed", recommended(found.changed)),
            ("Asked", asked.moment),
        ),
        (
            Section("What changes", tuple(_changes(found))),
            answer(base, "As things are"),
            answer(found.changed.answer, "As they would be"),
            Section("The question", (_changed(found), question(base, asked))),
            Section("Before acting on it", (Points(tuple(found.notes)),)),
            Section("Evidence and versions", tuple(versions(found.iojoule_version, base, asked))),
            report_file.again(asked),
        ),
        report_file.data_of_report(WHAT_IF_KIND, asked, found),
    )


def _changes(found: Outcome) -> Iterator[Block]:
    yield Points(tuple(knobs(found)) or ("One of the two recommends nothing.",))
    if found.differences:
        yield differences(found)
        drawn = _picture(found)
        if drawn is not None:
            yield drawn
    if missed := tuple(misses(found.changed)):
        yield Points(missed)
    sides = (("as it is", found.base), ("changed", found.changed))
    rows = [(name, saving(side)) for name, side in sides]
    yield Table.of(("side", "saving against today's configuration"), rows)
    if found.changed.cap is not None:
        told, *more = cap(found.changed.cap)
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
    across = Axis(NAMES[tail], lambda value: quantity(tail, value), log=True)
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


SWEEP_KIND = "sweep"


def sweep_report(found: SweepAnswer, shown: str, asked: Asked) -> Document:
    """The report of a sweep.

    Args:
        found: The sweep.
        shown: The quantity that is drawn and listed, a field of `Totals`.
        asked: How it was asked for.
    """
    name = NAMES[shown]
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
            Section("All points", (sweep(found, shown, len(found.records)),)),
            Section("Evidence and versions", (_versions(found), *report_file.sources(asked))),
            report_file.again(asked),
        ),
        report_file.data_of_report(SWEEP_KIND, asked, found),
    )


def _shown(found: SweepAnswer, shown: str) -> Iterator[Block]:
    if len(found.axes) == 1 and all(_number(one) for one in _values(found, found.axes[0])):
        drawn = _line(found, shown)
        yield Text("Nobody knows this quantity here.") if drawn is None else drawn
    elif len(found.axes) == 2:
        yield _grid(found, shown)
    changes = tuple(turns(found.thresholds))
    if changes:
        yield Text("Where the answer changes:")
        yield Points(changes)


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
            "sweep",
            f"{NAMES[shown]} over {field}",
            caption,
            Axis(field, lambda value: f"{value:,.6g}"),
            Axis(NAMES[shown], lambda value: quantity(shown, value)),
            limits=turns,
            lines=[line],
        )
    )


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
    caption = f"{NAMES[shown]}; in brackets: 90 % interval; -: nothing meets the SLA."
    return Table.of(headings, rows, caption=caption)


def _versions(found: SweepAnswer) -> Table:
    rows = [("iojoule", found.iojoule_version), ("points, with every quantity", found.file)]
    return Table.of(("part", "version"), rows)
