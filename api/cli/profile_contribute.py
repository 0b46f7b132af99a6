"""`iojoule profile contribute`: measurements as one folder that a pull request can carry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iojoule.datasets.contribution import Check


def contribute(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="CAMPAIGN|DATASET",
            help="Folder of a campaign, or a dataset; with --check the folder to check.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="New folder to write.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The drive, where the measurements do not name it."),
    ] = None,
    identify: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Output of `nvme id-ctrl -o json`, where the campaign kept no drive.json.",
        ),
    ] = None,
    contributor: Annotated[
        str | None, typer.Option(metavar="NAME", help="As whom to cite you, if you wish.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Public measurements; default $IOJOULE_DATA."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check a contribution and write nothing.")
    ] = False,
) -> None:
    """Pack a campaign for a pull request: without identities, checked, fitted and compared.

    The licence of what is written is Apache-2.0. Exit code 8: a check failed, and nothing was
    written; the message names the check.
    """
    if check == (output is not None):
        raise typer.BadParameter("say either -o FOLDER or --check")
    if output is None:
        from iojoule.api.contributing import check_contribution

        _show(check_contribution(source))
        console.emit(f"{source}: passed\n")
        return
    from iojoule.api.contributing import contribute as make

    made = make(
        source,
        output,
        device=device,
        identify=identify,
        contributor=contributor,
        data=data,
    )
    for said in made.notes:
        console.note(said)
    _show(made.checks)
    table = console.new_table(
        ["quantity", "runs", "median error", "in the 90 % interval"],
        title=f"beside the {made.agreement.compared_with} of {made.agreement.profile}",
    )
    for one in made.agreement.quantities:
        table.add_row(one.quantity, str(one.rows), f"{one.median_error:.1%}", f"{one.covered:.0%}")
    console.emit_table(table)
    console.emit(f"{output}: {made.about.rows} measurements of {made.about.device}\n")


def _show(checks: Sequence[Check]) -> None:
    table = console.new_table(["check", "verdict", "value", "limit", "found"])
    for one in checks:
        figures = ("-" if value is None else f"{value:.3g}" for value in (one.value, one.limit))
        table.add_row(one.name, one.verdict, *figures, one.said)
    console.emit_table(table)
