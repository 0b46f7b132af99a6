"""`iojoule fleet`: many drives under one power budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.application.fleet import (
    FleetAnswer,
    FrontierAnswer,
    answer,
    read_plan,
    read_servers,
)
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import (
    DaskOption,
    ForOption,
    ReportOption,
    ServerOption,
    StateOption,
    asked_now,
    backend_of,
    check_report,
    refuse,
    resources,
)
from iojoule.api.cli.progress import progress
from iojoule.api.reports import fleet as words
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import IntervalFor
from iojoule.recommender.fleet import replacement
from iojoule.recommender.fleet.document import Budget, load_fleet
from iojoule.recommender.fleet.plan import Assignment, Plan, Stage
from iojoule.recommender.fleet.replacement import Replacement

if TYPE_CHECKING:
    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.reports.document import Document
    from iojoule.recommender.fleet.document import Fleet


app = typer.Typer(
    add_completion=False,
    help="Many drives under one power budget: who serves what, for how many watts.",
    no_args_is_help=True,
)

FleetFile = Annotated[
    Path, typer.Argument(metavar="FLEET", help="Fleet file (.toml): docs/fleet.md.")
]
ProfileFiles = Annotated[
    list[Path] | None,
    typer.Option("--profile", metavar="FILE", help="Profile of a drive of the fleet; repeatable."),
]
GapOption = Annotated[
    float,
    typer.Option(min=0.0, max=0.5, help="Relative gap to the best plan at which to stop."),
]


@app.command()
def plan(
    ctx: typer.Context,
    fleet: FleetFile,
    aim: Annotated[
        Literal["least_watts", "most_demand"],
        typer.Option(help="Least watts for the demand, or most demand within the watts."),
    ] = "least_watts",
    budget: Annotated[
        float | None, typer.Option(metavar="WATTS", min=0.1, help="Instead of the file's budgets.")
    ] = None,
    profile: ProfileFiles = None,
    for_: ForOption = None,
    running: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PLAN.json", help="What runs now: the roll-out starts from there."
        ),
    ] = None,
    gap: GapOption = 0.001,
    report: ReportOption = None,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say what every drive does under each budget, and in which stages to get there.

    Leaves with exit code 7 where a demand, a limit or a budget cannot be kept, and says by how
    much.
    """
    check_report(report)
    stated = _stated(fleet, for_)
    if budget is not None:
        stated = stated.model_copy(update={"budgets": (Budget(watts=budget),)})
    before = None if running is None else read_plan(running)
    if server:
        refuse(server, profile=profile)
    with backend_of(server, profiles=profile or ()) as computes:
        plans = computes.fleet_plans(stated, aim, gap)
        sources = computes.sources(_devices(stated)) if report is not None else []
    found = answer(plans, before)
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif output is Format.CSV:
        emit_csv(found)
    else:
        console.emit_table(*parts(found))
    if report is not None:
        from iojoule.api.reports.fleet import plan_report

        request = _request(stated, aim=aim, gap=gap)
        now = asked_now(ctx, "/fleet/plan", request, sources)
        _report(plan_report(found, now), report)


