"""`iojoule what-if`: what another drive, workload, SLA, price or a power cap would change."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from iojoule.api.cli import console
from iojoule.api.cli.asking import ReportOption, asked_now, asked_of, check_report
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.questions import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    HostOption,
    ProfileOption,
    TemperatureOption,
    assignments,
    chosen_profile,
    stated_conditions,
)
from iojoule.api.cli.server import ServerOption, bar, named, refuse, service, sources_of
from iojoule.datasets.errors import InfeasibleError

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import AskedConditions
    from iojoule.recommender.what_if.situation import Situation
    from iojoule.recommender.workload import WorkloadProfile


class _AskByDefault(TyperGroup):
    """A group whose command need not be named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["ask", *args]
        return super().parse_args(ctx, args)


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
        "--change", "-c", metavar="FIELD=VALUE",
        help="What would be different; may be repeated. `iojoule what-if changes` lists the "
        "fields.",
    ),
]  # fmt: skip


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
    if server:
        from iojoule.api.recommendations import stated_value

        refuse(server, profile=profile, host=host)
        question = _question(workload, job, set_, sla, price)
        changes = {field: stated_value(text) for field, text in said.items()}
        with service(server) as client, bar("what if", 1) as show:
            watch = partial(show, 0)
            found = client.what_if(
                named(device), question, changes, drives=drives, conditions=known, watch=watch
            )
            sources = sources_of(client, found.base.answer.device) if report is not None else []
    else:
        from iojoule.api.what_ifs import stated_changes, what_if

        question = _question(workload, job, set_, sla, price)
        base = _base(chosen_profile(device, profile, host), question, drives, known)
        sources = base.profile.sources
        changes = stated_changes(said)
        found = what_if(base, changes)
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    else:
        from iojoule.api.cli import what_if_table

        if output is Format.CSV:
            what_if_table.emit_csv(found)
        else:
            console.emit_table(*what_if_table.parts(found))
    if report is not None:
        from iojoule.api.reports import what_if as reports
        from iojoule.api.reports import write_report

        request = asked_of(
            found.base.answer.device, question, drives=drives, conditions=known, changes=changes
        )
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

    from iojoule.api.cli import what_if_table
    from iojoule.api.what_ifs import run_sweep, stated_changes, sweep_of
    from iojoule.recommender.what_if.sweep import processes_for
    from iojoule.sim.workers import open_pool

    changes = stated_changes(assignments(change or []))
    asked = sweep_of(base, axis or [], points, changes)
    what_if_table.check_shown(show)
    if plot is not None:
        from iojoule.api.plots.front import check_target
        from iojoule.api.plots.sweep import check_drawable

        check_target(plot)
        check_drawable(asked.axes)
    with (
        open_pool(jobs or processes_for(asked), dask=dask) as pool,
        what_if_table.progress(len(asked.points)) as watch,
    ):
        found = run_sweep(asked, out, pool, watch=watch, clock=time.monotonic)
    what_if_table.emit_sweep(found, show, output)
    if plot is not None:
        from iojoule.api.plots.sweep import draw_sweep

        draw_sweep(found, show, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports import sweep as reports
        from iojoule.api.reports import write_report

        request = asked_of(
            base.profile.device, base.workload, drives=drives, conditions=known, changes=changes,
            points=[dict(point) for point in asked.points],
        )  # fmt: skip
        write_report(
            reports.report(found, show, asked_now(ctx, None, request, base.profile.sources)),
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
    from iojoule.api.recommendations import stated_value, workload_with
    from iojoule.recommender.factors import stated_factors
    from iojoule.recommender.sla_text import parse_sla

    stated: dict[str, Any] = {
        name: stated_value(text) for name, text in assignments(set_ or []).items()
    }
    if sla is not None:
        stated["sla"] = parse_sla(sla).model_dump(exclude_unset=True)
    stated |= {f"factors.{name}": one for name, one in stated_factors(price).items()}
    return workload_with(workload, stated, job=job)
