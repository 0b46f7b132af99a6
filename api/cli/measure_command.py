"""`iojoule measure command`: what any program costs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.exit_codes import INTERRUPTED
from iojoule.datasets.errors import InputError
from iojoule.measure.command.record import CommandResult, CommandRun, Interval
from iojoule.measure.command.request import CommandRequest, parse_metric
from iojoule.measure.command.session import measure_command

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
    if work is not None and rate is not None:
        raise InputError("--work and --rate exclude each other: work is a total or a rate")
    folder = out or Path(f"iojoule-command-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    result = measure_command(
        CommandRequest(
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


_SCOPES = {
    "device": "drive",
    "cpu": "CPU",
    "dram": "DRAM",
    "system": "whole system",
    "device_cpu": "drive + CPU",
}


def show(result: CommandResult, form: console.Format, folder: Path) -> None:
    """Print a result; what is to be doubted goes to standard error."""
    if form is console.Format.JSON:
        console.emit_json(result.model_dump(mode="json"))
    elif form is console.Format.CSV:
        records = [_record(run) for run in result.runs]
        header = list(dict.fromkeys(name for one in records for name in one))
        console.emit_csv(header, ([one.get(name) for name in header] for one in records))
    else:
        _table(result)
    for text in dict.fromkeys(result.notes):
        console.warn(text)
    for run in result.runs:
        for text in run.notes:
            console.warn(f"run {run.number}: {text}")
    energies = [one for name, one in result.summary.items() if name.endswith("_watts")]
    if any(one.calibration is None for one in energies):
        console.note(
            "ranges leave out what the instruments' calibration may be off by where nobody said it "
            "(offset= and gain= of a sensor)"
        )
    console.note(f"everything is in {folder}")


def _table(result: CommandResult) -> None:
    count = len(result.runs)
    whole = sum(run.whole for run in result.runs)
    title = f"{' '.join(result.command)[:70]}: {whole} of {count} runs count"
    table = console.new_table(["", "value", "90 % range"], title=title)
    unit = result.unit or "unit"
    found = result.summary
    if "seconds" in found:
        _row(table, "run time", found["seconds"], "s")
    if "work" in found:
        _row(table, "work", found["work"], unit)
        _row(table, "rate", found["work_per_second"], f"{unit}/s")
    _energy(table, found, unit)
    for run in result.runs[-1:]:
        for label, text in _io(run):
            table.add_row(label, text, "")
    for metric, texts in _other_metrics(result).items():
        table.add_row(metric, texts, "")
    console.emit_table(table)


def _energy(table: Any, found: Mapping[str, Interval], unit: str) -> None:
    for name, watts in found.items():
        if name.endswith("_watts"):
            _row(table, f"{_SCOPES[name.removesuffix('_watts')]}, mean power", watts, "W")
    for scope, said in _SCOPES.items():
        for suffix, what in (("", ""), ("_above_idle", " above idle")):
            one = found.get(f"{scope}_joules{suffix}")
            if one is not None:
                _row(table, f"{said}, energy{what}", one, "J")
    for scope, said in _SCOPES.items():
        one = found.get(f"{scope}_joules_per_unit")
        if one is not None:
            _row(table, f"{said}, energy per {unit}", one, "J")


def _io(run: CommandRun) -> list[tuple[str, str]]:
    which = f" (run {run.number})" if run.number > 1 else ""
    rows = []
    if run.shares:
        parts = ", ".join(f"{_SCOPES[scope]} {share:.1%}" for scope, share in run.shares.items())
        rows.append((f"shares of the energy{which}", parts))
    seen = run.drive_io
    if seen is not None:
        flushes = "unknown" if seen.flushes is None else f"{seen.flushes:,}"
        commands = f"at least {seen.device_commands_low:,}"
        if seen.device_commands_high is not None:
            commands += f", at most {seen.device_commands_high:,}"
        merged = f"{seen.reads_merged:,} reads, {seen.writes_merged:,} writes"
        rows += [
            (f"drive, reads{which}", f"{seen.reads:,} ({seen.read_bytes / 1e6:,.1f} MB)"),
            (f"drive, writes{which}", f"{seen.writes:,} ({seen.write_bytes / 1e6:,.1f} MB)"),
            (f"drive, flushes{which}", flushes),
            (f"drive, commands{which}", commands),
            (f"requests merged{which}", merged),
        ]
    return rows


def _other_metrics(result: CommandResult) -> dict[str, str]:
    names = dict.fromkeys(name for run in result.runs for name in run.metrics)
    return {
        name: ", ".join(
            "not found" if (value := run.metrics.get(name)) is None else f"{value:,.6g}"
            for run in result.runs
        )
        for name in names
    }


def _row(table: Any, label: str, one: Interval, unit: str) -> None:
    span = "" if one.low is None else f"{one.low:,.4g} to {one.high:,.4g} {unit}"
    table.add_row(label, f"{one.value:,.5g} {unit}", span)


def _record(run: CommandRun) -> dict[str, Any]:
    """One run as a flat record."""
    flat: dict[str, Any] = {
        "number": run.number,
        "started_utc": run.started_utc.isoformat(),
        "seconds": run.seconds,
        "exit_status": run.exit_status,
        "killed_by": run.killed_by,
        "interrupted": run.interrupted,
        "work": run.work,
    }
    flat |= {f"metric_{name}": value for name, value in run.metrics.items()}
    for scope, one in run.power.items():
        flat |= {
            f"{scope}_power_watts": one.mean_watts,
            f"{scope}_energy_joules": one.energy_joules,
            f"{scope}_above_idle_joules": one.above_idle_joules,
        }
    for scope, per in run.joules_per_unit.items():
        flat |= {
            f"{scope}_joules_per_unit": per.value,
            f"{scope}_joules_per_unit_low": per.low,
            f"{scope}_joules_per_unit_high": per.high,
        }
    flat |= {f"{scope}_share": share for scope, share in run.shares.items()}
    if run.drive_io is not None:
        flat |= run.drive_io.model_dump()
    flat |= {
        "unwritten_bytes": run.unwritten_bytes,
        "program_cpu_seconds": run.program_cpu_seconds,
        "host_cpu_seconds": run.host_cpu_seconds,
    }
    return flat
