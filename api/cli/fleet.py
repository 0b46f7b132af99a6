"""`iojoule fleet`: many drives under one power budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.server import ServerOption, refuse, service
from iojoule.api.cli.where import DaskOption, StateOption, count_bar, kept_results, workers

if TYPE_CHECKING:
    from iojoule.api.fleets import FrontierAnswer
    from iojoule.recommender.fleet.document import Fleet

app = typer.Typer(
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
    fleet: FleetFile,
    aim: Annotated[
        Literal["least_watts", "most_demand"],
        typer.Option(help="Least watts for the demand, or most demand within the watts."),
    ] = "least_watts",
    budget: Annotated[
        float | None, typer.Option(metavar="WATTS", help="Instead of the file's budgets.")
    ] = None,
    profile: ProfileFiles = None,
    running: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PLAN.json", help="What runs now: the roll-out starts from there."
        ),
    ] = None,
    gap: GapOption = 0.001,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say what every drive does under each budget, and in which stages to get there.

    Leaves with exit code 7 where a demand, a limit or a budget cannot be kept, and says by how
    much.
    """
    from iojoule.api.cli import fleet_table
    from iojoule.api.fleets import answer, profiles_for, read_plan
    from iojoule.recommender.fleet.document import Budget, load_fleet

    stated = load_fleet(fleet)
    if budget is not None:
        stated = stated.model_copy(update={"budgets": (Budget(watts=budget),)})
    before = None if running is None else read_plan(running)
    if server:
        refuse(server, profile=profile)
        with service(server) as client:
            plans = client.fleet_plan(stated, aim=aim, gap=gap).plans
    else:
        from iojoule.recommender.fleet.planner import Planner

        planner = Planner(stated, profiles_for(stated, profile or ()))
        plans = planner.plans(aim, gap=gap)
    found = answer(plans, before)
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif output is Format.CSV:
        fleet_table.emit_csv(found)
    else:
        console.emit_table(*fleet_table.parts(found))


@app.command()
def frontier(
    fleet: FleetFile,
    points: Annotated[int, typer.Option(min=2, max=200, help="Budgets to try.")] = 12,
    least: Annotated[float | None, typer.Option(metavar="WATTS", help="Lowest budget.")] = None,
    most: Annotated[float | None, typer.Option(metavar="WATTS", help="Highest budget.")] = None,
    profile: ProfileFiles = None,
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
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Say how much demand each budget buys, every class counted as if it could be curtailed.

    Read from right to left it is the demand-response curve: what must go unserved for each watt
    given back.
    """
    from iojoule.api.cli import fleet_table
    from iojoule.api.plot import check_target
    from iojoule.recommender.fleet.document import load_fleet

    if plot is not None:
        check_target(plot)
    stated = load_fleet(fleet)
    if server:
        refuse(server, profile=profile, jobs=jobs, dask=dask, state=state)
        with service(server) as client:
            found = client.fleet_frontier(
                stated, points=points, least_watts=least, most_watts=most, gap=gap
            )
    else:
        found = _frontier(stated, profile or (), (least, most, points), gap, (jobs, dask, state))
    if output is Format.JSON:
        console.emit(found.model_dump_json(indent=2) + "\n")
    elif output is Format.CSV:
        records = [point.model_dump() for point in found.points]
        console.emit_records(records, output, {})
    else:
        console.emit_table(*fleet_table.frontier_parts(found))
    if plot is not None:
        from iojoule.api.plot_fleet import draw_frontier

        draw_frontier(found, plot)
        console.note(f"wrote {plot}")


def _frontier(
    fleet: Fleet,
    profiles: Sequence[Path],
    between: tuple[float | None, float | None, int],
    gap: float,
    where: tuple[int | None, str | None, Path | None],
) -> FrontierAnswer:
    """Computed here: by so many processes, or by Dask, keeping what is done in a folder."""
    from iojoule.api.fleets import FrontierAnswer, profiles_for
    from iojoule.recommender.fleet.plan import Tried
    from iojoule.recommender.fleet.planner import Planner

    jobs, dask, state = where
    planner = Planner(fleet, profiles_for(fleet, profiles))
    tried = planner.budgets_between(*between)
    with (
        workers(jobs, dask, 1) as pool,
        kept_results(state, dask, Tried, planner.frontier_keys(tried, gap)) as kept,
        count_bar("budgets", len(tried)) as done,
    ):
        curve = planner.frontier(tried, gap=gap, pool=pool, kept=kept, done=done)
    return FrontierAnswer(fleet=fleet.name, points=curve)


@app.command()
def replace(
    servers: Annotated[
        Path, typer.Argument(metavar="SERVERS", help="TOML with [old] and [new]: docs/fleet.md.")
    ],
    output: FormatOption = Format.TABLE,
) -> None:
    """Say whether servers of another kind would do the same work for less power."""
    from iojoule.api.cli import fleet_table
    from iojoule.api.fleets import read_servers
    from iojoule.recommender.fleet import replacement

    stated = read_servers(servers)
    found = replacement.replace(stated.old, stated.new)
    if output is Format.TABLE:
        console.emit_table(*fleet_table.replacement_parts(found))
    else:
        console.emit_records([found.model_dump()], output, {})
