"""`iojoule datasets`: measurements that a service keeps."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.console import Format, FormatOption
from iojoule.api.cli.jobs import BackOption, MostOption
from iojoule.api.cli.options import ServerOption, service

if TYPE_CHECKING:
    from iojoule.api.http.schemas import DatasetSummary

app = typer.Typer(
    add_completion=False, help="Measurements that a service keeps.", no_args_is_help=True
)

DatasetId = Annotated[str, typer.Argument(metavar="ID", help="As `iojoule datasets list` shows.")]


class FormName(StrEnum):
    """What a file of measurements is."""

    PARQUET = "parquet"
    CSV = "csv"
    FIO = "fio"
    ZIP = "zip"


_TITLES = {
    "id": "id",
    "device": "device",
    "rows": "rows",
    "format": "came as",
    "warnings": "doubts",
    "created_at": "uploaded at",
    "owner": "owner",
    "shared": "shared",
}


@app.command("list")
def list_(
    server: ServerOption = None, most: MostOption = 20, output: FormatOption = Format.TABLE
) -> None:
    """List datasets, the newest first."""
    with service(server) as client:
        _emit(islice(client.datasets(), most), output)


@app.command()
def upload(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Parquet, CSV, the JSON that fio writes, or a folder of fio's results (or its "
            ".zip).",
        ),
    ],
    server: ServerOption = None,
    form: Annotated[
        FormName | None, typer.Option(help="What they are; else their names tell.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="The drive, where the files do not name it.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column map that comes with iojoule, for tables."),
    ] = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Upload measurements; each file or folder becomes a dataset."""
    with service(server) as client:
        kept = [
            client.upload(
                path, form=None if form is None else form.value, device=device, columns=columns
            )
            for path in files
        ]
    _emit(kept, output)


@app.command()
def show(
    dataset: DatasetId, server: ServerOption = None, output: FormatOption = Format.TABLE
) -> None:
    """Show what a dataset holds, and in JSON where it comes from and what was left out."""
    with service(server) as client:
        found = client.dataset(dataset)
        if output is Format.JSON:
            told = found.model_dump(mode="json")
            console.emit_json({**told, "sidecar": client.sidecar(dataset)})
            return
    _emit([found], output)
    if output is Format.TABLE:
        console.emit(f"\nfields: {', '.join(found.fields)}\n")


@app.command()
def share(
    dataset: DatasetId,
    server: ServerOption = None,
    back: BackOption = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Let everybody with a key read a dataset."""
    with service(server) as client:
        _emit([client.share_dataset(dataset, not back)], output)


@app.command()
def delete(dataset: DatasetId, server: ServerOption = None) -> None:
    """Delete a dataset; one that a calibration names stays with it."""
    with service(server) as client:
        client.delete_dataset(dataset)
    console.note(f"deleted dataset {dataset}")


@app.command()
def fetch(
    dataset: DatasetId,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.parquet", help="To write.")],
    server: ServerOption = None,
) -> None:
    """Write the measurements of a dataset to a Parquet file."""
    with service(server) as client:
        client.download(dataset, out)
    console.note(f"wrote {out}")


def _emit(datasets: Iterable[DatasetSummary], output: Format) -> None:
    if output is Format.JSON:
        console.emit_json([one.model_dump(mode="json") for one in datasets])
    else:
        console.emit_records([_record(one) for one in datasets], output, _TITLES)


def _record(kept: DatasetSummary) -> dict[str, Any]:
    return {
        "id": kept.id,
        "device": kept.device,
        "rows": kept.rows,
        "format": kept.format,
        "warnings": kept.warnings,
        "created_at": kept.created_at.isoformat(timespec="seconds"),
        "owner": kept.owner,
        "shared": kept.shared,
    }
