"""What-ifs in words: both answers, what differs and how surely, and where a sweep turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iojoule.api.documents.content import Table
from iojoule.api.words.configurations import SCOPE_POWER, knob, setting
from iojoule.api.words.quantities import digits, quantity
from iojoule.recommender.what_if.outcome import CapWhile, Outcome, Side
from iojoule.recommender.what_if.thresholds import NOTHING_MEETS, Threshold

if TYPE_CHECKING:
    from iojoule.api.application.what_if import SweepAnswer

NAMES = {
    "throughput_bytes_per_second": "throughput",
    "capacity_bytes_per_second": "can carry",
    "latency_mean_ns": "mean latency",
    "latency_p99_ns": "p99 latency",
    "device_power_watts": "power (drives)",
    "power_watts": "power",
    "joules_per_useful_gb": "energy per GB",
    "kwh_per_year": "energy a year",
    "cost_per_year": "cost a year",
    "co2_kilograms_per_year": "CO2 a year (kg)",
}


def question(found: Outcome) -> str:
    """What was asked."""
    said = ", ".join(f"{name} = {value}" for name, value in found.changes.items())
    return f"{found.base.answer.workload} on {found.base.answer.model_name}: what if {said}?"


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
        yield "The same configuration is recommended."
        return
    moved = (
        f"{name.replace('_', ' ')} {knob(one.configuration, name)} → "
        f"{knob(other.configuration, name)}"
        for name in found.knobs
    )
    yield f"Set otherwise: {', '.join(moved)}"


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
        missed = ", ".join(
            f"{one.bound} by {digits(one.missed_by_percent)} %" for one in miss.shortfalls
        )
        yield f"Nearest miss: {setting(miss.row.configuration)} misses {missed}"


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
