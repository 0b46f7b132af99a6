"""`iojoule measure characterise`: what a drive is like where no data sheet says it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console
from iojoule.api.cli.options import (
    ControllerOption,
    DriveOption,
    OverwriteOption,
    PowerOption,
    RaplOption,
    SerialOption,
    ask_serial,
    sensors_of,
)
from iojoule.measure.characterise.experiment import ScaleName
from iojoule.measure.characterise.experiments import EXPERIMENTS, chosen
from iojoule.measure.characterise.folder import CharacteriseFolder
from iojoule.measure.characterise.preset import DEFAULT_BASE
from iojoule.measure.characterise.report import interval
from iojoule.measure.characterise.session import CharacteriseRequest, commands, plan_experiments
from iojoule.measure.characterise.session import characterise as ask

if TYPE_CHECKING:
    from iojoule.datasets.characteristics import Characteristics
    from iojoule.measure.characterise.session import PlannedExperiments


def characterise(
    drive: DriveOption,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder; one that was begun before is gone on with.")
    ],
    controller: ControllerOption = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    serial: SerialOption = None,
    overwrite: OverwriteOption = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="These alone; see `measure questions`."),
    ] = None,
    scale: Annotated[
        ScaleName, typer.Option(help="`quick` shows the big effects, `full` takes hours.")
    ] = ScaleName.FULL,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET|FILE.toml",
            help="The simulated drive that the preset takes from what was not found.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and every job, and do nothing.")
    ] = False,
) -> None:
    """Ask a drive what no data sheet says: cache, units, saturation, idle and background watts."""
    asked = chosen([one.strip() for one in only.split(",")] if only else [])
    considered = plan_experiments(asked, drive, controller, scale, has_power=bool(power))
    _show(considered)
    if dry_run:
        lines = commands(considered.steps, considered.extent, considered.drive.device.path)
        console.emit("\n".join(lines) + "\n")
        return
    if considered.bytes_written and serial is None:
        serial = ask_serial(considered.drive, "this")
    found = ask(
        considered,
        CharacteriseFolder(out),
        CharacteriseRequest(
            sensors_of(power, rapl_root), overwrite or [], serial, base or DEFAULT_BASE
        ),
        console.note,
    )
    _tell(found, [one.name for one in EXPERIMENTS])
    console.emit(f"{out}: characteristics.json, report.md and preset.toml are written\n")


def questions() -> None:
    """List the questions that `measure characterise` asks."""
    table = console.new_table(["question", "what it asks", "what it is good for"])
    for one in EXPERIMENTS:
        table.add_row(one.name, one.title, one.purpose)
    console.emit_table(table)


def _show(considered: PlannedExperiments) -> None:
    facts, extent = considered.drive, considered.extent
    table = console.new_table(["question", "what it asks", "runs", "writes", "at least"])
    if considered.fills:
        table.add_row("", "the area is written in order first", "1", _megabytes(extent.area_bytes))
    for step in considered.steps:
        name, title = step.experiment.name, step.experiment.title
        if step.obstacle is not None:
            table.add_row(name, f"left out: {step.obstacle}")
            continue
        written = _megabytes(step.bytes_written) if step.bytes_written else "nothing"
        table.add_row(name, title, str(len(step.jobs)), written, _duration(step.seconds))
    console.emit_table(
        f"{facts.device.path}: {facts.model}, serial {facts.serial}; the first "
        f"{_megabytes(extent.area_bytes)} are used",
        table,
        f"written in all: {_megabytes(considered.bytes_written)}"
        if considered.bytes_written
        else "nothing is written; what the drive holds is read, and blocks that were never "
        "written answer faster than others",
        f"time: at least {_duration(considered.seconds)}, more where writes are slow or the "
        "drive works on after them",
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _tell(found: Characteristics, order: list[str]) -> None:
    table = console.new_table(["question", "what", "found"])
    for name in order:
        answer = found.answers.get(name)
        if answer is None:
            continue
        if not answer.estimates:
            table.add_row(name, answer.status.value, answer.reason or "")
        for label, one in answer.estimates.items():
            table.add_row(name, label, interval(one))
    console.emit_table(table)
