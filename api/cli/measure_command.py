"""`iojoule measure command`: what any program costs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.api.exit_codes import INTERRUPTED

SETTINGS = {"allow_interspersed_args": False}
"""Options behind the program's name are the program's."""


def command(
    program: Annotated[
        list[str], typer.Argument(metavar="CMD...", help="The program and its arguments.")
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=REGEX",
            help="A figure in what the program prints: the first group, the last match.",
        ),
    ] = None,
    work: Annotated[
        str | None, typer.Option(metavar="NAME", help="The metric that is the work done in all.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The metric that is work per second of run time."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="NAME", help="What work is counted in: transaction.")
    ] = None,
    drive: Annotated[
        Path | None, typer.Option(metavar="/dev/X", help="The drive whose I/O counts.")
    ] = None,
    power: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SENSOR", help="An instrument, for instance powersensor3:/dev/ttyACM0."
        ),
    ] = None,
    rapl_root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Root of the powercap tree; default: the system's."),
    ] = None,
    idle: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Measure idle power first, for so long."),
    ] = 0.0,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Run it so often.")] = 1,
    settle: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Wait between the runs.")
    ] = 0.0,
    sync: Annotated[
        bool, typer.Option("--sync", help="Count writing the page cache back after each run, too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="New folder for everything; default: one named by time."),
    ] = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Run a program and say what its work costs in joules: drive, CPU, and both."""
    from iojoule.api.cli.command_table import show
    from iojoule.datasets.errors import InputError
    from iojoule.measure.command.request import Request, parse_metric
    from iojoule.measure.command.session import measure_command

    if work is not None and rate is not None:
        raise InputError("--work and --rate exclude each other: work is a total or a rate")
    folder = out or Path(f"iojoule-command-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    result = measure_command(
        Request(
            command=program,
            folder=folder,
            metrics=[parse_metric(text) for text in metric or []],
            work=work or rate,
            work_is_rate=rate is not None,
            unit=unit,
            drive=drive,
            sensors=power or [],
            rapl_root=rapl_root,
            idle_seconds=idle,
            repeats=repeat,
            settle_seconds=settle,
            sync=sync,
        ),
        say=console.note,
    )
    show(result, output, folder)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    result.require_success()
