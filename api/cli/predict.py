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
    chosen_profile,
    named,
    refuse,
    service,
    stated_conditions,
)
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.api.application.predict import Answers
    from iojoule.api.served_predictions import ServedAnswers
    from iojoule.datasets.profile import DeviceProfile
    from iojoule.datasets.schema import Conditions

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
    if server:
        refuse(server, profile=profile, host=host, gaps=gaps)
        chosen = None
    else:
        chosen = chosen_profile(device, profile, host)
    questions = _read(configurations) if configurations else _stated(assignments(set_ or []))
    asked = stated_conditions(firmware, pcie_generation, temperature, conditions, for_)
    answers: Answers | ServedAnswers
    if chosen is None:
        answers, about = _served(server, named(device), questions, asked)
    else:
        answers, about = _answered(chosen, questions, asked, gaps=gaps)
    _say_what_was_assumed(answers, about)
    if output is Format.CSV:
        _emit_csv(answers, questions)
    elif output is Format.JSON:
        console.emit_json(answers.document())
    else:
        _emit_table(answers, about)


@dataclass(frozen=True)
class _About:
    """What answered.

    Attributes:
        cpu_host: Whose CPU power the figures are; None: none is known.
    """

    device: str
    model_name: str
    profile_version: str
    cpu_host: str | None


def _answered(
    profile: DeviceProfile, questions: _Questions, conditions: Conditions, *, gaps: bool
) -> tuple[Answers, _About]:
    from iojoule.api.application.predict import ask
    from iojoule.api.application.predictors import Predictors

    answers = ask(
        Predictors(profile, conditions),
        questions.names,
        questions.rows,
        where=questions.where,
        place=questions.place,
        gaps=gaps,
    )
    whose = "your host" if profile.host.calibrated_apart else "the reference host"
    power = profile.host_power
    host = None if power is None else f"{whose} {power.host_id}"
    return answers, _About(profile.device, profile.model_name, profile.profile_version, host)


def _served(
    server: str | None, device: str, questions: _Questions, conditions: Conditions
) -> tuple[ServedAnswers, _About]:
    from iojoule.api.served_predictions import ask_service

    with service(server) as client:
        answers = ask_service(
            client, device, questions.names, questions.rows,
            conditions.model_dump(mode="json", exclude_none=True),
            where=questions.where, place=questions.place,
        )  # fmt: skip
        known = client.device(device)
    told, profile = answers.told, known.profile
    host = "the service's reference host" if profile is not None and profile.cpu_power else None
    return answers, _About(told["device"], known.model, told["profile_version"], host)


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


def _say_what_was_assumed(answers: Answers | ServedAnswers, about: _About) -> None:
    if answers.defaults_used:
        said = ", ".join(f"{name} = {value}" for name, value in answers.defaults_used.items())
        console.note(f"defaults of profile {about.device}, where left out: {said}")
    if answers.without_effect:
        console.note(f"columns that change no figure: {', '.join(answers.without_effect)}")


def _emit_csv(answers: Answers | ServedAnswers, questions: _Questions) -> None:
    said = [_written(values) for values in answers.values()]
    said.append(answers.evidence)
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


def _emit_table(answers: Answers | ServedAnswers, about: _About) -> None:
    from iojoule.api.words.quantities import quantity

    shown = {name: said for name, said in _SHOWN.items() if name in answers.quantities}
    table = console.new_table([*answers.columns, *shown.values(), "evidence"])
    for record in answers.records():
        asked = ("" if record[name] is None else str(record[name]) for name in answers.columns)
        told = (
            quantity(name, record[name], record[f"{name}_low"], record[f"{name}_high"])
            for name in shown
        )
        table.add_row(*asked, *told, record["evidence"])
    console.emit_table(table, "", *_legend(about))


def _legend(about: _About) -> Iterator[str]:
    yield (
        f"{about.model_name}, profile version {about.profile_version}. "
        "In brackets: 90 % interval. -: the profile does not know."
    )
    if about.cpu_host is not None:
        yield f"CPU power is that of {about.cpu_host}, its idle power included."
