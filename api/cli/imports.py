"""`iojoule import`: from the files people have to a dataset."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from iojoule.api.application.fields import field_value
from iojoule.api.cli import console
from iojoule.api.cli.options import assignments
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.store import write_dataset

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
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="JSON files or folders.")],
    output: DatasetOption,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out what cannot be read, and name it.")
    ] = False,
    set_: SetOption = None,
) -> None:
    """Import what fio wrote with --output-format=json or json+."""
    _import("fio", paths, output, keep_going=keep_going, set_=set_)


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
    columns: Annotated[
        Path,
        typer.Option(metavar="MAP.toml", help="Which column is which field, in which unit."),
    ],
    output: DatasetOption,
) -> None:
    """Import a table by way of a column map."""
    _import("csv", [file], output, columns=columns)


def _import(
    name: str,
    paths: list[Path],
    output: Path,
    *,
    columns: Path | None = None,
    keep_going: bool = False,
    set_: list[str] | None = None,
) -> None:
    constants = {
        field: field_value(field, text, "--set") for field, text in assignments(set_ or []).items()
    }
    options = ImportOptions(columns=columns, keep_going=keep_going, constants=constants)
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
