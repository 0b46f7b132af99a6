"""`iojoule lab`: a virtual testbed whose truth is known, behind the real interfaces."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InputError
from iojoule.measure.campaign.folder import CampaignFolder
from iojoule.measure.lab import drives, life
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.comparison import QUANTITIES, median_errors
from iojoule.measure.lab.comparison import compare as compare_runs
from iojoule.measure.lab.paths import default_folder

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="A virtual testbed: a drive in slow motion behind the real interfaces.",
)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="DIR",
        envvar="IOJOULE_LAB",
        help="The lab's folder. Default: iojoule-lab below XDG_RUNTIME_DIR, else in /tmp.",
    ),
]


def _folder(given: Path | None) -> Path:
    return given or default_folder()


@app.command()
def up(
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="The lab's own drive, a simulator's preset, a file."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|ID",
            help="Instead of a preset: behave as this fitted profile says, in slow motion.",
        ),
    ] = None,
    slow_down: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES",
            help="With --profile: so many times slower. Default: the fastest request takes 4 ms.",
        ),
    ] = None,
    directory: FolderOption = None,
    backend: Annotated[
        str | None, typer.Option(help="fuse (a real block device, root) or nbdkit.")
    ] = None,
    shell: Annotated[
        bool, typer.Option("--shell", help='Print `export` lines: eval "$(iojoule lab up --shell)"')
    ] = False,
) -> None:
    """Begin a lab and print where everything is."""
    if profile is not None and preset is not None:
        raise typer.BadParameter("is another drive than that of --profile", param_hint="--preset")
    if profile is None and slow_down is not None:
        raise typer.BadParameter("needs --profile", param_hint="--slow-down")
    lab = life.up(
        _folder(directory), preset or drives.DEFAULT, backend, profile=profile, slow_down=slow_down
    )
    if (played := lab.state.get("rehearsal")) is not None:
        console.note(
            f"a rehearsal of {played['device']}: {played['slow_down']:g} times slower than its "
            "profile, watts as they are; lab.json says what stands in for what is not known"
        )
    if shell:
        exports = lab.environment() | {
            "IOJOULE_LAB_DRIVE": lab.state["drive"],
            "IOJOULE_LAB_POWERSENSOR3": lab.state["powersensor3"],
            "IOJOULE_LAB_RAPL": lab.state["rapl_root"],
        }
        for name, value in exports.items():
            console.emit(f"export {name}={shlex.quote(value)}\n")
        return
    console.emit_json(lab.state)


@app.command()
def down(directory: FolderOption = None) -> None:
    """End the lab, also one whose processes were killed, and leave nothing behind."""
    folder = _folder(directory)
    found = life.down(folder)
    console.note(f"{folder}: {'the lab is down' if found else 'there was no lab'}")


@app.command()
def status(directory: FolderOption = None) -> None:
    """Tell what runs and what the drive does now, as JSON."""
    console.emit_json(LabClient(_folder(directory)).status())


@app.command()
def record(
    since: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="From then on (CLOCK_MONOTONIC). Default: the start."),
    ] = None,
    until: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="To then (CLOCK_MONOTONIC).")
    ] = None,
    last: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Of the last so many seconds.")
    ] = None,
    directory: FolderOption = None,
) -> None:
    """Tell what really happened, completions, latencies and joules, as JSON."""
    lab = LabClient(_folder(directory))
    end_ns = time.monotonic_ns() if until is None else round(until * 1e9)
    begin_ns = int(lab.state["began_ns"]) if since is None else round(since * 1e9)
    if last is not None:
        begin_ns = end_ns - round(last * 1e9)
    console.emit_json(lab.record(begin_ns, end_ns))


@app.command()
def compare(
    campaign: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a campaign.")],
    directory: FolderOption = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Put what a campaign measured beside what really happened in the lab meanwhile."""
    runs = compare_runs(CampaignFolder(campaign).records(), LabClient(_folder(directory)))
    medians = median_errors(runs)
    if output is console.Format.JSON:
        listed = [{"number": one.number, "run": one.name, **one.errors} for one in runs]
        console.emit_json({"median_errors": medians, "runs": listed})
        return
    rows = [("median distance", {name: f"{value:.2%}" for name, value in medians.items()})]
    shown = {name: name for name in QUANTITIES if name in medians}
    records = [
        {"run": one.name, **{name: _percent(one.errors.get(name)) for name in shown}}
        for one in runs
    ] + [{"run": name, **{one: cells.get(one) for one in shown}} for name, cells in rows]
    console.emit_records(records, output, {"run": "measured over true", **shown})


