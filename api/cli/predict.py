"""`iojoule predict`: throughput, latency and power at configurations that nobody measured."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from iojoule.api.application.fields import FieldTable
from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.options import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    ForOption,
    GenerationOption,
    HostOption,
    ProfileOption,
    ServerOption,
    TemperatureOption,
    assignments,
    chosen_backend,
    stated_conditions,
)
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import read_input

if TYPE_CHECKING:
    from iojoule.api.application.backend import FlatPredictions

_WHOLE_FROM = 1e5
"""Numbers from here on are written without decimals, smaller ones with six digits."""

_COMMAND_LINE = "--set"


def predict(
    device: DeviceOption = None,
    profile: ProfileOption = None,
    host: HostOption = None,
    configurations: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="One question a row; - reads standard input."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="One question without a file."),
    ] = None,
    gaps: Annotated[
        bool,
        typer.Option(
            "--gaps", help="Also what gaps cost: waking, burst and gap, rest, work after writes."
        ),
    ] = False,
    firmware: FirmwareOption = None,
    pcie_generation: GenerationOption = None,
    temperature: TemperatureOption = None,
    conditions: ConditionsOption = None,
    for_: ForOption = None,
    server: ServerOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Predict throughput, latency and power of configurations, with 90 % intervals.

    Columns are fields of the schema: workload (operation, read_fraction, pattern ...),
    configuration (request_bytes, queue_depth, engine ...) and state. What is left out takes the
    profile's default, which is said on standard error.
    """
    if configurations is not None and set_:
        raise typer.BadParameter("say either --configurations FILE.csv or --set FIELD=VALUE")
    backend = chosen_backend(server, device, profile, host, local={"gaps": gaps}, gaps=gaps)
    table = _read(configurations) if configurations else _stated(assignments(set_ or []))
    asked = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    with backend as computes:
        predictions = computes.predict(table, asked)
    _note_defaults(predictions)
    if output is Format.CSV:
        _emit_csv(predictions, table)
    elif output is Format.JSON:
        console.emit_json(predictions.document())
    else:
        _emit_table(predictions)


def _stated(fields: dict[str, str]) -> FieldTable:
    return FieldTable(_COMMAND_LINE, list(fields), [list(fields.values())], [])


def _read(path: Path) -> FieldTable:
    try:
        if str(path) == "-":
            return _parse(sys.stdin, "standard input")
        text = read_input(path).decode("utf-8-sig")
        return _parse(io.StringIO(text, newline=""), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a UTF-8 text file; save it as CSV in UTF-8") from None


def _parse(stream: TextIO, place: str) -> FieldTable:
    reader = csv.reader(stream, strict=True)
    rows, lines = [], []
    try:
        names = [name.strip() for name in next(reader, [])]
        if not names:
            raise InputError(f"{place}: is empty; its first line must name the columns")
        for row in reader:
            if len(row) != len(names):
                if not row and len(names) > 1:
                    continue  # a blank line; in a table of one column it is an empty cell
                if row:
                    raise InputError(
                        f"{place}, line {reader.line_num}: {len(row)} cells, but the first line "
                        f"names {len(names)} columns"
                    )
                row = [""]
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{place}, line {reader.line_num}: is not CSV ({error})") from None
    if not rows:
        raise InputError(f"{place}: names columns but no configuration; write one on each line")
    return FieldTable(place, names, rows, lines)


def _note_defaults(answers: FlatPredictions) -> None:
    if answers.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in answers.defaults_used.items())
        console.note(f"defaults of profile {answers.device}, where left out: {said}")
    if answers.without_effect:
        console.note(f"columns that change no figure: {', '.join(answers.without_effect)}")


def _emit_csv(answers: FlatPredictions, questions: FieldTable) -> None:
    said = [_written(values) for values in answers.values()]
    said.append(list(answers.evidence))
    answered = zip(*said, strict=True)
    console.emit_csv(
        [*questions.names, *answers.answered, "evidence"],
        ([*asked, *cells] for asked, cells in zip(questions.rows, answered, strict=True)),
    )


def _written(values: Sequence[float | None]) -> list[str]:
    return [
        "" if value is None else f"{value:.0f}" if value >= _WHOLE_FROM else f"{value:.6g}"
        for value in values
    ]


_SHOWN = {
    "throughput_bytes_per_second": "throughput",
    "iops": "IOPS",
    "latency_mean_ns": "mean latency",
    "latency_p99_ns": "p99 latency",
    "device_power_watts": "drive power",
    "cpu_power_watts": "CPU power",
    "wake_latency_ns": "wait to wake",
    "cycle_power_watts": "burst and gap",
    "idle_power_watts": "at rest",
    "background_seconds": "work after",
    "background_energy_joules": "its energy",
}
"""Headings of quantities; those of gaps where they were asked for."""


def _emit_table(answers: FlatPredictions) -> None:
    from iojoule.api.reports.quantities import quantity

    shown = {name: said for name, said in _SHOWN.items() if name in answers.quantities}
    table = console.new_table([*answers.columns, *shown.values(), "evidence"])
    for record, values in zip(answers.records(), zip(*answers.values(), strict=True), strict=True):
        asked = ("" if record[name] is None else str(record[name]) for name in answers.columns)
        number = dict(zip(answers.answered, values, strict=True))
        told = (
            quantity(name, number[name], number[f"{name}_low"], number[f"{name}_high"])
            for name in shown
        )
        table.add_row(*asked, *told, record["evidence"])
    console.emit_table(table, "", *_legend(answers))


def _legend(about: FlatPredictions) -> Iterator[str]:
    yield (
        f"{about.model_name}, profile version {about.profile_version}. "
        "In brackets: 90 % interval. -: the profile does not know."
    )
    if about.cpu_host is not None:
        yield f"CPU power is that of {about.cpu_host}, its idle power included."
