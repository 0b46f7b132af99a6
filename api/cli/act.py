"""`iojoule apply` and `iojoule undo`: setting what was recommended, and taking it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.acting.applications import Application
from iojoule.api.cli import console
from iojoule.api.cli.drive_options import (
    ControllerOption,
    DriveOption,
    PowerOption,
    RaplOption,
    sensors_of,
)

if TYPE_CHECKING:
    from iojoule.api.acting.answer_file import Answer
    from iojoule.api.acting.proposal import Left, Proposal, Step

RecommendationOption = Annotated[
    Path,
    typer.Option(
        "--recommendation",
        metavar="FILE",
        help="What `iojoule recommend` wrote as JSON or with --report; - is standard input.",
    ),
]
_SHOWN = 60


def apply(
    recommendation: RecommendationOption,
    drive: DriveOption,
    controller: ControllerOption = None,
    application: Annotated[
        Application, typer.Option(help="Whose settings are told beside those of the host.")
    ] = Application.FIO,
    persist: Annotated[
        bool,
        typer.Option("--persist", help="Also the files that set the same after a restart."),
    ] = False,
    run: Annotated[bool, typer.Option("--run", help="Set it; else it is only shown.")] = False,
    serial: Annotated[
        str | None,
        typer.Option(metavar="SERIAL", help="Agrees to --run on the drive of this serial number."),
    ] = None,
    undo: Annotated[
        Path, typer.Option(metavar="FILE", help="Where --run writes what takes it back.")
    ] = Path("iojoule-undo.json"),
    guard: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=10,
            help="With --run: watch the SLA so long, and take it back when it is breached.",
        ),
    ] = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Show, and with --run set, what puts a recommendation into effect on this host.

    Only what the host may set and what differs from what is in force is set. Nothing here weakens
    durability. The drive may be in use.
    """
    from iojoule.api.acting.answer_file import read_answer
    from iojoule.api.acting.applying import apply as set_all
    from iojoule.api.acting.applying import require_consent
    from iojoule.api.acting.guarding import watch
    from iojoule.api.acting.persistence import persistent
    from iojoule.api.acting.proposal import propose
    from iojoule.measure.campaign.session import look_at

    if guard is not None and not run:
        raise typer.BadParameter("watches what --run sets; say --run too", param_hint="--guard")
    answer = read_answer(recommendation)
    facts, nvme = look_at(drive, controller)
    proposal = propose(answer, facts, nvme)
    steps, left = proposal.steps, proposal.left
    if persist:
        files, unlasting = persistent(proposal)
        steps, left = (*steps, *files), (*left, *unlasting)
    if run:
        require_consent(proposal, serial)
    _emit(answer, proposal, steps, left, application, output)
    if not run or not steps:
        console.note("nothing was set" + (": --run does it" if steps else ": nothing differs"))
        return
    sensors = sensors_of(power, rapl_root)
    watching = (
        None
        if guard is None
        else partial(watch, answer, facts.device, sensors, guard, console.note)
    )
    node = str(nvme.node) if nvme is not None else None
    set_all(proposal, steps, node, undo, console.note, watch=watching)
    console.note(f"set; `iojoule undo {undo}` takes it back")


def undo(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `apply --run` wrote.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also what somebody else has changed since.")
    ] = False,
) -> None:
    """Take back what `iojoule apply --run` set, exactly, and remove the file."""
    from iojoule.api.acting.applying import take_back_file

    done = take_back_file(file, console.note, force=force)
    console.emit(f"{done} values were put back\n" if done else "everything was back already\n")


def _emit(
    answer: Answer,
    proposal: Proposal,
    steps: Sequence[Step],
    left: Sequence[Left],
    application: Application,
    output: console.Format,
) -> None:
    from iojoule.api.acting.applications import options_of, refused_of

    wanted, current = answer.recommended.configuration, answer.current.configuration
    options = options_of(application, wanted, current)
    refused = refused_of(application)
    if output is console.Format.TABLE:
        console.emit_table(*_parts(answer, proposal, steps, left))
        console.emit_table(*_application(application, [*options, *refused]))
        return
    records = [
        {"what": one.what, "now": one.now, "then": one.then,
         "command": one.command, "undo_command": one.undo_command}
        for one in steps
    ]  # fmt: skip
    if output is console.Format.CSV:
        console.emit_records(records, output, {})
        return
    told: dict[str, Any] = {
        "drive": str(proposal.drive.device.path),
        "serial": proposal.drive.serial,
        "steps": records,
        "in_force": list(proposal.kept),
        "left": [vars(one) for one in left],
        "application": application.value,
        "options": [vars(one) for one in options],
        "refused": [vars(one) for one in refused],
    }
    console.emit_json(told)


def _parts(
    answer: Answer, proposal: Proposal, steps: Sequence[Step], left: Sequence[Left]
) -> Iterator[Any]:
    from iojoule.api.acting.proposal import names

    drive = proposal.drive
    yield f"{answer.workload} on {drive.device.path} ({drive.model}, serial {drive.serial})"
    saving = answer.saving
    if saving is not None:
        percent = saving.percent
        yield (
            f"expected saving {percent.value:.3g} % [{percent.low:.3g}, {percent.high:.3g}], "
            f"{saving.verdict}"
        )
    yield ""
    if steps:
        table = console.new_table(["setting", "now", "then"])
        for name, group in names(steps):
            many = f" ({len(group)} files)" if len(group) > 1 else ""
            first = group[0]
            table.add_row(name + many, _short(first.now), _short(first.then))
        yield table
        yield ""
        yield from (one.command for one in steps)
    else:
        yield "nothing to set: everything is in force"
    if proposal.kept:
        yield ""
        yield f"in force already: {', '.join(proposal.kept)}"
    if left:
        yield ""
        table = console.new_table(["not set here", "value", "why"])
        for one in left:
            table.add_row(one.what, one.value, one.why)
        yield table


def _application(application: Application, options: Sequence[Any]) -> Iterator[Any]:
    if not options:
        return
    yield ""
    table = console.new_table([f"in {application.value}", "value", "why"])
    for one in options:
        table.add_row(one.name, one.value, one.why)
    yield table


def _short(value: str) -> str:
    text = value.replace("\n", " ") or "none"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
