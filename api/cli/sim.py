"""`iojoule sim`: input files from one form to the other, checks against MQSim, presets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from iojoule.api.application.simulate import drive_with, measured, plan_runs
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import DaskOption, resources
from iojoule.api.cli.progress import run_progress
from iojoule.api.cli.simulate import ModeChoice, say
from iojoule.api.exit_codes import DIFFERENT
from iojoule.datasets.errors import InputError
from iojoule.sim.against import median_errors, parse_groups, simulate_measurements
from iojoule.sim.compare import Comparison, Quantity
from iojoule.sim.compare import compare as compared
from iojoule.sim.engines import Limits, RunOptions
from iojoule.sim.findings import Finding
from iojoule.sim.formats.files import convert as converted
from iojoule.sim.formats.files import read_any, read_drive, write_file
from iojoule.sim.presets import drive_path, preset_names, preset_path
from iojoule.sim.result import Mode
from iojoule.sim.verify import read_cases, verify_all
from iojoule.sim.workers import cores, open_pool

if TYPE_CHECKING:
    from iojoule.sim.verify import Verdict


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Files, references and presets of the simulator.",
)

_SHOWN_DIFFERENCES = 4


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="A drive or a workload.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="The suffix says the form: .xml or .toml.")
    ],
    ssd: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|PRESET",
            help="The drive of a workload, for flows that mean all of its channels, chips, dies "
            "or planes.",
        ),
    ] = None,
) -> None:
    """Turn a drive or a workload from MQSim's XML into TOML with units, or back."""
    read = read_any(source)
    told: list[Finding] = list(read.findings)
    device = None if ssd is None else read_drive(drive_path(ssd)).device
    text = converted(read, target, told.append, device)
    say(told)
    write_file(target, text)
    console.note(f"{target}: written")


@app.command()
def verify(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Holds golden.csv and the folder cases.")
    ],
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="PREFIX", help="Only cases whose name or group begins so."),
    ] = None,
    mode: Annotated[
        ModeChoice,
        typer.Option(help="compat: golden.csv, equal; physical: golden_gcfix.csv, within 10 %."),
    ] = ModeChoice.COMPAT,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Default: one a core.")
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compare the simulator with MQSim's reference results; leaves with 1 where they differ."""
    kind = Mode(mode.value)
    cases = [
        each
        for each in read_cases(directory, kind)
        if not case or any(word.startswith(p) for p in case for word in (each.name, each.group))
    ]
    if not cases:
        raise InputError(f"{directory}: no case begins with {', '.join(case or [])}")
    with open_pool(jobs or cores()) as pool, run_progress("comparing", len(cases)) as watch:
        verdicts = verify_all(cases, kind, pool=pool, watch=watch)
    console.emit_records([_record(verdict) for verdict in verdicts], output, VERDICT_COLUMNS)
    equal = sum(verdict.equal for verdict in verdicts)
    console.note(f"{equal} of {len(verdicts)} cases agree")
    if equal < len(verdicts):
        raise typer.Exit(DIFFERENT)


VERDICT_COLUMNS = {
    "case": "case",
    "group": "group",
    "verdict": "verdict",
    "compared": "values",
    "differing": "differ",
    "said": "which (reference -> iojoule)",
    "speedup": "speed-up",
}


def _record(verdict: Verdict) -> dict[str, object]:
    said = [
        f"{each.column} of flow {each.flow}: {each.expected:g} -> "
        + ("unknown" if each.got is None else f"{each.got:g}")
        for each in verdict.differences[:_SHOWN_DIFFERENCES]
    ]
    more = len(verdict.differences) - len(said)
    return {
        "case": verdict.case.name,
        "group": verdict.case.group,
        "verdict": "equal" if verdict.equal else "failed" if verdict.failure else "different",
        "compared": verdict.compared,
        "differing": len(verdict.differences),
        "said": verdict.failure or "; ".join(said) + (f"; {more} more" if more else ""),
        "speedup": None if verdict.speedup is None else round(verdict.speedup, 1),
    }


@app.command()
def compare(
    ssd: Annotated[
        str, typer.Option("--ssd", metavar="FILE|PRESET", help="MQSim's ssdconfig.xml or a .toml.")
    ],
    workload: Annotated[
        Path, typer.Option("--workload", metavar="FILE", help="MQSim's workload.xml or a .toml.")
    ],
    max_wall: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Duration of one run at most; 0: any.")
    ] = 0.0,
    output: FormatOption = Format.TABLE,
) -> None:
    """Run your own MQSim (IOJOULE_MQSIM) and iojoule on the same input, and show both side by side.

    Leaves with 1 where they differ by more than MQSim's printed resolution.
    """
    if output is Format.CSV:
        raise typer.BadParameter("-o table or json")
    plan = plan_runs([ssd], [workload], Mode.COMPAT, [])
    say(plan.findings)
    comparisons = [
        compared(
            job.device,
            job.scenario,
            RunOptions(limits=Limits(wall_seconds=max_wall), scenario_number=job.number),
        )
        for job in plan.jobs
    ]
    if output is Format.JSON:
        console.emit_json({"scenarios": [each.model_dump(mode="json") for each in comparisons]})
    else:
        emit_comparisons(comparisons)
    if not all(comparison.equal for comparison in comparisons):
        raise typer.Exit(DIFFERENT)


