"""What-ifs as text: both answers side by side, what differs and how surely; sweeps as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from iojoule.api.cli import console
from iojoule.api.what_ifs import SweepAnswer
from iojoule.api.words import what_ifs as words
from iojoule.recommender.what_if.outcome import Outcome, Totals

MOST_SHOWN = 40
"""Rows of a sweep on the terminal; all of it is in the file."""


def parts(found: Outcome) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    yield words.question(found)
    yield ""
    for name, side in (("as it is", found.base), ("changed", found.changed)):
        yield f"{name + ':':10}{words.recommended(side)}"
    yield from words.knobs(found)
    if found.differences:
        yield ""
        yield console.table_of(words.differences(found))
    yield from words.misses(found.changed)
    saved = "; ".join(words.saving(side) for side in (found.base, found.changed))
    yield f"Saving against today's configuration: {saved}"
    if found.changed.cap is not None:
        yield ""
        asked, *told = words.cap(found.changed.cap)
        yield asked
        yield from (f"  {line}" for line in told)
    if found.notes:
        yield ""
        yield from (f"- {note}" for note in found.notes)


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
    yield console.table_of(words.sweep(found, shown, MOST_SHOWN))
    yield ""
    yield f"{found.points} points, {found.feasible} meet the SLA, {found.failed} have no answer"
    yield from words.turns(found.thresholds)


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
