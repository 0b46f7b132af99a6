"""The Arrow schema of a table of measurements, derived from the pydantic models.

One column per field of `schema.COLUMNS`, in that order; the models stay the only place where a
field, its type or its range is written down. Every Arrow field carries as metadata its `kind`
(workload, configuration, state, conditions, observations) and, where it has one, its `unit`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from iojoule.datasets.schema import COLUMNS, SCHEMA_VERSION, SECTIONS

_UNITS: tuple[tuple[str, str], ...] = (
    (r"bytes_per_second$", "B/s"),
    (r"(^|_)iops$|_per_second$", "1/s"),
    (r"(^|_)bytes(_|$)", "B"),
    (r"_ns$", "ns"),
    (r"(^|_)seconds(_|$)", "s"),
    (r"_watts$", "W"),
    (r"_joules$", "J"),
    (r"_per_joule$", "1/J"),
    (r"_hertz$", "Hz"),
    (r"_celsius_", "degC"),
    (r"_fraction$|^write_amplification$", "1"),
    (r"^percentage_used$", "%"),
    (r"^cpu_utilisation$", "cores"),
)
"""Unit by the words of a field's name; the first match counts."""


@dataclass(frozen=True)
class Column:
    """What a column may hold, read off the pydantic model.

    Attributes:
        name: The field's name.
        kind: The section of the schema it belongs to.
        arrow_type: float64, int64, bool or string.
        unit: The unit of its numbers; None for words, switches and plain counts.
        words: The closed list of words, where the field has one.
        minimum: Lowest possible number; with `open_minimum` it is itself impossible.
        open_minimum: Whether `minimum` is excluded.
        maximum: Highest possible number.
        multiple_of: The number must be a multiple of this.
        required: Whether every measurement must say it.
        default: What holds where it is not said; None = unknown.
    """

    name: str
    kind: str
    arrow_type: pa.DataType
    unit: str | None
    words: frozenset[str] | None
    minimum: float | None
    open_minimum: bool
    maximum: float | None
    multiple_of: int | None
    required: bool
    default: str | int | None


@cache
def columns() -> dict[str, Column]:
    """Every column by name, in the order of the table."""
    columns: dict[str, Column] = {}
    for kind, model in SECTIONS.items():
        schema = model.model_json_schema()
        for name, entry in schema["properties"].items():
            columns[name] = _column(
                name, kind, entry, schema.get("$defs", {}), name in schema.get("required", ())
            )
    return {name: columns[name] for name in COLUMNS}


@cache
def arrow_schema() -> pa.Schema:
    """The Arrow schema of a stored table: all columns, units and kinds as field metadata."""
    return pa.schema(
        [_arrow_field(column) for column in columns().values()],
        metadata={"iojoule.schema_version": str(SCHEMA_VERSION)},
    )


def unit_of(name: str) -> str | None:
    """The unit of a field's numbers as its name states it; None where it has none."""
    for pattern, unit in _UNITS:
        if re.search(pattern, name):
            return unit
    return None


def _arrow_field(column: Column) -> pa.Field[Any]:
    metadata = {"kind": column.kind}
    if column.unit:
        metadata["unit"] = column.unit
    return pa.field(column.name, column.arrow_type, nullable=not column.required, metadata=metadata)


def _column(
    name: str, kind: str, entry: dict[str, Any], definitions: dict[str, Any], required: bool
) -> Column:
    # Optional fields appear as anyOf [what it is, null], word lists as a reference.
    chosen = next((part for part in entry.get("anyOf", ()) if part.get("type") != "null"), entry)
    if "$ref" in chosen:
        chosen = definitions[chosen["$ref"].rsplit("/", 1)[-1]]
    types: dict[str, pa.DataType] = {
        "number": pa.float64(),
        "integer": pa.int64(),
        "boolean": pa.bool_(),
    }
    exclusive = chosen.get("exclusiveMinimum")
    return Column(
        name=name,
        kind=kind,
        arrow_type=types.get(chosen["type"], pa.string()),
        unit=unit_of(name),
        words=frozenset(chosen["enum"]) if "enum" in chosen else None,
        minimum=exclusive if exclusive is not None else chosen.get("minimum"),
        open_minimum=exclusive is not None,
        maximum=chosen.get("maximum"),
        multiple_of=chosen.get("multipleOf"),
        required=required,
        default=entry.get("default"),
    )
