"""Datasets: measurements with provenance, in memory and as files.

A dataset is stored as a pair in one folder: `NAME.parquet` (all columns of the schema, units in
the field metadata) and the metadata file `NAME.json` (schema version, provenance, and the SHA-256
of the Parquet file). Each file is written to a temporary name, flushed and moved into place, the
metadata last: a pair that was interrupted half-way does not match its hash and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ValidationError

from iojoule.datasets.arrow import arrow_schema, columns
from iojoule.datasets.atomic import output_file, write_atomically
from iojoule.datasets.errors import InputError, SchemaVersionError, close_names
from iojoule.datasets.input_file import json_of, read_input
from iojoule.datasets.provenance import (
    DATASET_FORMAT,
    Provenance,
    keep_other_documents,
    unreadable,
)
from iojoule.datasets.schema import COLUMNS, SCHEMA_VERSION, Measurement, from_row, to_row
from iojoule.datasets.validation import (
    Values,
    Where,
    build_table,
    row_number,
    without_empty_columns,
)

__all__ = [
    "Dataset",
    "Provenance",
    "concat",
    "dataset_files",
    "dataset_paths",
    "read_dataset",
    "write_dataset",
]

Written = TypeVar("Written")


class Dataset:
    """Measurements with provenance; immutable, one Arrow column per field that is known.

    Build one with `from_columns` (fast, validated), `from_measurements`, `concat` or an importer.
    """

    __slots__ = ("_provenance", "_table")

    def __init__(self, table: pa.Table, provenance: Provenance) -> None:
        self._table = without_empty_columns(table)
        self._provenance = provenance

    @classmethod
    def from_columns(
        cls, data: Mapping[str, Values], provenance: Provenance, *, where: Where = row_number
    ) -> Dataset:
        """Build a dataset from one sequence or array per field, checked like single rows.

        Args:
            data: Field name -> one value per row in the unit the name states; None and NaN mean
                unknown. Fields with a default (queue_depth, jobs, pattern) take it when left out.
            provenance: Where the measurements came from.
            where: Names row i (from 0) in messages, for instance by file and line.

        Raises:
            InputError: An unknown field, unequal lengths or an impossible value, with its row.
        """
        return cls(build_table(data, where=where), provenance)

    @classmethod
    def from_measurements(
        cls, measurements: Sequence[Measurement], provenance: Provenance
    ) -> Dataset:
        """Build a dataset from measurements, in their order."""
        rows = [to_row(measurement) for measurement in measurements]
        return cls(pa.Table.from_pylist(rows, schema=arrow_schema()), provenance)

    @property
    def provenance(self) -> Provenance:
        """Where the measurements came from."""
        return self._provenance

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the fields known in at least one row, in the order of the schema."""
        return tuple(self._table.column_names)

    @property
    def table(self) -> pa.Table:
        """The Arrow table behind it: the columns named by `columns`, null = unknown."""
        return self._table

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        same = self._table.equals(other._table)
        return bool(same) and self._provenance == other._provenance

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Dataset: {len(self)} measurements, {len(self.columns)} known fields>"

    def column(self, name: str) -> NDArray[Any]:
        """The values of one field, shape (len(self),).

        Numbers and switches come as float64 in the unit the name states (true = 1, unknown =
        NaN), words as objects (unknown = None).

        Raises:
            InputError: The schema has no such field.
        """
        if name not in COLUMNS:
            raise InputError(f"unknown field {name!r}{close_names(name, COLUMNS)}", field=name)
        words = columns()[name].arrow_type == pa.string()
        if name not in self._table.column_names:
            return np.full(len(self), None if words else np.nan, dtype=object if words else float)
        values = self._table[name]
        return values.to_numpy() if words else values.cast(pa.float64(), safe=False).to_numpy()

    def measurements(self) -> list[Measurement]:
        """The rows as models, in order."""
        return [
            from_row(row, where=row_number(index))
            for index, row in enumerate(self._table.to_pylist())
        ]

    def filter(self, mask: NDArray[np.bool_]) -> Dataset:
        """The rows where `mask` (booleans, shape (len(self),)) is true; provenance is kept.

        Raises:
            InputError: The mask is not one boolean per row.
        """
        flags = np.asarray(mask)
        if flags.dtype != bool or flags.shape != (len(self),):
            raise InputError(
                f"mask: {flags.dtype} of shape {flags.shape}; give {len(self)} booleans, one a row"
            )
        return Dataset(self._table.filter(pa.array(flags)), self._provenance)


def concat(datasets: Sequence[Dataset]) -> Dataset:
    """Put datasets one after the other; provenance is merged, sources are named once.

    Raises:
        InputError: There is nothing to put together.
    """
    if not datasets:
        raise InputError("no dataset to put together; give at least one")
    table = pa.concat_tables([item.table for item in datasets], promote_options="default")
    table = table.select([name for name in COLUMNS if name in table.column_names])
    return Dataset(table, Provenance.merged([item.provenance for item in datasets]))


