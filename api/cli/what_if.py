"""`iojoule what-if`: what another drive, workload, SLA, price or a power cap would change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from iojoule.api.application.recommend import stated_value, workload_with
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    HostOption,
    ProfileOption,
    ReportOption,
    ServerOption,
    TemperatureOption,
    asked_now,
    asked_of,
    assignments,
    check_report,
    chosen_backend,
    chosen_profile,
    stated_conditions,
)
from iojoule.api.cli.progress import progress
from iojoule.datasets.errors import InfeasibleError
from iojoule.recommender.what_if.outcome import Outcome, Totals

if TYPE_CHECKING:
    from iojoule.api.application.what_if import SweepAnswer
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import AskedConditions
    from iojoule.recommender.request import WorkloadProfile
    from iojoule.recommender.what_if.situation import Situation


class _AskByDefault(TyperGroup):
    """A group whose command need not be named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["ask", *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The commands, and the options of the one that need not be named."""
        super().format_help(ctx, formatter)
        ask = self.commands["ask"]
        with ask.make_context("what-if", [], parent=ctx.parent, resilient_parsing=True) as inner:
            ask.format_help(inner, formatter)


app = typer.Typer(
    add_completion=False,
    cls=_AskByDefault,
    help="What another drive, workload, SLA, price or a power cap would change.",
    no_args_is_help=True,
)

WorkloadOption = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Workload profile, fio job file, or a preset's name."),
]
JobOption = Annotated[str | None, typer.Option(help="Section of the fio job file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="How things are: as `recommend --set`."),
]
SlaOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Instead of the file's: 'p99 < 2 ms'.")
]
PriceOption = Annotated[
    str | None, typer.Option("--price", metavar="AMOUNT", help="Of electricity: 0.30EUR/kWh.")
]
DrivesOption = Annotated[int, typer.Option(min=1, help="Drives that share the load today.")]
ChangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        "-c",
        metavar="FIELD=VALUE",
        help="What would be different; may be repeated. `iojoule what-if changes` lists the "
        "fields.",
    ),
]


@app.command()
def ask(
    ctx: typer.Context,
    workload: WorkloadOption,
    change: ChangeOption = None,
    device: DeviceOption = None,
    profile: ProfileOption = None,
    host: HostOption = None,
    job: JobOption = None,
    set_: SetOption = None,
    sla: SlaOption = None,
    price: PriceOption = None,
    drives: DrivesOption = 1,
    firmware: FirmwareOption = None,
    pcie_generation: GenerationOption = None,
    temperature: TemperatureOption = None,
    conditions: ConditionsOption = None,
    for_: ForOption = None,
    report: ReportOption = None,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Put the answer as things are beside the answer as they would be (the usual command).

    Leaves with exit code 7 where no configuration meets the changed question.
    """
    check_report(report)
    said = assignments(change or [], "--change")
    known = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    backend = chosen_backend(server, device, profile, host)
    question = _question(workload, job, set_, sla, price)
    changes = {field: stated_value(text) for field, text in said.items()}
    with backend as computes, progress() as watch:
        found = computes.what_if(question, changes, drives=drives, conditions=known, watch=watch)
        device_id = found.base.answer.device
        sources = computes.sources([device_id]) if report is not None else []
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    else:
        if output is Format.CSV:
            emit_csv(found)
        else:
            console.emit_table(*parts(found))
    if report is not None:
        from iojoule.api.reports import what_if as reports
        from iojoule.api.reports.report_file import write_report

        request = asked_of(device_id, question, drives=drives, conditions=known, changes=changes)
        write_report(reports.report(found, asked_now(ctx, "/what-if", request, sources)), report)
        console.note(f"wrote {report}")
    if not found.changed.feasible:
        raise InfeasibleError(
            "no configuration meets the changed question; change less, or relax a bound"
        )


@app.command()
def sweep(
    ctx: typer.Context,
    workload: WorkloadOption,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE.parquet", help="Where all of it goes; a part is gone on with."),
    ],
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE,...", help="A field and its values; repeated: every combination."
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Points one by one: a header of fields, then rows."),
    ] = None,
    change: ChangeOption = None,
    device: DeviceOption = None,
    profile: ProfileOption = None,
    host: HostOption = None,
    job: JobOption = None,
    set_: SetOption = None,
    sla: SlaOption = None,
    price: PriceOption = None,
    drives: DrivesOption = 1,
    firmware: FirmwareOption = None,
    pcie_generation: GenerationOption = None,
    temperature: TemperatureOption = None,
    conditions: ConditionsOption = None,
    for_: ForOption = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Points at a time; else by cores."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that computes instead."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it (.svg, .png, .pdf), or its points (.csv)."),
    ] = None,
    show: Annotated[
        str, typer.Option(metavar="QUANTITY", help="What is drawn and listed.")
    ] = "power_watts",
    report: ReportOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Ask many what-ifs, store them as Parquet, and say from which value on the answer changes."""
    if not axis and points is None:
        raise typer.BadParameter("say --axis FIELD=VALUE,... or --points FILE.csv")
    check_report(report)
    known = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    question = _question(workload, job, set_, sla, price)
    base = _base(chosen_profile(device, profile, host), question, drives, known)
    import time

    from iojoule.api.application.what_if import run_sweep, stated_changes, sweep_of
    from iojoule.recommender.what_if.sweep import processes_for
    from iojoule.sim.workers import open_pool

    changes = stated_changes(assignments(change or []))
    asked = sweep_of(base, axis or [], points, changes)
    check_shown(show)
    if plot is not None:
        from iojoule.api.reports.plots import check_drawable, check_target

        check_target(plot)
        check_drawable(asked.axes)
    with (
        open_pool(jobs or processes_for(asked), dask=dask) as pool,
        progress() as watch,
    ):
        found = run_sweep(
            asked,
            out,
            pool,
            watch=None if watch is None else partial(watch, "sweeping"),
            clock=time.monotonic,
        )
    emit_sweep(found, show, output)
    if plot is not None:
        from iojoule.api.reports.plots import draw_sweep

        draw_sweep(found, show, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports import what_if as reports
        from iojoule.api.reports.report_file import write_report

        request = asked_of(
            base.profile.device,
            base.workload,
            drives=drives,
            conditions=known,
            changes=changes,
            points=[dict(point) for point in asked.points],
        )
        write_report(
            reports.sweep_report(found, show, asked_now(ctx, None, request, base.profile.sources)),
            report,
        )
        console.note(f"wrote {report}")
    console.note(f"wrote {out}: {found.points} points")


@app.command()
def changes(output: FormatOption = Format.TABLE) -> None:
    """List what can be changed."""
    from iojoule.recommender.what_if.changes import KINDS

    records = [{"fields": ", ".join(kind.names), "changes": kind.says} for kind in KINDS]
    console.emit_records(records, output, {"fields": "field", "changes": "what it changes"})


def _base(
    profile: DeviceProfile, question: WorkloadProfile, drives: int, conditions: AskedConditions
) -> Situation:
    """How things are, from the options."""
    from iojoule.recommender.what_if.situation import Situation

    return Situation(profile, question, drives=drives, conditions=conditions)


def _question(
    workload: Path, job: str | None, set_: list[str] | None, sla: str | None, price: str | None
) -> WorkloadProfile:
    """What is asked of the drive today."""
    from iojoule.recommender.factors import stated_factors
    from iojoule.recommender.sla import parse_sla

    stated: dict[str, Any] = {
        name: stated_value(text) for name, text in assignments(set_ or []).items()
    }
    if sla is not None:
        stated["sla"] = parse_sla(sla).model_dump(exclude_unset=True)
    stated |= {f"factors.{name}": one for name, one in stated_factors(price).items()}
    return workload_with(workload, stated, job=job)


MOST_SHOWN = 40
"""Rows of a sweep on the terminal; all of it is in the file."""


def parts(found: Outcome) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    from iojoule.api.reports import what_if as words  # its thresholds need numpy

    columns = console.columns()
    yield from textwrap.wrap(words.verdict(found), columns)
    yield ""
    for name, side in (("as it is", found.base), ("changed", found.changed)):
        yield f"{name + ':':10}{words.recommended(side)}"
    if found.differences:
        yield ""
        yield console.table_of(words.differences(found))
    for miss in words.misses(found.changed):
        yield from textwrap.wrap(miss, columns, subsequent_indent="  ")
    saved = "; ".join(words.saving(side) for side in (found.base, found.changed))
    yield f"Saving against today's configuration: {saved}"
    if found.changed.cap is not None:
        yield ""
        asked, *told = words.cap(found.changed.cap)
        yield from textwrap.wrap(asked, columns, subsequent_indent="  ")
        yield from (f"  {line}" for line in told)
    if found.notes:
        yield ""
        for note in found.notes:
            yield from textwrap.wrap(note, columns, initial_indent="- ", subsequent_indent="  ")


def emit_csv(found: Outcome) -> None:
    """One row a quantity."""
    rows = [
        [
            each.quantity,
            *_ends(each.base),
            *_ends(each.changed),
            *_ends(each.change),
            each.change_percent,
            each.change.evidence.value,
        ]
        for each in found.differences
    ]
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
    from iojoule.api.reports import what_if as words  # its thresholds need numpy

    yield console.table_of(words.sweep(found, shown, MOST_SHOWN))
    yield ""
    yield f"{found.points} points, {found.feasible} meet the SLA, {found.failed} have no answer"
    yield from words.turns(found.thresholds)
