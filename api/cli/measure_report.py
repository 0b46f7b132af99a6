"""`iojoule measure report`: what a finished campaign means in somebody's terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from iojoule.measure.emerald import Metric

app = typer.Typer(
    add_completion=False,
    help="What a finished campaign means in others' terms.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Reports by name."""


@app.command()
def emerald(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the campaign.")],
    output: console.FormatOption = console.Format.TABLE,
    response_time: Annotated[
        float,
        typer.Option(
            "--response-time-ms-max", metavar="MS", help="Bound on the mean response time.", min=0.0
        ),
    ] = 20.0,
) -> None:
    """Power efficiency in the terms of SNIA Emerald: EP_RI, EP_RR, EP_RW, EP_SR, EP_SW."""
    from dataclasses import asdict

    from iojoule.measure.campaign.folder import CampaignFolder
    from iojoule.measure.emerald import emerald as make

    found = make(CampaignFolder(out), response_time / 1e3)
    if output is console.Format.JSON:
        console.emit_json(found.document())
        return
    if output is console.Format.CSV:
        records = [{**asdict(one), "notes": "; ".join(one.notes)} for one in found.metrics]
        console.emit_records(records, output, {})
        return
    table = console.new_table(
        ["metric", "value", "95 % interval", "stable", "depth", "response", "power", "notes"],
        title=f"{found.drive}, plan {found.plan}",
    )
    for one in found.metrics:
        table.add_row(*_cells(one))
    console.emit_table(table, *found.notes)


def _cells(one: Metric) -> list[str]:
    bounds = "-"
    if one.low is not None and one.high is not None:
        bounds = f"{one.low:,.4g} to {one.high:,.4g}"
    verdict = {True: "yes", False: "no", None: "not known"}[one.stable]
    if one.deviation is not None:
        verdict += f" ({one.deviation:.1%})"
    response = one.response_time_seconds
    return [
        one.name,
        f"{one.value:,.4g} {one.unit}" if one.value is not None else "-",
        bounds,
        verdict,
        str(one.queue_depth) if one.queue_depth is not None else "-",
        f"{response * 1e3:.3g} ms" if response is not None else "-",
        f"{one.watts:.4g} W" if one.watts is not None else "-",
        "; ".join(one.notes),
    ]