def _percent(error: float | None) -> str | None:
    return None if error is None else f"{error:+.2%}"


@app.command()
def judge(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE.json", help="Fitted on the lab.")],
    recommendation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `recommend -o json` answered with it."),
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The workload of --recommendation.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The virtual drive, as for `lab up`.")
    ] = None,
    output: console.FormatOption = console.Format.TABLE,
) -> None:
    """Compare predictions of a profile, and a recommendation, with the drive's true physics."""
    from dataclasses import asdict

    from iojoule.api.acting.answer_file import read_answer
    from iojoule.api.application import lab_judgement
    from iojoule.datasets.profile import read_profile
    from iojoule.measure.lab import drives
    from iojoule.recommender.request import load_workload

    if (recommendation is None) != (workload is None):
        raise typer.BadParameter(
            "needs --workload, and that needs it", param_hint="--recommendation"
        )
    drive = preset or drives.DEFAULT
    judged = lab_judgement.judge_predictions(read_profile(profile), drive)
    chosen = None
    if recommendation is not None and workload is not None:
        chosen = lab_judgement.judge_recommendation(
            read_answer(recommendation).recommended.configuration, load_workload(workload), drive
        )
    if output is console.Format.JSON:
        best = None if chosen is None else {**asdict(chosen), "regret": chosen.regret}
        console.emit_json(
            {
                "summary": lab_judgement.summary(judged),
                "predictions": [asdict(item) for item in judged],
                "recommendation": best,
            }
        )
        return
    shown = {name: name for name in lab_judgement.QUANTITIES}
    records = [
        {
            "reads": f"{item.request_bytes} B, depth {item.queue_depth}, PS{item.power_state}",
            "evidence": item.evidence,
            **{
                name: f"{item.errors[name]:+.2%}{'' if item.inside[name] else ' (outside)'}"
                for name in shown
            },
        }
        for item in judged
    ]
    for measure, text in (
        ("median_error", "median distance"),
        ("greatest_error", "greatest distance"),
        ("inside", "inside the interval"),
    ):
        figures = {
            name: f"{values[measure]:.1%}" for name, values in lab_judgement.summary(judged).items()
        }
        records.append({"reads": text, "evidence": "", **figures})
    console.emit_records(
        records, output, {"reads": "predicted over true", "evidence": "evidence", **shown}
    )
    if chosen is not None:
        console.note(
            f"recommended {dict(chosen.recommended)}: {chosen.joules_per_gb:.4g} J/GB on the true "
            f"physics, {chosen.regret:+.1%} against the best, {dict(chosen.best)}; the SLA "
            f"{'holds' if chosen.keeps_sla else 'does not hold'}"
        )


@app.command()
def fault(
    part: Annotated[str, typer.Argument(help="disk, controller, powersensor3 or rapl.")],
    kind: Annotated[str, typer.Argument(help="What it does; none ends it.")],
    value: Annotated[
        float | None, typer.Argument(help="How many, how many seconds, or watts.")
    ] = None,
    directory: FolderOption = None,
) -> None:
    """Let a part fail.

    disk: eio N, stall SECONDS, vanish. controller: refuse, ignore, vanish, serial. powersensor3:
    disconnect, stall, silent, garbage N, only-garbage, drop N (of 100), gap SECONDS, clip SECONDS,
    drift WATTS. rapl: unreadable, missing.
    """
    LabClient(_folder(directory)).fault(part, kind, value)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...")],
    directory: FolderOption = None,
) -> None:
    """Run a command with the lab's environment, so that `nvme` finds the controller."""
    added = LabClient(_folder(directory)).environment()
    try:
        os.execvpe(command[0], command, {**os.environ, **added})
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be run ({error.strerror})") from error
