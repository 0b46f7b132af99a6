"""What-ifs as text: both answers side by side, what differs and how surely; sweeps as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from iojoule.api.answer_words import SCOPE_POWER, knob, setting
from iojoule.api.cli import console
from iojoule.api.quantities import digits, quantity
from iojoule.api.what_ifs import SweepAnswer
from iojoule.recommender.what_if.outcome import CapWhile, Outcome, Side, Totals
from iojoule.recommender.what_if.thresholds import NOTHING_MEETS

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

MOST_SHOWN = 40
"""Rows of a sweep on the terminal; all of it is in the file."""


def parts(found: Outcome) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    said = ", ".join(f"{name} = {value}" for name, value in found.changes.items())
    yield f"{found.base.answer.workload} on {found.base.answer.model_name}: what if {said}?"
    yield ""
    for name, side in (("as it is", found.base), ("changed", found.changed)):
        yield f"{name + ':':10}{_recommended(side)}"
    yield from _knobs(found)
    if found.differences:
        yield ""
        yield _table(found)
    yield from _misses(found.changed)
    yield f"Saving against today's configuration: {_saving(found.base)}; {_saving(found.changed)}"
    if found.changed.cap is not None:
        yield ""
        yield from _cap(found.changed.cap)
    if found.notes:
        yield ""
        yield from (f"- {note}" for note in found.notes)


def _recommended(side: Side) -> str:
    best = side.answer.recommended
    if best is None:
        return NOTHING_MEETS
    many = "" if side.drives == 1 else f"{side.drives} drives, each "
    return f"{many}{setting(best.configuration)}"


def _knobs(found: Outcome) -> Iterator[str]:
    one, other = found.base.answer.recommended, found.changed.answer.recommended
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


def _table(found: Outcome) -> Any:
    table = console.new_table(["", "as it is", "changed", "change", "", "evidence"])
    for each in found.differences:
        name = each.quantity
        told = (
            quantity(name, one.value, one.low, one.high)
            for one in (each.base, each.changed, each.change)
        )
        percent = f"{'+' if each.change_percent > 0 else ''}{digits(each.change_percent)} %"
        if each.change.value == each.change.low == each.change.high == 0.0:
            percent = "none"
        elif not each.certain:
            percent += ", not sure"
        table.add_row(_name(found, name), *told, percent, each.change.evidence.value)
    table.caption = "In brackets: 90 % interval; that of a change leaves out what both err alike."
    return table


def _name(found: Outcome, name: str) -> str:
    if name == "power_watts":
        return f"power ({SCOPE_POWER[found.base.answer.scope][1]})"
    return NAMES[name]


def _saving(side: Side) -> str:
    saving = side.answer.saving
    if saving is None:
        return "none known"
    told = quantity("percent", saving.percent.value, saving.percent.low, saving.percent.high)
    return f"{told}, {saving.verdict}"


def _misses(side: Side) -> Iterator[str]:
    for miss in side.answer.nearest_misses[:3]:
        short = ", ".join(
            f"{one.bound} by {digits(one.missed_by_percent)} %" for one in miss.shortfalls
        )
        yield f"Nearest miss: {setting(miss.row.configuration)} misses {short}"


def _cap(cap: CapWhile) -> Iterator[str]:
    scope = SCOPE_POWER[cap.scope][1]
    span = quantity("seconds", cap.seconds)
    yield f"Under {quantity('watts', cap.cap_watts)} of {scope} for {span}: {cap.reason}"
    if cap.row is not None and cap.power_watts is not None:
        power = cap.power_watts
        yield f"  meanwhile: {setting(cap.row.configuration)}"
        yield f"  power {quantity('watts', power.value, power.low, power.high)}"
        tail = cap.row.latency_p99_ns
        if tail is not None:
            yield f"  p99 latency {quantity('latency_p99_ns', tail.value, tail.low, tail.high)}"
    yield f"  served {digits(100 * cap.served_share)} % of the work"
    if cap.joules is not None and cap.joules_without is not None:
        less = cap.joules_without.value - cap.joules.value
        yield f"  {quantity('joules', less)} less than without the cap"
    if cap.deferred_bytes > 0:
        left = f"{digits(cap.deferred_bytes / 1e9)} GB"
        if cap.catch_up_seconds is None or cap.catch_up_joules is None:
            yield f"  {left} are not done, and never: nothing is left to catch up with"
        else:
            more = quantity("joules", cap.catch_up_joules)
            yield (
                f"  {left} wait, and are caught up with in "
                f"{quantity('seconds', cap.catch_up_seconds)} for {more} more than usual"
            )


def emit_csv(found: Outcome) -> None:
    """One row a quantity."""
    rows = [
        [each.quantity, *_ends(each.base), *_ends(each.changed), *_ends(each.change),
         each.change_percent, each.change.evidence.value]
        for each in found.differences
    ]  # fmt: skip
    ends = [
        f"{side}{end}" for side in ("base", "changed", "change") for end in ("", "_low", "_high")
    ]
    console.emit_csv(["quantity", *ends, "change_percent", "evidence"], rows)


def _ends(one: Any) -> list[float]:
    return [one.value, one.low, one.high]


def check_shown(shown: str) -> None:
    """Refuse a quantity that no sweep has.

    Raises:
        BadParameter: There is none of that name.
    """
    if shown not in Totals.model_fields:
        raise typer.BadParameter(f"--show {shown}: is none of {', '.join(Totals.model_fields)}")


def emit_sweep(found: SweepAnswer, shown: str, form: console.Format) -> None:
    """A sweep as a table, as JSON, or as CSV with every column."""
    if form is console.Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif form is console.Format.CSV:
        console.emit_records(found.records, form, {})
    else:
        console.emit_table(*_sweep_parts(found, shown))


def _sweep_parts(found: SweepAnswer, shown: str) -> Iterator[Any]:
    table = console.new_table([*found.axes, NAMES[shown], "change", "evidence", "recommended"])
    for each in found.records[:MOST_SHOWN]:
        said = each["problem"] or ("" if each["feasible"] else NOTHING_MEETS)
        table.add_row(
            *(str(each.get(f"change.{name}", "")) for name in found.axes),
            quantity(shown, *(each[f"{shown}{end}"] for end in ("", "_low", "_high"))),
            quantity(shown, each[f"change_{shown}"]),
            each[f"{shown}_evidence"] or "",
            said or _knobs_of(each),
        )
    if len(found.records) > MOST_SHOWN:
        table.caption = f"{len(found.records) - MOST_SHOWN} more in {found.file}"
    yield table
    yield ""
    yield f"{found.points} points, {found.feasible} meet the SLA, {found.failed} have no answer"
    for moved in found.thresholds:
        held = ", ".join(f"{name} = {value}" for name, value in moved.held.items())
        yield (
            f"{moved.field} between {moved.below:g} and {moved.above:g}{held and f' ({held})'}: "
            f"{_moved(moved.before, moved.after)}"
        )


def _knobs_of(each: dict[str, Any]) -> str:
    names = ("request_bytes", "queue_depth", "jobs", "engine", "completion", "power_state")
    shown = (each[f"recommended_{name}"] for name in names)
    said = ("{} B requests, depth {}, {} jobs, {} {}, PS{}").format(*shown)
    return said if each["cap_kept_by"] is None else f"{said}; cap: {each['cap_kept_by']}"


def _moved(before: str, after: str) -> str:
    """What differs between two answers that are lists of settings."""
    if NOTHING_MEETS in (before, after):
        one, other = (said if said == NOTHING_MEETS else "met" for said in (before, after))
        return f"{one} → {other}"
    was, now = before.split(", "), after.split(", ")
    lost = [item for item in was if item not in now]
    new = [item for item in now if item not in was]
    return f"{', '.join(lost) or 'as before'} → {', '.join(new) or 'as before'}"


@contextmanager
def progress(points: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while points are answered; nothing where nobody would see it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = ("sweeping", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("sweeping", total=points)
        yield lambda done, of: bar.update(task, completed=done, total=of)
