"""From a file of measurements to a dataset, whatever the file holds."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

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

UNPACKED = "unpacked"
UNPACKED_BYTES_MAX = 512 << 20
UNPACKED_FILES_MAX = 20_000


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
        message = message.replace(str(path.with_name(UNPACKED)), "the archive")
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
    if form == "zip":
        path, form = _unpacked(path), "fio"
    if form != "csv":
        return importer(form)([path], ImportOptions(constants=constants))
    if columns is not None:
        return import_csv(path, public_map(columns))
    return import_csv(path, map_of_fields(_header(path), constants))


def _unpacked(path: Path) -> Path:
    """The folder that an archive holds.

    Raises:
        InputError: It is no archive that can be read, or holds too much.
    """
    folder = path.with_name(UNPACKED)
    folder.mkdir()
    try:
        with ZipFile(path) as archive:
            members = archive.infolist()
            # reading stops at these sizes, whatever the data unfold to
            if sum(one.file_size for one in members) > UNPACKED_BYTES_MAX:
                raise InputError(
                    f"{path}: holds more than {UNPACKED_BYTES_MAX} bytes; send it in parts"
                )
            if len(members) > UNPACKED_FILES_MAX:
                raise InputError(
                    f"{path}: holds more than {UNPACKED_FILES_MAX} files; send it in parts"
                )
            archive.extractall(folder)  # leaves out roots and ".." of names
    except OSError as error:
        raise InputError(f"{path}: cannot be unpacked ({error.strerror})") from error
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error):
        raise InputError(
            f"{path}: is no zip archive that can be read; pack the folder again, without a password"
        ) from None
    return folder


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
