"""Tables in Parquet whose columns are the schema's own fields, in the schema's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.littles_law import check_littles_law
from iojoule.datasets.provenance import Provenance, SourceFile, unreadable
from iojoule.datasets.schema import COLUMNS
from iojoule.datasets.store import Dataset, concat

ROWS_MAX = 1_000_000
"""More than any campaign measures; columns that say the same a million times need no room in a
file, so its size says nothing."""


def import_parquet(path: Path, constants: Mapping[str, Any] | None = None) -> Dataset:
    """Read a table of measurements.

    Args:
        path: The Parquet file; the one of a dataset is one.
        constants: Fields that the file does not state; what it states itself stays.

    Raises:
        InputError: It is no Parquet file, names an unknown field, holds an impossible value or
            more than ROWS_MAX rows.
        DataQualityError: A row is more than 8 % off Little's law.
        MemoryError: It holds more than fits.
    """
    try:
        with pq.ParquetFile(path) as file:
            _check(path, file)
            data: dict[str, Any] = {}
            for name in file.schema_arrow.names:
                column = file.read(columns=[name])[name]
                if column.null_count < len(column):
                    data[name] = column
            rows = file.metadata.num_rows
    except OSError as error:
        raise unreadable(path, error) from None
    except pa.ArrowMemoryError:
        raise MemoryError from None
    except (pa.ArrowException, ValueError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: is not a readable Parquet file ({message})") from None
    for name, value in (constants or {}).items():
        data.setdefault(name, [value] * rows)
    provenance = Provenance(importer="parquet", sources=(SourceFile.of(path),))
    dataset = Dataset.from_columns(data, provenance, where=lambda index: f"{path}, row {index + 1}")
    warnings = check_littles_law(dataset, path, lambda index: f"row {index + 1}")
    return Dataset(dataset.table, provenance.with_warnings(warnings))


def _check(path: Path, file: pq.ParquetFile) -> None:
    """Refuse what is no table of measurements before any of it is read."""
    names, rows = file.schema_arrow.names, file.metadata.num_rows
    for name in names[: len(COLUMNS) + 1]:
        if name not in COLUMNS:
            raise InputError(
                f"{path}: unknown field {name[:100]!r}{close_names(name[:100], COLUMNS)}",
                field=name[:100],
            )
    if len(set(names)) < len(names):
        raise InputError(f"{path}: a column is named twice; rename one")
    if not 0 < rows <= ROWS_MAX:
        raise InputError(f"{path}: {rows} rows; a table of measurements has 1 to {ROWS_MAX}")


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it; raises as `import_parquet`."""
    return concat([import_parquet(path, options.constants) for path in paths])
