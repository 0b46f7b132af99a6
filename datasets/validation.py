"""Checks whole columns against the schema, as strictly as the row models do, but vectorised.

The rules are not written a second time: types, ranges and word lists come from the models by way
of `arrow.columns()`; rules between fields run the model itself once per distinct combination.
What looks wrong here is handed to `schema.from_row`, so that both ways give the same message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ValidationError

from iojoule.datasets.arrow import Column, columns
from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.schema import COLUMNS, SECTIONS, from_row

Values: TypeAlias = "Sequence[Any] | NDArray[Any] | pa.Array[Any] | pa.ChunkedArray[Any]"
Where = Callable[[int], str]

_KIND_OF_VALUE = {"double": "number", "int64": "whole number", "bool": "true or false"}


def row_number(index: int) -> str:
    """Name a row by its number, counted from 1."""
    return f"row {index + 1}"


def build_table(data: Mapping[str, Values], *, where: Where = row_number) -> pa.Table:
    """Turn columns into a validated table with the schema's types.

    Args:
        data: Field name -> one value per row; None and NaN mean unknown. All of one length.
        where: Names a row (counted from 0) in messages.

    Returns:
        A table in the order of the schema, without the columns that say nothing.

    Raises:
        InputError: An unknown field, columns of different lengths, or an impossible value; the
            message names the first offending row and its field.
    """
    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns differ in length: {lengths}; give every column one value a row")
    rows = next(iter(lengths.values()), 0)
    known = columns()
    arrays: dict[str, Any] = {}
    for name, values in data.items():
        if name not in known:
            raise InputError(f"unknown field {name!r}{close_names(name, known)}", field=name)
        arrays[name] = _convert(known[name], values, where)
    for name, column in known.items():
        if column.default is not None:
            given = arrays.get(name, [None] * rows)
            given = pa.array(given, type=column.arrow_type)
            arrays[name] = given.fill_null(column.default)
    table = pa.table({name: arrays[name] for name in COLUMNS if name in arrays})
    _refuse(table, _suspects(table, rows), where)
    return without_empty_columns(table)


def without_empty_columns(table: pa.Table) -> pa.Table:
    """Drop the columns that are null in every row, and what the fields carry as metadata."""
    names = [name for name in table.column_names if table[name].null_count < len(table)]
    return pa.Table.from_arrays([table[name] for name in names], names=names)


def _convert(column: Column, values: Values, where: Where) -> pa.Array[Any]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        if isinstance(values, pa.Array):
            return values.cast(column.arrow_type)
        if column.arrow_type == pa.int64():  # pa.array would cut 4.5 to 4, a cast refuses
            return pa.array(values, type=pa.float64(), from_pandas=True).cast(pa.int64())
        return pa.array(values, type=column.arrow_type, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        listed = values.tolist() if hasattr(values, "tolist") else list(values)
        raise _first_misfit(column, listed, where) from None


def _first_misfit(column: Column, listed: list[Any], where: Where) -> InputError:
    expected = _KIND_OF_VALUE.get(str(column.arrow_type), "text")
    for index, value in enumerate(listed):
        try:
            pa.array([value], type=column.arrow_type, from_pandas=True)
            fits = (
                column.arrow_type != pa.int64()
                or value is None
                or value != value
                or value == int(value)
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            fits = False
        if not fits:
            return InputError(
                f"{where(index)}: {column.name}: must be {expected} (found {value!r})",
                field=column.name,
            )
    return InputError(f"{column.name}: must be {expected}", field=column.name)


def _suspects(table: pa.Table, rows: int) -> NDArray[np.bool_]:
    """Rows that break a rule of their own column or a rule between columns."""
    bad = np.zeros(rows, dtype=bool)
    known = columns()
    for column in known.values():
        if column.name not in table.column_names:
            bad |= column.required
        else:
            bad |= _out_of_range(column, table[column.name])
    if bad.any():  # the models below may only be shown values of the right kind
        return bad
    for kind, model in SECTIONS.items():
        names = [name for name in table.column_names if COLUMNS[name] == kind]
        if kind == "observations":
            bad |= _percentiles_cross(table, names)
        elif kind in ("workload", "configuration", "judgement") and names:
            indexed = table.select(names).append_column("", pa.array(np.arange(rows)))
            for group in indexed.group_by(names).aggregate([("", "min")]).to_pylist():
                first = group.pop("_min")
                try:
                    model.model_validate({k: v for k, v in group.items() if v is not None})
                except ValidationError:
                    bad[first] = True
    return bad


def _out_of_range(column: Column, values: pa.ChunkedArray[Any]) -> NDArray[np.bool_]:
    if column.words is not None:
        fits = pc.is_in(values, value_set=pa.array(sorted(column.words), type=pa.string()))
        bad = ~_flags(fits) & ~_flags(values.is_null())
    elif column.arrow_type in (pa.float64(), pa.int64()):
        bad = _number_out_of_range(column, values)
    else:
        bad = np.zeros(len(values), dtype=bool)
    return bad | _flags(values.is_null()) if column.required else bad


def _number_out_of_range(column: Column, values: pa.ChunkedArray[Any]) -> NDArray[np.bool_]:
    array = values.cast(pa.float64(), safe=False).to_numpy()
    bad: NDArray[np.bool_] = np.isinf(array)
    if column.minimum is not None:
        bad |= array <= column.minimum if column.open_minimum else array < column.minimum
    if column.maximum is not None:
        bad |= array > column.maximum
    if column.multiple_of is not None:
        bad |= np.where(np.isnan(array), 0.0, np.mod(array, column.multiple_of)) != 0
    return bad


def _percentiles_cross(table: pa.Table, names: list[str]) -> NDArray[np.bool_]:
    bad: NDArray[np.bool_] = np.zeros(len(table), dtype=bool)
    for prefix in ("", "read_", "write_"):
        lowest = np.full(len(table), -np.inf)
        for level in ("p50", "p99", "p999"):
            name = f"{prefix}latency_{level}_ns"
            if name in names:
                values = table[name].to_numpy()
                bad |= values < lowest
                lowest = np.fmax(lowest, values)
    return bad


def _flags(values: Any) -> NDArray[np.bool_]:
    return np.asarray(values, dtype=np.bool_)


def _refuse(table: pa.Table, bad: NDArray[np.bool_], where: Where) -> None:
    if not bad.any():
        return
    index = int(np.argmax(bad))
    row = {name: table[name][index].as_py() for name in table.column_names}
    from_row(row, where=where(index))
    raise AssertionError(f"{where(index)} breaks a rule that the row models do not know: {row}")
