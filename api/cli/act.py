"""`iojoule apply` and `iojoule undo`: setting what was recommended, and taking it back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from iojoule.api.acting.answer_file import read_answer
from iojoule.api.acting.applications import Application, options_of, refused_of
from iojoule.api.acting.applying import apply as set_all
from iojoule.api.acting.applying import require_consent, take_back_file
from iojoule.api.acting.errors import NotProvenError
from iojoule.api.acting.exports import ExportFormat, export, material_of
from iojoule.api.acting.guarding import watch
from iojoule.api.acting.paired_saving import Trial
from iojoule.api.acting.persistence import persistent
from iojoule.api.acting.proposal import names, propose, require_model
from iojoule.api.acting.verifying import (
    Work,
    conduct_pairs,
    plan_text,
    require_meters,
    sets_power_states,
    verification,
)
from iojoule.api.cli import console
from iojoule.api.cli.options import (
    ControllerOption,
    DriveOption,
    OverwriteOption,
    PowerOption,
    ProfileOption,
    RaplOption,
    SerialOption,
    ask_serial,
    chosen_backend,
    sensors_of,
)
from iojoule.api.cli.progress import CampaignProgress
from iojoule.api.reports.configurations import SCOPE_POWER
from iojoule.api.reports.quantities import quantity
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions
from iojoule.measure.campaign.plan import parse_plan
from iojoule.measure.campaign.session import commands, inspect_drive, open_drive, run_campaign
from iojoule.measure.errors import CampaignError
from iojoule.measure.fio import find_fio
from iojoule.measure.host.journal import restore_abandoned
from iojoule.recommender.request import Scope, load_workload

if TYPE_CHECKING:
    from iojoule.api.acting.answer_file import Answer
    from iojoule.api.acting.proposal import Left, Proposal, Step
    from iojoule.api.acting.verifying import Verification


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
    as_: Annotated[
        ExportFormat | None,
        typer.Option(
            "--as",
            help="Print a file for this program instead, and set nothing: a TuneD profile, tasks "
            "of Ansible that install the udev rule and tmpfiles.d file, lines for io.cost.model "
            "and io.cost.qos, a drop-in of a systemd service, or one of the two files.",
        ),
    ] = None,
    profile: ProfileOption = None,
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
    if guard is not None and not run:
        raise typer.BadParameter("watches what --run sets; say --run too", param_hint="--guard")
    if as_ is not None and (run or persist):
        raise typer.BadParameter("prints a file and sets nothing", param_hint="--as")
    if profile is not None and as_ is not ExportFormat.IOCOST:
        raise typer.BadParameter("is for --as iocost", param_hint="--profile")
    answer = read_answer(recommendation)
    if run:  # a killed process's settings are not in force
        for line in restore_abandoned():
            console.note(line)
    facts, nvme = inspect_drive(drive, controller)
    proposal = propose(answer, facts, nvme)
    if as_ is not None:
        shipped = answer.device if profile is None else None
        backend = partial(chosen_backend, None, shipped, profile)
        console.emit(export(as_, material_of(answer, proposal, application, backend)))
        return
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
    wanted, current = answer.recommended.configuration, answer.current.configuration
    options = options_of(application, wanted, current)
    refused = refused_of(application)
    if output is console.Format.TABLE:
        console.emit_table(*_parts(answer, proposal, steps, left))
        console.emit_table(*_application(application, [*options, *refused]))
        return
    records = [
        {
            "what": one.what,
            "now": one.now,
            "then": one.then,
            "command": one.command,
            "undo_command": one.undo_command,
        }
        for one in steps
    ]
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


VERIFICATION_FILE = "verification.json"


def verify(
    recommendation: RecommendationOption,
    workload: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The workload that it was recommended for."),
    ],
    drive: DriveOption,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the runs; one that was begun is gone on with."),
    ],
    controller: ControllerOption = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    job: Annotated[str | None, typer.Option(help="Section of the fio job file.")] = None,
    scope: Annotated[
        Literal["device", "device_cpu", "system"] | None,
        typer.Option(help="Whose energy counts; else that of the recommendation."),
    ] = None,
    pairs: Annotated[int, typer.Option(min=4, help="Pairs of runs at the most; made even.")] = 24,
    seconds: Annotated[float, typer.Option(min=1, help="Measured time of a run.")] = 30.0,
    ramp_seconds: Annotated[float, typer.Option(min=0, help="Time before it.")] = 5.0,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="That the interval of the saving holds.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the order of the runs.")] = 1,
    serial: SerialOption = None,
    overwrite: OverwriteOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command and do nothing.")
    ] = False,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Measure what a recommendation saves: interleaved runs with and without it.

    The drive must not be in use, as for `iojoule measure`; everything is put back. Leaves with exit
    code 30 where no saving is shown or a bound of the SLA is broken.
    """
    answer, question = read_answer(recommendation), load_workload(workload, job=job)
    trial = Trial(pairs + pairs % 2, confidence)
    work = Work(question, Scope(scope) if scope else answer.scope)
    facts, nvme = inspect_drive(drive, controller)
    require_model(answer, facts)
    text = plan_text(
        answer,
        question,
        trial,
        seconds=seconds,
        ramp_seconds=ramp_seconds,
        power_states=sets_power_states(answer, facts, nvme),
        seed=seed,
    )
    plan = parse_plan(text, "plan.toml")
    opened = open_drive(plan, drive, controller)
    if dry_run:
        console.emit("\n".join(commands(opened, find_fio())) + "\n")
        return
    sensors = sensors_of(power, rapl_root)
    require_meters(work.scope, sensors)
    folder = CampaignFolder(out)
    if folder.exists and folder.plan_text() != text:
        raise CampaignError(f"{out}: holds another campaign; name a new folder with --out")
    if plan.writes and serial is None and not folder.exists:
        serial = ask_serial(facts, "verifying a workload that writes")
    options = CampaignOptions(
        drive=str(drive),
        controller=str(nvme.node) if nvme is not None else None,
        serial=facts.serial,
        sensors=sensors,
        overwrite=overwrite or [],
    )
    with CampaignProgress() as progress:
        run_campaign(
            folder,
            text,
            options,
            typed_serial=serial,
            say=progress.say,
            observer=progress,
            resume=folder.exists,
            conduct=conduct_pairs(trial, work),
        )
    found = verification(folder.records(), answer, trial, work)
    folder.write(VERIFICATION_FILE, found)
    if output is console.Format.JSON:
        console.emit_json(found.model_dump(mode="json"))
    elif output is console.Format.CSV:
        console.emit_records([_flat_verification(found)], output, {})
    else:
        console.emit_table(*_verification_parts(found, answer))
    if not found.holds:
        raise NotProvenError(_why_not(found))