@app.command()
def frontier(
    ctx: typer.Context,
    fleet: FleetFile,
    points: Annotated[int, typer.Option(min=2, max=200, help="Budgets to try.")] = 12,
    least: Annotated[
        float | None, typer.Option(metavar="WATTS", min=0.1, help="Lowest budget.")
    ] = None,
    most: Annotated[
        float | None, typer.Option(metavar="WATTS", min=0.1, help="Highest budget.")
    ] = None,
    profile: ProfileFiles = None,
    for_: ForOption = None,
    gap: GapOption = 0.001,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Budgets at a time; default 1."),
    ] = None,
    dask: DaskOption = None,
    state: StateOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it (.svg, .png, .pdf), or its points (.csv)."),
    ] = None,
    report: ReportOption = None,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say how much demand each budget buys, every class counted as if it could be curtailed.

    Read from right to left it is the demand-response curve: what must go unserved for each watt
    given back.
    """
    from iojoule.api.reports.plots import check_target

    if plot is not None:
        check_target(plot)
    check_report(report)
    stated = _stated(fleet, for_)
    if server:
        refuse(server, profile=profile, jobs=jobs, dask=dask, state=state)
    place = resources(jobs, dask, state)
    with (
        backend_of(server, profiles=profile or (), resources=place) as computes,
        progress() as watch,
    ):
        found = computes.fleet_frontier(
            stated, points=points, least_watts=least, most_watts=most, gap=gap, watch=watch
        )
        sources = computes.sources(_devices(stated)) if report is not None else []
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif output is Format.CSV:
        records = [point.model_dump() for point in found.points]
        console.emit_records(records, output, {})
    else:
        console.emit_table(*frontier_parts(found))
    if plot is not None:
        from iojoule.api.reports.plots import draw_frontier

        draw_frontier(found, plot)
        console.note(f"wrote {plot}")
    if report is not None:
        from iojoule.api.reports.fleet import frontier_report

        request = _request(stated, points=points, least_watts=least, most_watts=most, gap=gap)
        now = asked_now(ctx, "/fleet/frontier", request, sources)
        _report(frontier_report(found, now), report)


def _stated(path: Path, interval_for: str | None) -> Fleet:
    """The fleet of a file; the option wins over it."""
    stated = load_fleet(path)
    if interval_for is None:
        return stated
    return stated.model_copy(update={"interval_for": IntervalFor(interval_for)})


def _request(fleet: Fleet, **more: object) -> dict[str, Any]:
    """The question as the body of a request."""
    stated = {name: value for name, value in more.items() if value is not None}
    return {"fleet": fleet.model_dump(mode="json", exclude_none=True), **stated}


def _devices(fleet: Fleet) -> list[str]:
    """Device models of a fleet."""
    return sorted({group.device for group in fleet.drives})


def _report(document: Document, path: Path) -> None:
    from iojoule.api.reports.report_file import write_report

    write_report(document, path)
    console.note(f"wrote {path}")


@app.command()
def replace(
    servers: Annotated[
        Path,
        typer.Argument(metavar="SERVERS", help="TOML with the tables old and new: docs/fleet.md."),
    ],
    output: FormatOption = Format.TABLE,
) -> None:
    """Say whether servers of another kind would do the same work for less power."""
    stated = read_servers(servers)
    found = replacement.replace(stated.old, stated.new)
    if output is Format.TABLE:
        console.emit_table(*replacement_parts(found))
    else:
        console.emit_records([found.model_dump()], output, {})


def parts(found: FleetAnswer) -> Iterator[Any]:
    """What goes to the terminal, from top to bottom: lines and tables."""
    for number, (plan, stages) in enumerate(zip(found.plans, found.rollouts, strict=True)):
        if number:
            yield ""
        yield from _plan(plan)
        if stages:
            yield ""
            yield _stages(stages)
    yield ""
    for note in found.plans[-1].notes:
        yield f"- {note}"


def _plan(plan: Plan) -> Iterator[Any]:
    yield from words.summary(plan)
    for table in (words.groups(plan), words.classes(plan), words.domains(plan)):
        yield ""
        yield console.table_of(table)


def _stages(stages: list[Stage]) -> Any:
    table = console.table_of(words.stages(stages))
    table.title = "Roll-out"
    return table


def frontier_parts(found: FrontierAnswer) -> Iterator[Any]:
    """The frontier as a table; each step down says what a watt costs in demand."""
    yield f"{found.fleet}: what a budget buys, every class counted as if it could be curtailed"
    yield ""
    yield console.table_of(words.frontier(found))


def replacement_parts(found: Replacement) -> Iterator[str]:
    """The replacement in three lines."""
    yield (
        f"{found.servers:.2f} new servers do the work of one old one "
        f"({found.servers_whole} where one is replaced alone)"
    )
    interval = f"[{found.power_ratio_low:.3g}, {found.power_ratio_high:.3g}]"
    yield (
        f"They draw {found.power_ratio:.3g} {interval} times its power "
        f"({found.power_ratio_whole:.3g} times where one is replaced alone)"
    )
    yield f"Does it pay in watts? {found.pays}"


def emit_csv(found: FleetAnswer) -> None:
    """One row for each assignment of each plan."""
    knobs = list(Configuration.model_fields)
    header = ["from_seconds", "budget_watts", "drives", "device", "domain"]
    fields = [name for name in Assignment.model_fields if name != "configuration"]
    rows = []
    for plan in found.plans:
        for group in plan.groups:
            for one in group.assignments:
                data = one.model_dump(mode="json")
                settings = data["configuration"] or {}
                rows.append(
                    [plan.from_seconds, plan.budget_watts, group.name, group.device, group.domain]
                    + [data[name] for name in fields]
                    + [settings.get(name) for name in knobs if name not in fields]
                )
    names = ["count" if name == "drives" else name for name in fields]
    console.emit_csv([*header, *names, *(name for name in knobs if name not in fields)], rows)
