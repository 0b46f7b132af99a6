"""`iojoule import`: from the files people have to a dataset."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.application.fields import field_value
from iojoule.api.cli import console
from iojoule.api.cli.options import assignments
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.datasets.vocabulary import Verdict

app = typer.Typer(
    add_completion=False, help="Turn measurements that exist into a dataset.", no_args_is_help=True
)

DatasetOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="DATASET", help="Name of the dataset to write.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="What the files do not say, for instance device_model=samsung-980-pro-1tb.",
    ),
]

_EXAMPLES = 20
"""Warnings shown; the dataset's metadata file holds all of them."""


@app.command()
def fio(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files, or folders to be searched.")
    ],
    output: DatasetOption,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first run that cannot be imported.")
    ] = False,
    set_: SetOption = None,
    power: Annotated[
        str | None,
        typer.Option(
            metavar="LOG.csv[,clock=SECONDS]",
            help="Log of a power meter beside the runs: columns time (Unix seconds, ISO 8601) and "
            "device_power_watts, cpu_power_watts or system_power_watts; its clock is so far ahead.",
        ),
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", hidden=True)] = False,
) -> None:
    """Import results of fio 2 and 3: JSON, json+, terse or normal, one or several runs a file.

    What is not fio's or cannot be read is left out and counted. Folders, hosts, drives and pauses
    of more than 6 h part the runs into sessions.
    """
    if keep_going:
        console.note("--keep-going is the rule now, and will be removed; --strict is its contrary")
    _import("fio", paths, output, strict=strict, set_=set_, power=power)


@app.command()
def thesis(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="An extracted data set, folders of experiments, experiments or single runs.",
        ),
    ],
    output: DatasetOption,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The drive of all these runs; otherwise the readme's letter for their date.",
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out damaged runs, and name them.")
    ] = False,
    set_: SetOption = None,
) -> None:
    """Import what energy-benchmark (nvme-energy-bench), the thesis' own tool, measured."""
    named = [] if device is None else [f"device_model={device}"]
    _import("thesis", paths, output, keep_going=keep_going, set_=[*(set_ or []), *named])


@app.command("csv")
def csv_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A table with a header line.")],
    output: DatasetOption,
    columns: Annotated[
        Path | None,
        typer.Option(
            metavar="MAP.toml",
            help="Which column is which field, in which unit; not needed where columns bear the "
            "names of fields.",
        ),
    ] = None,
    set_: SetOption = None,
) -> None:
    """Import a table whose columns are fields, or by way of a column map."""
    if columns is not None and set_:
        raise typer.BadParameter("--set goes without --columns: write [constants] in the map")
    _import("csv", [file], output, columns=columns, set_=set_)


def _import(
    name: str,
    paths: list[Path],
    output: Path,
    *,
    columns: Path | None = None,
    keep_going: bool = False,
    strict: bool = False,
    set_: list[str] | None = None,
    power: str | None = None,
) -> None:
    constants = {
        field: field_value(field, text, "--set") for field, text in assignments(set_ or []).items()
    }
    options = ImportOptions(
        columns=columns, keep_going=keep_going, strict=strict, constants=constants, power=power
    )
    dataset = importer(name)(paths, options)
    written, sidecar = write_dataset(dataset, output)
    found = dataset.provenance
    for text in found.warnings[:_EXAMPLES]:
        console.warn(text)
    if len(found.warnings) > _EXAMPLES:
        console.warn(f"{len(found.warnings) - _EXAMPLES} more, all of them in {sidecar}")
    console.emit(
        f"{written}: {len(dataset)} measurements from {len(found.sources)} "
        f"{'file' if len(found.sources) == 1 else 'files'}, {len(dataset.columns)} fields known\n"
    )
    for reason, count in Counter(row.reason for row in found.excluded).most_common():
        console.emit(f"  left out: {count} x {reason}\n")
    for line in _judged(dataset):
        console.emit(f"{line}\n")
    console.note(f"next: {next_command(dataset, output)}")


def _judged(dataset: Dataset) -> list[str]:
    """Sessions, and how many measurements a fit leaves out for which reason."""
    named = [name for name in dataset.column("session_id") if name is not None]
    counts = Counter(named)
    lines = [f"  session {name}: {count} measurements" for name, count in counts.most_common(10)]
    if len(counts) > len(lines):
        lines.append(f"  and {len(counts) - len(lines)} more sessions")
    doubts = Counter(
        f"{verdict}: {reasons}"
        for verdict, reasons in zip(
            dataset.column("verdict"), dataset.column("verdict_reasons"), strict=True
        )
        if verdict not in (None, Verdict.GOOD)
    )
    return lines + [
        f"  {why}: {count}, which fit leaves out" for why, count in doubts.most_common()
    ]


def next_command(dataset: Dataset, output: Path) -> str:
    """What to type after an import."""
    usable = [verdict in (None, Verdict.GOOD) for verdict in dataset.column("verdict")]
    name = shlex.quote(str(output))
    doubtful = "" if any(usable) else " --with-doubtful"
    device = "" if any(dataset.column("device_model")) else " --device MODEL"
    return f"iojoule fit {name} -o {shlex.quote(f'{output}-profile.json')}{device}{doubtful}"
