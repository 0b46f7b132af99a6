"""`iojoule measure`: campaigns on a real drive."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.application.adaptive_campaign import (
    PlanAdvisor,
    adaptive_conduct,
    adaptive_options,
    candidates_of,
)
from iojoule.api.cli import console, measure_command, measure_host
from iojoule.api.cli.characterise import characterise, questions
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
from iojoule.api.cli.progress import CampaignProgress
from iojoule.datasets.errors import InputError
from iojoule.measure.campaign.check import check as check_records
from iojoule.measure.campaign.check import verdicts
from iojoule.measure.campaign.conduct import conduct
from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions, Status
from iojoule.measure.campaign.plan import load_plan, shipped_plans
from iojoule.measure.campaign.runs import run_seconds
from iojoule.measure.campaign.session import commands, open_drive, run_campaign
from iojoule.measure.emerald import emerald as make
from iojoule.measure.errors import RunsFailedError
from iojoule.measure.fio import find_fio
from iojoule.measure.host.journal import restore_abandoned
from iojoule.recommender.request import parse_workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iojoule.measure.campaign.conduct import Conduct
    from iojoule.measure.campaign.folder import AdaptiveOptions
    from iojoule.measure.campaign.session import OpenedDrive
    from iojoule.measure.emerald import Metric


DEFAULT_REGRET = 0.03

AdaptiveOption = Annotated[
    float | None,
    typer.Option(
        "--adaptive",
        metavar="HOURS",
        min=0.0,
        help="Measure at most so long, and only what --workload needs.",
    ),
]
MoreHoursOption = Annotated[
    float | None,
    typer.Option(
        "--adaptive",
        metavar="HOURS",
        min=0.0,
        help="Hours of an adaptive campaign in all; default: those it was begun with.",
    ),
]
QuestionOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The question that --adaptive is to answer (.toml, .json)."),
]
RegretOption = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        help="--adaptive ends once the recommendation costs at most so much more than the best.",
    ),
]


def adaptive_options_of(
    hours: float | None, question: Path | None, regret: float
) -> AdaptiveOptions | None:
    """What the options ask for; None = every run of the plan.

    Raises:
        InputError: One of the two that belong together is missing.
    """
    if hours is None and question is None:
        return None
    if hours is None or question is None or hours <= 0:
        raise InputError(
            "--adaptive HOURS and --workload FILE belong together: the hours that may be spent, "
            "and the question that decides what is measured",
            field="adaptive",
        )

    return adaptive_options(question, hours, regret)[0]


def show_adaptive(opened: OpenedDrive, options: AdaptiveOptions) -> None:
    """Say what the question makes of the plan.

    Raises:
        InputError: The plan measures nothing of the question, or the hours are spent before the
            first run.
    """
    question = parse_workload(options.question)
    candidates = candidates_of(opened.expansion.runs, question)
    PlanAdvisor(opened.plan, candidates, question)  # refuses what cannot be judged, before any run
    left = options.hours * 3600.0 - opened.cost.preparation_seconds
    runs = int(left / run_seconds(opened.plan, candidates[0]))
    if runs < 1:
        raise InputError(
            f"--adaptive {options.hours:g}: preparing the drive alone takes about "
            f"{opened.cost.preparation_seconds / 3600:.1f} hours; give it more",
            field="adaptive",
        )
    table = console.new_table(["adaptive", question.name])
    table.add_row("candidates", f"{len(candidates)} points of the plan")
    table.add_row("runs", f"about {min(runs, len(opened.expansion.runs))} of those above")
    table.add_row("time", f"at most {options.hours:g} h, all included")
    console.emit_table(table)


def with_hours(options: CampaignOptions, hours: float | None) -> CampaignOptions:
    """The options of a campaign that is resumed, with other hours where some are given.

    Raises:
        InputError: The campaign makes every run of its plan.
    """
    if hours is None:
        return options
    if options.adaptive is None:
        raise InputError(
            "--adaptive: this campaign was begun without it and makes every run of its plan; "
            "begin another one in a new folder",
            field="adaptive",
        )
    adaptive = options.adaptive.model_copy(update={"hours": hours})
    return options.model_copy(update={"adaptive": adaptive})


def conduct_of(options: CampaignOptions) -> Conduct:
    """How a campaign with these options is conducted."""
    if options.adaptive is None:
        return conduct

    return adaptive_conduct(options.adaptive)


report_app = typer.Typer(
    add_completion=False,
    help="What a finished campaign means in others' terms.",
    no_args_is_help=True,
)


@report_app.callback()
def _group() -> None:
    """Reports by name."""


@report_app.command()
def emerald(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the campaign.")],
    output: console.FormatOption = console.Format.TABLE,
    response_time: Annotated[
        float,
        typer.Option(
            "--response-time-ms-max", metavar="MS", help="Bound on the mean response time.", min=0.0
        ),
    ] = 20.0,
    with_doubtful: Annotated[
        bool,
        typer.Option("--with-doubtful", help="Take runs too that their campaign calls doubtful."),
    ] = False,
) -> None:
    """Power efficiency in the terms of SNIA Emerald: EP_RI, EP_RR, EP_RW, EP_SR, EP_SW."""
    report = make(CampaignFolder(out), response_time / 1e3, with_doubtful=with_doubtful)
    if output is console.Format.JSON:
        console.emit_json(report.document())
        return
    if output is console.Format.CSV:
        records = [
            {**asdict(metric), "notes": "; ".join(metric.notes)} for metric in report.metrics
        ]
        console.emit_records(records, output, {})
        return
    table = console.new_table(
        ["metric", "value", "95 % interval", "stable", "depth", "response", "power", "notes"],
        title=f"{report.drive}, plan {report.plan}",
    )
    for metric in report.metrics:
        table.add_row(*_cells(metric))
    console.emit_table(table, *report.notes)


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


app = typer.Typer(
    add_completion=False, help="Measure a drive: plan, run, resume, check.", no_args_is_help=True
)
app.command("command", context_settings=measure_command.SETTINGS)(measure_command.command)
app.command()(measure_host.host)
app.command()(characterise)
app.command()(questions)
app.add_typer(report_app, name="report")

PlanOption = Annotated[str, typer.Option(metavar="NAME|FILE.toml", help="A shipped plan or yours.")]


@app.command("plan")
def plan_(drive: DriveOption, plan: PlanOption, controller: ControllerOption = None) -> None:
    """Say what a plan would do: runs, hours, bytes written, share of the endurance."""
    loaded, _ = load_plan(plan)
    _show(open_drive(loaded, drive, controller))


@app.command()
def plans() -> None:
    """List the plans that ship."""
    table = console.new_table(["plan", "what it is for"])
    for name in shipped_plans():
        table.add_row(name, load_plan(name)[0].title)
    console.emit_table(table)


@app.command()
def run(
    drive: DriveOption,
    plan: PlanOption,
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder for the campaign.")],
    controller: ControllerOption = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    serial: SerialOption = None,
    overwrite: OverwriteOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every command and do nothing.")
    ] = False,
    adaptive: AdaptiveOption = None,
    workload: QuestionOption = None,
    regret: RegretOption = DEFAULT_REGRET,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Record the requests of the block layer beside the power."),
    ] = False,
) -> None:
    """Make every run of a plan on a drive, or with --adaptive those that answer a question."""
    loaded, text = load_plan(plan)
    asked = adaptive_options_of(adaptive, workload, regret)
    opened = open_drive(loaded, drive, controller)
    if dry_run:
        console.emit("\n".join(commands(opened, find_fio())) + "\n")
        return
    _show(opened)
    if asked is not None:
        show_adaptive(opened, asked)
    if loaded.writes and serial is None:
        serial = ask_serial(opened.drive, "this plan")
    node = controller or (opened.controller.node if opened.controller else None)
    options = CampaignOptions(
        drive=str(drive),
        controller=str(node) if node is not None else None,
        serial=opened.drive.serial,
        sensors=sensors_of(power, rapl_root),
        overwrite=overwrite or [],
        adaptive=asked,
        trace=trace,
    )
    _conduct(CampaignFolder(out), text, options, serial)


@app.command()
def resume(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the campaign.")],
    drive: Annotated[
        Path | None,
        typer.Option(
            metavar="/dev/X",
            help="Where the drive is now, if its node has changed.",
            readable=False,
        ),
    ] = None,
    controller: ControllerOption = None,
    power: PowerOption = None,
    rapl_root: RaplOption = None,
    adaptive: MoreHoursOption = None,
) -> None:
    """Go on with a campaign at the run that was interrupted; failed and doubtful runs are repeated.

    An adaptive one goes on with what it had chosen, for the hours that are left.
    """
    folder = CampaignFolder(out)
    options = folder.options()
    changed: dict[str, object] = {}
    if drive is not None:
        changed["drive"] = str(drive)
    if controller is not None:
        changed["controller"] = str(controller)
    if power or rapl_root:
        changed["sensors"] = sensors_of(power, rapl_root)
    options = with_hours(options.model_copy(update=changed), adaptive)
    _conduct(folder, folder.plan_text(), options, None, resume=True)


@app.command()
def check(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the campaign.")],
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Say which runs are good, doubtful or failed, which points are unstable, and what to do.

    Exit code 26: a run failed.
    """
    folder = CampaignFolder(out)
    folder.options()
    records = folder.records()
    listed = [*verdicts(records), *check_records(records, folder.state())]
    found = [asdict(one) | {"runs": _numbers(one.runs)} for one in listed]
    titles = {
        "runs": "runs",
        "verdict": "verdict",
        "code": "reason",
        "what": "what",
        "why": "why",
        "advice": "what to do",
    }
    console.emit_records(found, output, titles)
    failed = [one for one in records if one.status is Status.FAILED]
    if failed:
        raise RunsFailedError(
            f"{out}: {len(failed)} of {len(records)} runs failed; mend the cause, then `iojoule "
            f"measure resume {out}`"
        )