def _verification_parts(found: Verification, answer: Answer) -> Iterator[Any]:
    yield f"{answer.workload}: energy of {SCOPE_POWER[found.scope][1]} for the same work"
    if found.saving is not None:
        yield (
            f"saving: {_share(found.saving)} [{_share(found.low)}, {_share(found.high)}] at "
            f"{found.confidence:.0%} confidence, from {found.pairs} pairs: {found.verdict}"
        )
        yield (
            f"before {found.before_joules_per_gb:.4g} J/GB, after "
            f"{found.after_joules_per_gb:.4g} J/GB"
        )
    else:
        yield f"saving: unknown, {found.pairs} pairs are too few"
    if answer.saving is not None:
        said = answer.saving.percent
        yield f"recommended for {said.value:.3g} % [{said.low:.3g}, {said.high:.3g}]"
    if found.bounds:
        yield ""
        table = console.new_table(["with the change", "bound", "measured, 90 % interval", "kept"])
        for one in found.bounds:
            field = one.bound.removesuffix("_min").removesuffix("_max")
            table.add_row(
                field,
                quantity(field, one.limit),
                quantity(field, one.mean, one.low, one.high),
                one.kept,
            )
        yield table


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"


def _flat_verification(found: Verification) -> dict[str, Any]:
    row = found.model_dump(mode="json", exclude={"bounds"})
    return row | {f"{one.bound}_kept": one.kept for one in found.bounds}


def _why_not(found: Verification) -> str:
    if found.broken:
        return f"with the change {' and '.join(found.broken)} is not kept; do not apply it"
    if found.verdict == "costs more":
        return "the change costs more energy for the same work; do not apply it"
    return (
        "no saving is shown; more pairs (--pairs), longer runs (--seconds) or a quieter host would "
        "show a smaller one"
    )
