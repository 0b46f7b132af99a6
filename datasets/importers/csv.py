"""Tables: `iojoule import csv FILE [--columns MAP.toml]`.

A table whose columns bear the names of fields, in their units, needs no map. Otherwise the map (see
`column_map`) says which column is which field, in which unit. Rows are checked like any measurement
and by Little's law; every complaint names the file, the line and the column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iojoule.datasets.arrow import columns
from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.column_map import (
    MAP_VERSION,
    ColumnMap,
    ColumnRule,
    CsvForm,
    Factor,
    LongForm,
    RowRule,
    factor_unit,
    load_column_map,
    map_of_fields,
    stated_unit,
)
from iojoule.datasets.importers.units import COUNT, FIO_SIZE, UNITS, conversion, parse_fio_size
from iojoule.datasets.input_file import read_input
from iojoule.datasets.littles_law import check_littles_law
from iojoule.datasets.provenance import ExcludedRow, Provenance, SourceFile, unreadable
from iojoule.datasets.schema import COLUMNS
from iojoule.datasets.store import Dataset, concat

_SWITCHES = {"1": True, "1.0": True, "true": True, "yes": True, "on": True}
_SWITCHES |= {"0": False, "0.0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class _Table:
    """The cells of a file as text; `lines[i]` is where row i ends in the file."""

    path: Path
    header: dict[str, int]
    rows: list[list[str]]
    lines: list[int]
    missing: frozenset[str]

    def where(self, row: int, column: str) -> str:
        return f"{self.path}, line {self.lines[row]}, column {column!r}"

    def cell(self, row: int, column: str) -> str:
        return self.rows[row][self.header[column]].strip()


def import_csv(path: Path | str, column_map: ColumnMap | Path | str) -> Dataset:
    """Read a table of measurements.

    Args:
        path: A CSV file in UTF-8 with a header line.
        column_map: What its columns mean, or the TOML file that says so.

    Returns:
        One measurement per row that no rule excludes, in the file's order. The provenance names
        the file with its hash, licence and citation, the excluded rows with their reasons, and
        rows more than 3 % off Little's law.

    Raises:
        InputError: The file or the map is not what it must be; names line, column and remedy.
        DataQualityError: A row is more than 8 % off Little's law.
    """
    path = Path(path)
    if not isinstance(column_map, ColumnMap):
        column_map = load_column_map(column_map)
    table = _read(path, column_map)
    if column_map.long is not None:
        table = _with_quantities(table, column_map.long)
    _check_columns(table, column_map)
    reasons = [_reason(table, row, column_map.rows) for row in range(len(table.rows))]
    usable = [row for row, reason in enumerate(reasons) if reason is None]
    if column_map.long is not None:
        usable = _joined(table, column_map.long, usable)
    source = SourceFile.of(path, **column_map.source.model_dump())
    provenance = Provenance(
        importer=f"csv (map {column_map.name})",
        sources=(source,),
        warnings=() if usable else (f"{path.name}: every row is excluded by the map",),
        excluded=tuple(
            ExcludedRow(source=path.name, row=table.lines[row], reason=reason)
            for row, reason in enumerate(reasons)
            if reason is not None
        ),
    )

    def where(index: int) -> str:
        return f"{path}, line {table.lines[usable[index]]}"

    dataset = Dataset.from_columns(_fields(table, column_map, usable), provenance, where=where)
    if column_map.gate.littles_law == "skip":
        note = f"{path.name}: Little's law was not asked: {column_map.gate.reason}"
        return Dataset(dataset.table, provenance.with_warnings([note]))
    warnings = check_littles_law(dataset, path, lambda index: f"line {table.lines[usable[index]]}")
    return Dataset(dataset.table, provenance.with_warnings(warnings))


def run_import(paths: Sequence[Path], options: ImportOptions) -> Dataset:
    """The importer as the registry knows it: every file read with the one map, put together.

    Without a map the columns are fields; raises as `import_csv`.
    """
    if options.columns is None:
        return concat([import_csv(path, _own_map(path, options.constants)) for path in paths])
    column_map = load_column_map(options.columns)
    return concat([import_csv(path, column_map) for path in paths])


def _own_map(path: Path, constants: Mapping[str, Any]) -> ColumnMap:
    """The map of a table whose columns bear the names of fields.

    Raises:
        InputError: Other columns; names them and says what a map looks like.
    """
    lines = [line for line in _text(path).splitlines() if line.strip()]
    head = lines[0] if lines else ""
    delimiter = max((",", ";", "\t"), key=head.count)
    try:
        names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
    except csv.Error as error:
        raise InputError(
            f"{path}: the line of names is not CSV: {error}; check quotes and delimiter"
        ) from None
    foreign = [name for name in names if name not in COLUMNS]
    if foreign:
        own = next((name for name in names if name in COLUMNS), "iops")
        shown = ", ".join(map(repr, foreign[:5]))
        raise InputError(
            f"{path}: {len(foreign)} of {len(names)} columns are no fields of the schema ({shown})"
            f"{close_names(foreign[0], COLUMNS)}; say what they are with --columns MAP.toml, which "
            f"begins: schema_version = {MAP_VERSION}, then [columns] with a line for each field, "
            f'such as {own} = {{ column = "{foreign[0]}", unit = "..." }}; columns it does not '
            "name are left out",
            field=foreign[0],
        )
    column_map = map_of_fields(names, constants)
    return column_map.model_copy(update={"csv": CsvForm(delimiter=delimiter)})


def _text(path: Path) -> str:
    try:
        data = read_input(path)
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); convert the file, "
            "for instance with iconv -f latin1 -t utf-8"
        ) from None


def _read(path: Path, column_map: ColumnMap) -> _Table:
    text = _text(path)
    # newline="" semantics: the reader itself splits lines, so quoted ones may hold line breaks.
    reader = csv.reader(
        text.splitlines(keepends=True), delimiter=column_map.csv.delimiter, strict=True
    )
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not header:
                header = [name.strip() for name in cells]
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(cells)} cells where the header names "
                    f"{len(header)} columns; complete the row (is the file cut off?)"
                )
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: not CSV: {error}; check quotes and delimiter"
        ) from None
    if not rows:
        raise InputError(f"{path}: no rows below a header line; is it the right file?")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{path}, line 1: column {twice[0]!r} is named twice; rename one")
    columns = {name: index for index, name in enumerate(header)}
    return _Table(path, columns, rows, lines, frozenset(column_map.csv.missing))


def _with_quantities(table: _Table, long: LongForm) -> _Table:
    """The table with a column for each quantity, filled in the rows that state it.

    Raises:
        InputError: It lacks a column that `long` names.
    """
    for name in (long.quantity, long.value, *long.by):
        if name not in table.header:
            raise InputError(
                f"{table.path}: no column {name!r}, which long names"
                f"{close_names(name, table.header)} The file has: {', '.join(table.header)}",
                field="long",
            )
    quantities = [table.cell(row, long.quantity) for row in range(len(table.rows))]
    names = [name for name in dict.fromkeys(quantities) if name not in table.header]
    header = {**table.header, **{n: len(table.header) + i for i, n in enumerate(names)}}
    rows = [
        [
            *cells,
            *(table.cell(row, long.value) if name == quantities[row] else "" for name in names),
        ]
        for row, cells in enumerate(table.rows)
    ]
    return _Table(table.path, header, rows, table.lines, table.missing)


def _joined(table: _Table, long: LongForm, usable: list[int]) -> list[int]:
    """Put the quantities of one measurement into its first row; in place. Returns those rows.

    Raises:
        InputError: Two rows of one measurement state the same quantity.
    """
    firsts: dict[tuple[str, ...], int] = {}
    for row in usable:
        first = firsts.setdefault(tuple(table.cell(row, name) for name in long.by), row)
        place = table.header[table.cell(row, long.quantity)]
        if first != row and table.rows[first][place]:
            raise InputError(
                f"{table.where(row, long.quantity)}: line {table.lines[first]} states the same "
                f"quantity of the same run; name the column that tells them apart in long.by"
            )
        table.rows[first][place] = table.rows[row][place]
    return list(firsts.values())


def _check_columns(table: _Table, column_map: ColumnMap) -> None:
    wanted = [
        (f"columns.{field}", name)
        for field, rule in column_map.columns.items()
        for name in (*rule.names, *(f.column for f in (rule.times, rule.divided_by) if f))
        if name is not None
    ]
    wanted += [
        (f"rows[{number}].where", condition.column)
        for number, row in enumerate(column_map.rows, 1)
        for condition in row.where
    ]
    for place, name in wanted:
        if name not in table.header:
            raise InputError(
                f"{table.path}: no column {name!r}, which {place} of map {column_map.name} names"
                f"{close_names(name, table.header)} The file has: {', '.join(table.header)}",
                field=place,
            )


def _applies(table: _Table, row: int, rule: RowRule) -> bool:
    return all(condition.holds(table.cell(row, condition.column)) for condition in rule.where)


def _reason(table: _Table, row: int, rules: Sequence[RowRule]) -> str | None:
    """Why a row is left out; None if it is not."""
    for rule in rules:
        if rule.exclude is not None and _applies(table, row, rule):
            return rule.exclude
    return None


def _fields(table: _Table, column_map: ColumnMap, usable: list[int]) -> dict[str, list[Any]]:
    """The values of every field for the rows that are kept."""
    fields: dict[str, list[Any]] = {
        name: [value] * len(usable) for name, value in column_map.constants.items()
    }
    rules = column_map.columns
    plain = {name: rule for name, rule in rules.items() if not (rule.times or rule.divided_by)}
    for name, rule in plain.items():
        cells = _column(table, name, rule, usable)
        constant = column_map.constants.get(name)
        fields[name] = [constant if cell is None else cell for cell in cells]
    assigned = _apply_row_rules(table, column_map, usable, fields)
    for name, rule in rules.items():
        if name not in plain:
            values = _with_factors(table, name, rule, usable, fields)
            old = fields.get(name, [None] * len(usable))
            fields[name] = [
                before if (name, index) in assigned or new is None else new
                for index, (before, new) in enumerate(zip(old, values, strict=True))
            ]
    return fields


def _apply_row_rules(
    table: _Table, column_map: ColumnMap, usable: list[int], fields: dict[str, list[Any]]
) -> set[tuple[str, int]]:
    assigned: set[tuple[str, int]] = set()
    for rule in column_map.rows:
        for index, row in enumerate(usable):
            if rule.set and _applies(table, row, rule):
                for name, value in rule.set.items():
                    fields.setdefault(name, [None] * len(usable))[index] = value
                    assigned.add((name, index))
    return assigned


def _column(table: _Table, field: str, rule: ColumnRule, usable: list[int]) -> list[Any]:
    """The values of one field from its own cells, None where they say unknown."""
    read = _reader(table, field, rule)
    if rule.cumulative_seconds is None:
        return [read(row) for row in usable]
    sums: list[float] = []
    total = 0.0
    for row in range(len(table.rows)):
        sums.append(total)
        total += (read(row) or 0.0) * rule.cumulative_seconds
    return [sums[row] for row in usable]


def _reader(table: _Table, field: str, rule: ColumnRule) -> Callable[[int], Any]:
    """A function from a row to the value of a field in the field's unit."""
    kind = str(columns()[field].arrow_type)
    place = f"map of {table.path.name}"
    source = stated_unit(field, rule, place)
    factor = 1.0
    if source is not None and not (rule.times or rule.divided_by):
        target = UNITS[columns()[field].unit or "1"]
        factor = conversion(source.times(UNITS["s"]) if rule.cumulative_seconds else source, target)

    def read(row: int) -> Any:
        cells = [_cell_or_none(table, row, name) for name in rule.names]
        if None in cells:
            if rule.required or (columns()[field].required and rule.default is None):
                name = rule.names[cells.index(None)]
                raise InputError(
                    f"{table.where(row, name)}: the cell is empty but {field} is needed; fill it "
                    "in or exclude the row in the map"
                )
            return rule.default
        texts = [cell for cell in cells if cell is not None]
        if rule.values is not None:
            return _word(table, row, rule, texts[0])
        if kind == "bool":
            return _switch(table, row, rule.names[0], texts[0])
        if kind == "string":
            return texts[0]
        named = zip(rule.names, texts, strict=True)
        total = sum(_number(table, row, name, text, rule.unit) for name, text in named) * factor
        whole = kind == "int64" and math.isclose(total, round(total), rel_tol=1e-9)
        return round(total) if whole else total

    return read


