"""From a file of measurements to a dataset, whatever the file holds."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from iojoule.api.state.errors import StorageFullError
from iojoule.api.state.files import FULL, NO_ROOM
from iojoule.datasets.errors import InputError
from iojoule.datasets.importers import ImportOptions, importer
from iojoule.datasets.importers.column_map import map_of_fields, public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.schema import COLUMNS
from iojoule.datasets.store import Dataset, write_dataset

DEVICE_MODEL = "device_model"

TEXT_MAX = 2000
"""Of a message; some quote the file."""


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """Read an upload and write `dataset.parquet` and `dataset.json` beside it.

    Args:
        asked: `path`, `format`, `device` (its catalogue id or None) and `columns` (the name of a
            column map that comes with iojoule, or None).

    Returns:
        What `datasets.Checked` has to say beside its files; or `error`, `message` and `field`.
    """
    path = Path(asked["path"])
    try:
        dataset = _dataset(path, asked["format"], asked["device"], asked["columns"])
        named = sorted({str(one) for one in dataset.column(DEVICE_MODEL) if one})
        if asked["device"] and named != [asked["device"]]:
            raise InputError(
                f"the measurements name {', '.join(named)[:200]}, not {asked['device']}",
                field="device",
            )
        write_dataset(dataset, path.with_name("dataset"))
    except InputError as error:
        if getattr(error.__cause__, "errno", None) in FULL:
            return {"error": StorageFullError.__name__, "message": NO_ROOM, "field": None}
        message = error.message.replace(str(path), "the upload")
        message = message.replace(f"{path.parent}/", "")[:TEXT_MAX]
        return {"error": type(error).__name__, "message": message, "field": error.field}
    except MemoryError:
        return {"error": "MemoryError"}
    return {
        "device": named[0] if len(named) == 1 else None,
        "rows": len(dataset),
        "fields": list(dataset.columns),
        "warnings": len(dataset.provenance.warnings),
    }


def _dataset(path: Path, form: str, device: str | None, columns: str | None) -> Dataset:
    constants = {DEVICE_MODEL: device} if device else {}
    if form != "csv":
        return importer(form)([path], ImportOptions(constants=constants))
    if columns is not None:
        return import_csv(path, public_map(columns))
    return import_csv(path, map_of_fields(_header(path), constants))


def _header(path: Path) -> list[str]:
    """The names in the first line of a table."""
    with path.open("rb") as stream:
        line = stream.readline(64 * 1024)
    try:
        names = [name.strip() for name in next(csv.reader([line.decode("utf-8-sig")]), [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}, line 1: not a header in UTF-8 ({error})") from None
    if len(names) > len(COLUMNS):
        raise InputError(
            f"{path}, line 1: {len(names)} columns or more, and there are {len(COLUMNS)} fields"
        )
    return names
