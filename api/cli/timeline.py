"""`iojoule timeline`: throughput, watts and the drive's state along writing and idling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.application.predictors import Predictors
from iojoule.api.application.timeline import STEP_COLUMNS, parse_phase, time_line
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    ProfileOption,
    TemperatureOption,
    assignments,
    chosen_profile,
    stated_conditions,
)
from iojoule.api.reports.quantities import quantity

if TYPE_CHECKING:
    from iojoule.api.application.timeline import TimeLine

_COMMAND_LINE = "--set"


def timeline(
    phases: Annotated[
        list[str],
        typer.Argument(
            metavar="PHASE...",
            help="write=SECONDS, write=SECONDS@BYTES_PER_SECOND (no faster) or idle=SECONDS, in "
            "order.",
        ),
    ],
    device: DeviceOption = None,
    profile: ProfileOption = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="How it writes (pattern, request_bytes, queue_depth, power_state ...) and begins "
            "(fill_fraction, host_bytes_written_since_purge); again for each.",
        ),
    ] = None,
    step: Annotated[
        float, typer.Option(metavar="SECONDS", help="Length of a step of the time line.")
    ] = 1.0,
    firmware: FirmwareOption = None,
    pcie_generation: GenerationOption = None,
    temperature: TemperatureOption = None,
    conditions: ConditionsOption = None,
    for_: ForOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Follow a drive over time: write bursts, a full cache, collecting, idle time.

    The table takes together the seconds in which the drive does the same; CSV has one row a step,
    JSON both and the totals with their 90 % intervals.
    """
    chosen = chosen_profile(device, profile)

    asked = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    found = time_line(
        Predictors(chosen, asked),
        assignments(set_ or []),
        [parse_phase(one) for one in phases],
        step_seconds=step,
        place=_COMMAND_LINE,
    )
    if found.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in found.defaults_used.items())
        console.note(f"defaults of profile {found.device}, where left out: {said}")
    if output is Format.JSON:
        console.emit_json(found.document())
    elif output is Format.CSV:
        console.emit_csv(STEP_COLUMNS, found.steps())
    else:
        _emit_table(found)


def _emit_table(found: TimeLine) -> None:
    table = console.new_table(["from", "to", "the drive", "throughput", "drive power", "in cache"])
    for one in found.stretches():
        table.add_row(
            quantity("seconds", one.begin_seconds),
            quantity("seconds", one.end_seconds),
            one.doing,
            quantity("throughput_bytes_per_second", one.throughput_bytes_per_second),
            quantity("device_power_watts", one.device_power_watts),
            quantity("bytes", one.cache_bytes),
        )
    console.emit_table(table, "", *_totals(found))


_TOTALS = (
    ("bytes_written", "bytes", "written"),
    ("device_energy_joules", "joules", "energy of the drive"),
    ("cliff_bytes", "bytes", "in the cache when the rate has fallen"),
    ("collecting_pauses", "times", "begins to collect"),
    ("collecting_pause_seconds", "seconds", "length of each"),
    ("second_collecting_start_seconds", "seconds", "the second begins after"),
    ("background_seconds", "seconds", "work left at the end"),
    ("background_energy_joules", "joules", "energy of that work"),
)
"""Totals of the table: name, unit and how it is said."""


def _totals(found: TimeLine) -> Iterator[str]:
    totals = found.totals()
    for name, unit, said in _TOTALS:
        one = totals[name]
        if one is None:
            continue
        if unit == "times":
            yield f"{said}: {one.value:g} times [{one.low:g}, {one.high:g}]"
        else:
            yield f"{said}: {quantity(unit, one.value, one.low, one.high)}"
    yield "In brackets: 90 % interval."