def _cell_or_none(table: _Table, row: int, column: str) -> str | None:
    cell = table.cell(row, column)
    return None if cell in table.missing else cell


def _word(table: _Table, row: int, rule: ColumnRule, text: str) -> Any:
    assert rule.values is not None
    if text not in rule.values:
        raise InputError(
            f"{table.where(row, rule.names[0])}: {text!r} is not among the values of the map "
            f"({', '.join(rule.values)}); add it or exclude the row"
        )
    return rule.values[text]


def _switch(table: _Table, row: int, column: str, text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise InputError(
            f"{table.where(row, column)}: {text!r} is neither true nor false; use true, false, 1, "
            "0 or say in the map what it means (values = {...})"
        )
    return _SWITCHES[text.lower()]


def _number(table: _Table, row: int, column: str, text: str, unit: str | None) -> float:
    if unit == FIO_SIZE:
        size = parse_fio_size(text)
        if size is None:
            raise InputError(
                f"{table.where(row, column)}: {text!r} is not a size like 4096, 4k or 1m; correct "
                "the cell"
            )
        return float(size)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"{table.where(row, column)}: {text!r} is not a number; correct the cell, or list it "
            "under [csv] missing in the map if it means unknown"
        )
    return number


def _with_factors(
    table: _Table, field: str, rule: ColumnRule, usable: list[int], fields: dict[str, list[Any]]
) -> list[Any]:
    place = f"map of {table.path.name}: columns.{field}"
    unit = stated_unit(field, rule, place) or COUNT
    values = _column(table, field, rule, usable)
    for factor, multiply in ((rule.times, True), (rule.divided_by, False)):
        if factor is None:
            continue
        other = factor_unit(factor, place)
        unit = unit.times(other) if multiply else unit.per(other)
        values = [
            _scaled(
                table, usable[index], value, _factor(table, factor, usable, index, fields), multiply
            )
            for index, value in enumerate(values)
        ]
    scale = conversion(unit, UNITS[columns()[field].unit or "1"])
    return [None if value is None else value * scale for value in values]


def _factor(
    table: _Table, factor: Factor, usable: list[int], index: int, fields: dict[str, list[Any]]
) -> float | None:
    if factor.column is None:
        name = factor.field or ""
        value = fields[name][index] if name in fields else columns()[name].default
        return None if value is None else float(value)
    text = _cell_or_none(table, usable[index], factor.column)
    if text is None:
        return None
    return _number(table, usable[index], factor.column, text, factor.unit)


def _scaled(
    table: _Table, row: int, value: float | None, factor: float | None, multiply: bool
) -> float | None:
    if value is None or factor is None:
        return None
    if not multiply and factor == 0:
        raise InputError(f"{table.path}, line {table.lines[row]}: divides by 0; exclude the row")
    return value * factor if multiply else value / factor