def dataset_files(path: Path | str) -> tuple[Path, Path]:
    """The Parquet file and the metadata file of a dataset named with or without its ending.

    Raises:
        InputError: The path has no name, as that of a root or of this folder.
    """
    path = Path(path)
    if not path.name:
        raise InputError(f"{path}: is a folder; write FOLDER/NAME of the dataset")
    stem = path.name
    for ending in (".parquet", ".json"):
        stem = stem.removesuffix(ending)
    return path.with_name(f"{stem}.parquet"), path.with_name(f"{stem}.json")


def write_dataset(dataset: Dataset, path: Path | str) -> tuple[Path, Path]:
    """Store a dataset as `NAME.parquet` and `NAME.json`, replacing an earlier pair.

    Args:
        dataset: What to store.
        path: Folder and NAME, with or without `.parquet`.

    Returns:
        The two files written.

    Raises:
        InputError: The folder does not exist or cannot be written, or NAME.json is another
            document; no temporary file stays.
    """
    data_file, metadata_file = dataset_files(path)
    keep_other_documents(metadata_file, of_dataset=True)
    full = _all_columns(dataset.table)
    digest = _write(data_file, lambda stream: _write_parquet(full, stream))
    metadata = {
        "format": DATASET_FORMAT,
        "schema_version": SCHEMA_VERSION,
        "data_file": data_file.name,
        "data_sha256": digest,
        "rows": len(dataset),
        "provenance": dataset.provenance.model_dump(mode="json"),
    }
    text = json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"
    _write(metadata_file, lambda stream: stream.write(text.encode()))
    return data_file, metadata_file


def read_dataset(path: Path | str) -> Dataset:
    """Read a dataset that `write_dataset` stored.

    Args:
        path: Either of its two files, or their common name without an ending.

    Raises:
        SchemaVersionError: It was written by a newer version of the schema.
        InputError: A file is missing, truncated, foreign or changed since; the message names it
            and the remedy.
    """
    data_file, metadata_file = dataset_files(path)
    if not (data_file.exists() or metadata_file.exists()):
        raise InputError(
            f"{path}: there is no such dataset; name what `iojoule import` or `measure` wrote"
        )
    metadata = _read_metadata(metadata_file)
    try:
        with data_file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(data_file, error) from None
    if digest != metadata["data_sha256"]:
        raise InputError(
            f"{data_file}: does not match its metadata file {metadata_file.name}: half written, "
            "truncated or changed since; import the measurements again, or restore both files"
        )
    try:
        provenance = Provenance.model_validate(metadata["provenance"])
        data = _read_columns(data_file)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _foreign(metadata_file, f"provenance.{place}: {first['msg']}") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{data_file}: is not a readable Parquet file ({str(error).splitlines()[0]}); "
            "import the measurements again"
        ) from None
    checked = build_table(data, where=lambda index: f"{data_file}: row {index + 1}")
    return Dataset(checked, provenance)


def _read_columns(path: Path) -> dict[str, pa.ChunkedArray[Any]]:
    """The columns that say something, one at a time: most are null and need no memory."""
    columns = {}
    with pq.ParquetFile(path) as file:
        for name in file.schema_arrow.names:
            column = file.read(columns=[name])[name]
            if column.null_count < len(column):
                columns[name] = column
    return columns


def _all_columns(table: pa.Table) -> pa.Table:
    schema = arrow_schema()
    return pa.table(
        [
            table[field.name]
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in schema
        ],
        schema=schema,
    )


def _read_metadata(path: Path) -> dict[str, Any]:
    try:
        metadata = json_of(read_input(path))
    except FileNotFoundError:
        raise InputError(
            f"{path}: the metadata file is missing, so this is no dataset of iojoule or it was "
            "written only half; import the measurements again"
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:
        raise _foreign(path, "not JSON") from None
    if not isinstance(metadata, dict) or metadata.get("format") != DATASET_FORMAT:
        raise _foreign(path, f"its format is not {DATASET_FORMAT}")
    version = metadata.get("schema_version")
    if type(version) is not int or version < 1:
        raise _foreign(path, f"schema_version is {version!r}")
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path}: written with schema version {version}, this iojoule reads up to "
            f"{SCHEMA_VERSION}; upgrade iojoule or import the measurements again",
            field="schema_version",
        )
    missing = {"data_sha256", "provenance"} - metadata.keys()
    if missing:
        raise _foreign(path, f"{', '.join(sorted(missing))} missing")
    return metadata


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path}: is not the metadata file of a dataset ({reason}); import the measurements again"
    )


def _write_parquet(table: pa.Table, stream: BufferedRandom) -> str:
    """Write the columns and return the SHA-256 of what was written."""
    pq.write_table(table, stream, compression="zstd")
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def _write(path: Path, write: Callable[[BufferedRandom], Written]) -> Written:
    with output_file(path):
        return write_atomically(path, write)


def dataset_paths(paths: Sequence[Path]) -> list[Path]:
    """The dataset files that paths name: files as they are, of folders all that they hold.

    Raises:
        InputError: A folder holds none.
    """
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(path.glob("*.parquet"))
        if not inside:
            raise InputError(
                f"{path}: holds no dataset (*.parquet); import measurements into it with "
                "`iojoule import`"
            )
        files += inside
    return files
