"""`iojoule meter`: live watts and joules of this host's drives."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.application.meter import (
    COLUMNS,
    LiveMeter,
    MeterOptions,
    assigned,
    group_record,
    kernel_name,
    record,
)
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.reports.quantities import quantity
from iojoule.measure.host.guard import signal_handler
from iojoule.meter.attribution import IdlePolicy
from iojoule.meter.drives import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from iojoule.meter.group_sums import GroupReading

DrivesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drive", metavar="DRIVE", help="Only this one; again for each. All if left out."
    ),
]
ProfilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="DRIVE=PROFILE",
        help="File that `iojoule fit` wrote, or a device model, that holds for a drive.",
    ),
]
InstrumentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--power",
        metavar="DRIVE=SENSOR",
        help="An instrument that measures a drive: it counts instead of the estimate, and corrects "
        "what is estimated after it is gone.",
    ),
]
IntervalOption = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="Between two looks at the counters.")
]
AskOption = Annotated[
    bool,
    typer.Option(
        "--ask-drive",
        help="Ask NVMe drives for power state and APST table: four commands, which may wake them, "
        "and the state again while they serve. Root.",
    ),
]
ControllersOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DRIVE=NODE", help="With --ask-drive: the controller, where it is not found."
    ),
]
ProcOption = Annotated[Path, typer.Option(metavar="DIR", help="Where procfs is mounted.")]
SysfsOption = Annotated[Path, typer.Option(metavar="DIR", help="Where sysfs is mounted.")]
CgroupsOption = Annotated[
    Path, typer.Option(metavar="DIR", help="Where control groups are mounted.")
]


def meter(
    drive: DrivesOption = None,
    profile: ProfilesOption = None,
    power: InstrumentsOption = None,
    interval: IntervalOption = 1.0,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.1, help="Stop after so long; until Ctrl-C if left out."),
    ] = None,
    proc: ProcOption = Path("/proc"),
    sysfs: SysfsOption = Path("/sys"),
    ask_drive: AskOption = False,
    controller: ControllersOption = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Whose joules: by control group, from their counters.")
    ] = False,
    processes: Annotated[
        bool,
        typer.Option(
            "--processes", help="Whose joules: by process instead, an estimate from /proc/PID/io."
        ),
    ] = False,
    idle_by_use: Annotated[
        bool,
        typer.Option(
            "--idle-by-use",
            help="With --groups: what a drive draws at rest is paid in proportion to all else, "
            "instead of being a series of its own.",
        ),
    ] = False,
    cgroups: CgroupsOption = Path("/sys/fs/cgroup"),
    output: FormatOption = Format.TABLE,
) -> None:
    """Estimate what each drive of this host draws, live, from block counters.

    Needs no power meter and, without --ask-drive, sends no command to a drive. The table has the
    joules since the beginning; CSV a row, and JSON an object a line, for each drive and interval,
    and with --groups one for each group of each drive.
    """
    options = MeterOptions(
        drives=tuple(kernel_name(name) for name in drive or ()),
        profiles=assigned(profile or (), "--profile"),
        instruments=assigned(power or (), "--power"),
        interval_seconds=interval,
        proc=proc,
        sysfs=sysfs,
        cgroups=cgroups if groups else None,
        processes=processes,
        ask_drives=ask_drive,
        controllers=assigned(controller or (), "--controller"),
        idle=IdlePolicy.BY_USE if idle_by_use else IdlePolicy.SEPARATE,
    )
    with signal_handler(console.note), LiveMeter(options) as live:
        if not live.readings:
            console.note(
                "no drive is metered: "
                + ("; ".join(sorted(_left_out(live.left_out))) or "this host has no block device")
                + ". Name one with --profile DRIVE=PROFILE to meter it all the same"
            )
        _follow(live, seconds, output)


def _left_out(devices: dict[str, str]) -> set[str]:
    return {
        f"{', '.join(name for name, other in devices.items() if other == code)}: {LEFT_OUT[code]}"
        for code in devices.values()
    }


def _follow(live: LiveMeter, seconds: float | None, output: Format) -> None:
    if output is Format.CSV:
        console.emit_csv(COLUMNS, ())
    if output is Format.TABLE and sys.stdout.isatty():
        _watch(live, seconds)
        return
    try:
        for readings in live.follow(seconds):
            if output is Format.TABLE:
                continue
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            records = [record(reading, live.cpu_of(reading), now) for reading in readings]
            if live.groups is not None:
                records += [group_record(reading, now) for reading in live.groups.readings()]
            if output is Format.JSON:
                console.emit("".join(json.dumps(one, allow_nan=False) + "\n" for one in records))
            else:
                console.emit_csv_rows(
                    [
                        [
                            " ".join(cell) if isinstance(cell, list) else cell
                            for cell in row.values()
                        ]
                        for row in records
                    ]
                )
    except KeyboardInterrupt:
        pass
    if output is Format.TABLE:
        for table in _tables(live):
            console.emit_table(table)
        for remark in live.remarks():
            console.note(remark)


def _watch(live: LiveMeter, seconds: float | None) -> None:
    from rich.console import Group
    from rich.live import Live

    with Live(Group(*_tables(live)), auto_refresh=False) as view:
        try:
            for _ in live.follow(seconds):
                view.update(Group(*_tables(live)), refresh=True)
        except KeyboardInterrupt:
            pass


def _tables(live: LiveMeter) -> list[Table]:
    tables = [table_of(live)]
    if live.groups is not None:
        tables.append(table_of_groups(live.groups.readings(), of_cpu=live.cpu is not None))
    return tables


CPU = "CPU for it"
"""Heading of what the CPU draws for commands."""


def table_of_groups(
    readings: Iterable[GroupReading], *, of_cpu: bool = False, most: int = 20
) -> Table:
    """Those with the most joules on each drive; what is left out is one row.

    Args:
        readings: Of all groups.
        of_cpu: Whether what the CPU draws is known.
        most: Rows for each drive.
    """

    def row_of(drive: str, name: str, rows: list[GroupReading]) -> None:
        table.add_row(
            drive,
            name,
            quantity("watts", sum(row.watts for row in rows)),
            quantity("joules", sum(row.joules for row in rows)),
            *([quantity("joules", sum(row.cpu_joules for row in rows))] if of_cpu else []),
            rows[0].quality,
        )

    more = [CPU] if of_cpu else []
    table = console.new_table(["drive", "group", "power", "energy", *more, "from"])
    ordered = sorted(readings, key=lambda reading: (reading.drive, -reading.joules))
    for drive, own in groupby(ordered, key=lambda reading: reading.drive):
        rows = list(own)
        shown = [row for row in rows[:most] if row.joules > 0]
        for row in shown:
            row_of(drive, row.group, [row])
        others = [row for row in rows[len(shown) :] if row.joules > 0]
        if others:
            row_of(drive, f"{len(others)} others", others)
    return table


def table_of(live: LiveMeter) -> Table:
    """Watts now and joules since the beginning, with their 90 % intervals."""
    of_cpu = [CPU] if live.cpu is not None else []
    table = console.new_table(["drive", "model", "power", "energy", *of_cpu, "rests on", "note"])
    for reading in live.readings:
        told = []
        if live.cpu is not None:
            cpu = live.cpu_of(reading)
            known = cpu and quantity("joules", cpu.joules, cpu.joules_low, cpu.joules_high)
            told.append(known or "")
        table.add_row(
            reading.drive.name,
            reading.drive.model or reading.basis.profile.model_name,
            quantity("watts", reading.watts, reading.watts_low, reading.watts_high),
            quantity("joules", reading.joules, reading.joules_low, reading.joules_high),
            *told,
            reading.basis.source + (", corrected" if reading.corrected else ""),
            ", ".join(reading.reasons),
        )
    return table
