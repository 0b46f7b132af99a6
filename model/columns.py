"""Reading columns of questions: arrays, lists or one value for all rows, as numbers and codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def refuse(bad: NDArray[np.bool_], field: str, values: Any, reason: str) -> None:
    """Refuse a column where `bad` is true anywhere, naming the first row."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"row {row + 1}: {field}: {values[row]} {reason}", field=field)


def read_column(given: Any, rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column as an array of n values, and which of them are left out (None, NaN).

    One value for all rows becomes a view without copies, which the readers below recognise.
    """
    if isinstance(given, np.ndarray) and given.dtype != object:
        values = given
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        values = np.empty(rows, dtype=object)
        values[:] = given
    else:
        one = np.empty((), dtype=object)
        one[()] = given
        values = np.broadcast_to(one, (rows,))
    return values, left_out(values)


def filled(values: NDArray[Any], missing: NDArray[np.bool_], default: Any) -> NDArray[Any]:
    """The column with `default` where a value is missing."""
    if missing.all():
        return read_column(default, len(values))[0]
    if values.dtype != object and isinstance(default, int | float):
        return np.where(missing, default, values)
    return np.where(missing, np.array(default, dtype=object), values.astype(object))


def _is_constant(values: NDArray[Any]) -> bool:
    return values.strides == (0,) and len(values) > 0


def left_out(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each value is None or NaN."""
    if _is_constant(values):
        return np.full(len(values), bool(left_out(values[:1].copy())[0]))
    if values.dtype == object:
        nothing = np.asarray(values == np.array(None, dtype=object), dtype=bool)
        return np.asarray(nothing | np.asarray(values != values, dtype=bool))
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    return np.zeros(len(values), dtype=bool)


def codes_of(field: str, values: NDArray[Any], words: tuple[str, ...]) -> Codes:
    """Places in `words`."""
    if _is_constant(values):
        return np.full(len(values), codes_of(field, values[:1].copy(), words)[0], dtype=np.intp)
    codes = np.full(len(values), -1, dtype=np.intp)
    for code, word in enumerate(words):
        codes[values == word] = code
    refuse(codes < 0, field, values, f"is not one of {', '.join(words)}")
    return codes


def whole_numbers(field: str, values: NDArray[Any], low: float, high: float) -> Floats:
    """Whole numbers from `low` to `high`."""
    if _is_constant(values):
        return np.full(len(values), whole_numbers(field, values[:1].copy(), low, high)[0])
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        bad = np.array([not _is_number(value) for value in values])
        refuse(bad, field, values, "is not a number")
        raise
    with np.errstate(invalid="ignore"):
        bad = ~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers)))
    refuse(bad, field, values, f"is not a whole number from {low:,.0f} to {high:,.0f}")
    return numbers


def optional_numbers(
    field: str, columns: Mapping[str, Any], rows: int, most: float = np.inf
) -> Floats:
    """A column of numbers from 0 to `most`, NaN where left out."""
    values, missing = read_column(columns.get(field), rows)
    if missing.all():
        return np.full(rows, np.nan)
    try:
        numbers = filled(values, missing, np.nan).astype(np.float64)
    except (TypeError, ValueError):
        bad = ~missing & np.array([not _is_number(value) for value in values])
        refuse(bad, field, values, "is not a number")
        raise
    upper = "" if most == np.inf else f" or above {most:g}"
    refuse((numbers < 0) | (numbers > most), field, values, f"is below 0{upper}")
    return numbers


def flags(field: str, columns: Mapping[str, Any], rows: int) -> Floats:
    """1 where true, 0 where false or left out."""
    values, missing = read_column(columns.get(field), rows)
    if missing.all():
        return np.zeros(rows)
    return np.asarray(filled(values, missing, False).astype(bool).astype(np.float64))


def numbers_or_nan(values: NDArray[Any]) -> Floats:
    """Numbers as they are, NaN where left out."""
    missing = left_out(values)
    if missing.all():
        return np.full(len(values), np.nan)
    return filled(values, missing, np.nan).astype(np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