@app.command()
def restore() -> None:
    """Put back what a campaign that was killed left changed on drive and host."""
    said = restore_abandoned()
    for line in said or ["nothing was left changed"]:
        console.emit(f"{line}\n")


def _conduct(
    folder: object, text: str, options: object, serial: str | None, *, resume: bool = False
) -> None:
    assert isinstance(folder, CampaignFolder)
    assert isinstance(options, CampaignOptions)
    with CampaignProgress() as progress:
        summary = run_campaign(
            folder,
            text,
            options,
            typed_serial=serial,
            say=progress.say,
            observer=progress,
            resume=resume,
            conduct=conduct_of(options),
        )
    console.emit(f"{folder.path}: {summary.done} runs are done\n")
    for line in summary.lines:
        console.emit(f"{line}\n")
    if summary.explanation:
        console.emit(f"{summary.explanation}\n")


def _numbers(runs: Sequence[int]) -> str:
    """Numbers of runs, stretches of them as 3-9."""
    stretches: list[list[int]] = []
    for number in runs:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in stretches)


def _show(opened: OpenedDrive) -> None:
    price, drive = opened.cost, opened.drive
    table = console.new_table(["campaign", opened.plan.name])
    table.add_row("drive", f"{drive.device.path}: {drive.model}, serial {drive.serial}")
    table.add_row("runs", f"{price.runs} of {price.points} points")
    for reason, count in opened.expansion.impossible.items():
        table.add_row("left out", f"{count} x {reason}")
    table.add_row("time", f"about {_duration(price.seconds)}")
    if price.repeats_max:
        table.add_row(
            "repeats",
            f"at most {price.repeats_max} of runs that are doubtful or failed, up to "
            f"{_duration(price.repeats_seconds_max)} more (repeats_of_doubtful_max)",
        )
    if price.bytes_written_max:
        table.add_row(
            "written",
            f"at most {price.bytes_written_max / 1e9:,.1f} GB (at "
            f"{price.write_bytes_per_second / 1e6:,.0f} MB/s: {price.rate_source})",
        )
        share = price.endurance_share
        table.add_row(
            "endurance", "its rating is not known" if share is None else f"at most {share:.2%}"
        )
    else:
        table.add_row("written", "nothing: the plan only reads")
    console.emit_table(table)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
