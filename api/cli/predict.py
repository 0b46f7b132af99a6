"""`iojoule predict`: throughput, latency and power at configurations that nobody measured."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.questions import (
    ConditionsOption,
    DeviceOption,
    FirmwareOption,
    GenerationOption,
    HostOption,
    ProfileOption,
    TemperatureOption,
    assignments,
    chosen_profile,
    stated_conditions,
)
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.api.predictions import Answers

_WHOLE_FROM = 1e5
"""Numbers from here on are written without decimals, smaller ones with six digits."""

_COMMAND_LINE = "--set"


@dataclass(frozen=True)
class _Questions:
    """Cells as they stand in the file; `lines[i]` is where row i ends."""

    place: str
    names: list[str]
    rows: list[list[str]]
    lines: list[int]

    def where(self, row: int) -> str:
        if not self.lines:
            return self.place
        return f"{self.place}, line {self.lines[row]}"


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
    output: FormatOption = Format.TABLE,
) -> None:
    """Predict throughput, latency and power of each configuration, with 90 % intervals.

    Columns are fields of the schema: workload (operation, read_fraction, pattern ...),
    configuration (request_bytes, queue_depth, engine ...) and state. What is left out takes the
    profile's default, which is said on standard error.
    """
    if configurations is not None and set_:
        raise typer.BadParameter("say either --configurations FILE.csv or --set FIELD=VALUE")
    chosen = chosen_profile(device, profile, host)
    questions = _read(configurations) if configurations else _stated(assignments(set_ or []))
    from iojoule.api.predictions import ask
    from iojoule.api.predictors import Predictors

    asked = stated_conditions(firmware, pcie_generation, temperature, conditions)
    answers = ask(
        Predictors(chosen, asked),
        questions.names,
        questions.rows,
        where=questions.where,
        place=questions.place,
        gaps=gaps,
    )
    _say_what_was_assumed(answers)
    if output is Format.CSV:
        _emit_csv(answers, questions)
    elif output is Format.JSON:
        console.emit_json(answers.document())
    else:
        _emit_table(answers)


def _stated(fields: dict[str, str]) -> _Questions:
    return _Questions(_COMMAND_LINE, list(fields), [list(fields.values())], [])


def _read(path: Path) -> _Questions:
    try:
        if str(path) == "-":
            return _parse(sys.stdin, "standard input")
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return _parse(stream, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a UTF-8 text file; save it as CSV in UTF-8") from None


def _parse(stream: TextIO, place: str) -> _Questions:
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
    return _Questions(place, names, rows, lines)


def _say_what_was_assumed(answers: Answers) -> None:
    if answers.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in answers.defaults_used.items())
        console.note(f"defaults of profile {answers.profile.device}, where left out: {said}")
    if answers.without_effect:
        console.note(f"columns that change no figure: {', '.join(answers.without_effect)}")


def _emit_csv(answers: Answers, questions: _Questions) -> None:
    from iojoule.api.predictions import EVIDENCE

    said = [_written(values) for values in answers.values()]
    said.append(answers.evidence)
    answered = zip(*said, strict=True)
    console.emit_csv(
        [*questions.names, *answers.answered, EVIDENCE],
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


def _emit_table(answers: Answers) -> None:
    from iojoule.api.quantities import quantity

    shown = {name: said for name, said in _SHOWN.items() if name in answers.quantities}
    table = console.new_table([*answers.columns, *shown.values(), "evidence"])
    for record in answers.records():
        asked = ("" if record[name] is None else str(record[name]) for name in answers.columns)
        told = (
            quantity(name, record[name], record[f"{name}_low"], record[f"{name}_high"])
            for name in shown
        )
        table.add_row(*asked, *told, record["evidence"])
    console.emit_table(table, "", *_legend(answers))


def _legend(answers: Answers) -> Iterator[str]:
    yield (
        f"{answers.profile.model_name}, profile version {answers.profile.profile_version}. "
        "In brackets: 90 % interval. -: the profile does not know."
    )
    if answers.profile.host_power is not None:
        host = answers.profile.host_power.host_id
        whose = "your" if answers.profile.host.calibrated_apart else "the reference"
        yield f"CPU power is that of {whose} host {host}, its idle power included."
