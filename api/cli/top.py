"""`iojoule top`: a terminal's view of what drives draw, for whom, and what would save."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live

from iojoule.api.application.meter import LiveMeter, MeterOptions, assigned, kernel_name
from iojoule.api.application.meter_basis import sleep_saving_watts
from iojoule.api.cli import console
from iojoule.api.cli.meter import (
    CPU,
    AskOption,
    CgroupsOption,
    ControllersOption,
    DrivesOption,
    InstrumentsOption,
    IntervalOption,
    ProcOption,
    ProfilesOption,
    SysfsOption,
)
from iojoule.api.reports.quantities import quantity
from iojoule.measure.host.guard import signal_handler

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iojoule.meter.group_sums import GroupReading
    from iojoule.meter.readings import Reading

BAR = 12
"""Characters of the longest bar."""

WIDE = 100
"""Columns of a terminal from which on all is shown."""

ROWS_MAX = 12
"""Groups that are shown at the most."""


@dataclass
class _Rest:
    """For how long a drive was watched, and for how long of that it served nothing."""

    seconds: float = 0.0
    quiet: float = 0.0

    @property
    def share(self) -> float:
        return self.quiet / self.seconds if self.seconds else math.nan


def top(
    drive: DrivesOption = None,
    profile: ProfilesOption = None,
    power: InstrumentsOption = None,
    interval: IntervalOption = 2.0,
    processes: Annotated[
        bool, typer.Option("--processes", help="Who: processes instead of control groups.")
    ] = False,
    ask_drive: AskOption = False,
    controller: ControllersOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print one view after one interval and end.")
    ] = False,
    proc: ProcOption = Path("/proc"),
    sysfs: SysfsOption = Path("/sys"),
    cgroups: CgroupsOption = Path("/sys/fs/cgroup"),
) -> None:
    """Watch drives: watts, joules, who causes them, and what would save; Ctrl-C ends.

    `iojoule meter` gives the same as CSV and JSON.
    """
    options = MeterOptions(
        drives=tuple(kernel_name(name) for name in drive or ()),
        profiles=assigned(profile or (), "--profile"),
        instruments=assigned(power or (), "--power"),
        interval_seconds=interval,
        proc=proc,
        sysfs=sysfs,
        cgroups=cgroups,
        processes=processes,
        groups_optional=True,
        ask_drives=ask_drive,
        controllers=assigned(controller or (), "--controller"),
    )
    rests: defaultdict[str, _Rest] = defaultdict(_Rest)
    with signal_handler(console.note), LiveMeter(options) as live:
        if once:
            next(live.follow())
            _watch_rests(live, rests)
            console.emit_table(*_view(live, rests, console.width()))
            return
        with Live(screen=True, auto_refresh=False) as screen:
            try:
                for _ in live.follow():
                    _watch_rests(live, rests)
                    screen.update(Group(*_view(live, rests, screen.console.width)), refresh=True)
            except KeyboardInterrupt:
                pass


def _watch_rests(live: LiveMeter, rests: defaultdict[str, _Rest]) -> None:
    for reading in live.readings:
        rest = rests[reading.drive.key]
        rest.seconds += reading.seconds
        rest.quiet += 0.0 if reading.served else reading.seconds


def _view(live: LiveMeter, rests: defaultdict[str, _Rest], width: int) -> list[RenderableType]:
    parts: list[RenderableType] = [_headline(live.readings), "", _drives(live, rests, width)]
    if live.groups is not None:
        groups = [reading for reading in live.groups.readings() if reading.group != "idle"]
        parts += ["", _groups(groups, width)]
    return [*parts, *(f"note: {remark}" for remark in live.remarks())]


def _headline(readings: Sequence[Reading]) -> str:
    known = [reading for reading in readings if not math.isnan(reading.watts)]
    watts, low, high = (
        sum(getattr(reading, name) for reading in known)
        for name in ("watts", "watts_low", "watts_high")
    )
    joules = sum(reading.joules for reading in readings)
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    return (
        f"{clock}  {len(readings)} drives  {quantity('watts', watts, low, high)}  "
        f"{quantity('joules', joules)} so far"
    )


def _drives(live: LiveMeter, rests: defaultdict[str, _Rest], width: int) -> Table:
    wide = width >= WIDE
    of_cpu = wide and live.cpu is not None
    headings = ["drive", *(["model"] if wide else []), "power", "", "energy"]
    headings += [*([CPU] if of_cpu else []), *(["rests on"] if wide else []), "would save"]
    table = console.new_table(headings)
    most = max((reading.watts for reading in live.readings if reading.watts > 0), default=1.0)
    for reading in sorted(live.readings, key=lambda one: -one.joules):
        drive = reading.drive
        known, cpu = not math.isnan(reading.watts), live.cpu_of(reading)
        bounds = (reading.watts, reading.watts_low, reading.watts_high)
        table.add_row(
            drive.name,
            *([drive.model or reading.basis.profile.model_name] if wide else []),
            quantity("watts", *(bounds if wide else bounds[:1])) if known else "unknown",
            "█" * round(BAR * reading.watts / most) if known else ", ".join(reading.reasons),
            quantity("joules", reading.joules),
            *([quantity("watts", cpu.watts) if cpu else ""] if of_cpu else []),
            *(
                [reading.basis.source + (", corrected" if reading.corrected else "")]
                if wide
                else []
            ),
            _saving(live, reading, rests[drive.key].share),
        )
    return table


def _saving(live: LiveMeter, reading: Reading, rest_share: float) -> str:
    saved = sleep_saving_watts(reading.basis, reading.drive, live.options.sysfs)
    if saved is None or math.isnan(rest_share) or saved * rest_share < 1e-3:
        return ""
    return f"{quantity('watts', saved * rest_share)} by sleeping: iojoule idle"


def _groups(readings: list[GroupReading], width: int) -> Table:
    by_group: dict[str, list[GroupReading]] = {
        name: list(rows)
        for name, rows in groupby(
            sorted(readings, key=lambda one: one.group), key=lambda one: one.group
        )
    }
    sums = sorted(
        (
            (sum(row.watts for row in rows), sum(row.joules for row in rows), name, rows)
            for name, rows in by_group.items()
        ),
        key=lambda one: (-one[0], -one[1]),
    )
    whole = sum(watts for watts, *_ in sums) or 1.0
    table = console.new_table(["who", "power", "share", "energy", "drives"])
    for watts, joules, name, rows in sums[:ROWS_MAX]:
        if joules > 0:
            table.add_row(
                name if len(name) <= width // 2 else "…" + name[-(width // 2) :],
                quantity("watts", watts),
                f"{100 * watts / whole:.0f} %",
                quantity("joules", joules),
                ", ".join(row.drive for row in rows if row.joules > 0),
            )
    return table
