"""A sweep of what-ifs as a Parquet file, which a later run may go on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iojoule import __version__
from iojoule.datasets.arrow import unit_of
from iojoule.datasets.atomic import output_file, write_atomically
from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.recommender.what_if.sweep import Record, Sweep, columns

SCHEMA_VERSION = 2
"""Version of the stored form; a reader refuses any other: a sweep is computed again in a while."""

_PREFIX = "iojoule.what_if."
_TYPES: dict[type, Any] = {float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def write_sweep(sweep: Sweep, records: Mapping[int, Record], path: Path) -> None:
    """Store the points that are answered, in their order.

    The file's metadata say the schema's version, whether all points are in it, and the provenance:
    versions, drive, workload, what was changed.

    Raises:
        InputError: It cannot be written; an older file stays as it was.
    """
    places = sorted(records)
    arrays: dict[str, Any] = {"point": pa.array(places, pa.int64())}
    for field in _fields(sweep):
        arrays[f"change.{field}"] = _column([sweep.points[place].get(field) for place in places])
    for name, kind in columns().items():
        arrays[name] = pa.array([records[place][name] for place in places], _TYPES[kind])
    schema = pa.schema(
        [
            pa.field(name, array.type, metadata={"unit": unit} if (unit := _unit(name)) else None)
            for name, array in arrays.items()
        ],
        metadata=_metadata(sweep, len(places)),
    )
    table = pa.table(list(arrays.values()), schema=schema)

    def write(stream: BufferedRandom) -> None:
        pq.write_table(table, stream, compression="zstd")

    with output_file(path):
        write_atomically(path, write)


def read_sweep(sweep: Sweep, path: Path) -> dict[int, Record]:
    """The points of a sweep that a file already holds, by place.

    Raises:
        SchemaVersionError: Another version of iojoule wrote it.
        InputError: It is no such file, or that of another sweep.
    """
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{path}: is no sweep that could be gone on with ({said})") from None
    told = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    version = told.get(f"{_PREFIX}schema_version", "")
    if not version.isdigit():
        raise InputError(f"{path}: is no sweep of iojoule; name another file")
    if int(version) > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path}: written with schema version {version}, this iojoule reads up to "
            f"{SCHEMA_VERSION}; upgrade iojoule or sweep again",
            field="schema_version",
        )
    if int(version) < SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path}: written with schema version {version}, whose drives each stood on a host of "
            f"their own; this iojoule reads {SCHEMA_VERSION}. Remove the file and sweep again",
            field="schema_version",
        )
    if told.get(f"{_PREFIX}fingerprint") != sweep.fingerprint():
        raise InputError(
            f"{path}: holds another sweep (other drive, workload, changes or axes); name another "
            "file, or remove it"
        )
    return {row["point"]: {name: row[name] for name in columns()} for row in table.to_pylist()}


def _fields(sweep: Sweep) -> list[str]:
    """Every field that some point changes, what is swept first."""
    return list(dict.fromkeys([*sweep.axes, *(field for point in sweep.points for field in point)]))


def _column(values: list[Any]) -> pa.Array[Any]:
    """Numbers as numbers; anything else, or a mixture, as text."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else _text(v) for v in values], pa.string())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _unit(name: str) -> str | None:
    for end in ("_low", "_high"):
        name = name.removesuffix(end)
    return None if name.endswith("_evidence") else unit_of(name)


def _metadata(sweep: Sweep, answered: int) -> dict[bytes | str, bytes | str]:
    base = sweep.base
    told = {
        "schema_version": str(SCHEMA_VERSION),
        "fingerprint": sweep.fingerprint(),
        "tool": f"iojoule {__version__}",
        "created_utc": datetime.now(UTC).isoformat(),
        "points": str(len(sweep.points)),
        "answered": str(answered),
        "axes": json.dumps(sweep.axes),
        "device": base.profile.device,
        "profile_version": base.profile.profile_version,
        "workload": base.workload.model_dump_json(exclude_unset=True),
        "drives": str(base.drives),
        "conditions": base.conditions.model_dump_json(exclude_none=True),
    }
    return {f"{_PREFIX}{name}": value for name, value in told.items()}