@app.command()
def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Print this preset's file.")
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List the drives that `--ssd` takes by name, or print one of them with its sources."""
    if name is not None:
        console.emit(preset_path(name).read_text(encoding="utf-8"))
        return
    records = []
    for each in preset_names():
        drive = read_drive(preset_path(each))
        device = drive.device
        records.append(
            {
                "name": each,
                "title": drive.drive.title,
                "mode": device.mode.value,
                "flash_technology": device.flash_technology.value,
                "flash_bytes": device.capacity_bytes,
                "channels": device.channels,
                "dies": device.channels * device.chips_per_channel * device.dies_per_chip,
                "power_states": len(device.physical.power.states),
            }
        )
    console.emit_records(records, output, PRESET_COLUMNS)


PRESET_COLUMNS = {
    "name": "name",
    "title": "drive",
    "mode": "mode",
    "flash_technology": "cells",
    "flash_bytes": "flash (bytes)",
    "channels": "channels",
    "dies": "dies",
    "power_states": "power states",
}


@app.command()
def against(
    measurements: Annotated[
        Path, typer.Argument(metavar="DATASET", help="A dataset, or with --columns a CSV file.")
    ],
    ssd: Annotated[str, typer.Option("--ssd", metavar="FILE|PRESET", help="The drive.")],
    columns: Annotated[
        str | None,
        typer.Option(metavar="MAP", help="Column map of a CSV file, or the name of a shipped one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change the drive. May be repeated."),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="FIELD,...", help="Group errors by these; '' for one group.")
    ] = "request_bytes,queue_depth",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Default: one a core.")
    ] = None,
    dask: DaskOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Simulate what was measured, and say how far throughput, latency and watts are off."""
    groups = parse_groups(by)
    rows = measured(measurements, columns)
    device = drive_with(ssd, settings or [])
    place = resources(jobs, dask, None)
    with place.pool(cores()) as pool, run_progress("simulating", len(rows)) as watch:
        found = simulate_measurements(device, rows, pool=pool, watch=watch)
    titles = {name: name.replace("_", " ") for name in groups} | ERROR_COLUMNS
    console.emit_records(median_errors(found, groups), output, titles)


ERROR_COLUMNS = {
    "quantity": "quantity",
    "rows": "rows",
    "median_error_percent": "median error (%)",
    "median_absolute_error_percent": "median |error| (%)",
    "p90_absolute_error_percent": "90th percentile (%)",
}


TITLES = ("quantity", "embedded", "MQSim", "difference", "relative", "equal")


def emit_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Write a table for each flow and one for the drive, scenario by scenario."""
    for number, comparison in enumerate(comparisons, start=1):
        scenario = f"Scenario {number}: " if len(comparisons) > 1 else ""
        for flow in comparison.flows:
            title = scenario + flow.name.removeprefix("Host.IO_Flow.")
            console.emit_table(_table(title, flow.quantities), "")
        console.emit_table(
            _table(scenario + "Drive", comparison.device), "", *_summary(comparison), ""
        )
        for warning in comparison.warnings:
            console.warn(f"{scenario}{warning}")
    console.emit_table(
        "equal: no further apart than the resolution in which MQSim prints the value."
    )


def _table(title: str, quantities: Iterable[Quantity]) -> Table:
    table = console.new_table(TITLES, title=title)
    for quantity in quantities:
        relative = quantity.relative_difference
        table.add_row(
            quantity.name,
            _number(quantity.embedded),
            _number(quantity.mqsim),
            _number(quantity.difference),
            "-" if relative is None else f"{100 * relative:+.4f} %",
            "yes" if quantity.equal else "NO",
        )
    return table


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.3f}" if abs(value) >= 1 else f"{value:.6f}"


def _summary(comparison: Comparison) -> Iterable[str]:
    differing = sum(not quantity.equal for quantity in comparison.quantities())
    total = sum(1 for _ in comparison.quantities())
    yield f"{total - differing} of {total} quantities are equal."
    speed, memory = comparison.speed_ratio, comparison.memory_ratio
    yield (
        f"User time: embedded {comparison.embedded_user_seconds:.3f} s, MQSim "
        f"{comparison.mqsim_user_seconds:.3f} s"
        + (f": {speed:.1f} times faster." if speed is not None else ".")
    )
    yield (
        f"Memory: embedded {comparison.embedded_peak_bytes / 1e6:.1f} MB, MQSim "
        f"{comparison.mqsim_peak_bytes / 1e6:.1f} MB"
        + (f": {memory:.1f} times less." if memory is not None else ".")
    )
