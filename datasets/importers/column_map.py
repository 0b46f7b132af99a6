"""Column maps: a TOML file that says what the columns of a table mean.

Every feature once (units: see `importers/units.py`):

    schema_version = 1

    [source]                      # goes into the provenance, all optional
    citation = "Doe et al., 2024"
    licence = "MIT"
    url = "https://example.org/data"

    [csv]                         # only where it differs from this
    delimiter = ","
    missing = [""]                # cells that mean unknown

    [constants]                   # field = value, the same for every row
    device_model = "samsung-980-pro-1tb"

    [columns]                     # field = "column", or a table:
    queue_depth = "iodepth"
    request_bytes = { column = "bs", unit = "fio-size" }          # 4k, 128K, 1m
    latency_mean_ns = { column = "lat_us", unit = "us", required = true }
    operation = { column = "rw", values = { randread = "read", randwrite = "write" } }
    submission_polling = { column = "sqpoll", values = { "1" = true }, default = false }
    # several columns are added; a factor is another field, or a column with a unit:
    cpu_utilisation = { columns = ["usr", "sys"], unit = "%", times = { field = "jobs" } }
    iops = { column = "bw", unit = "MiB/s", divided_by = { field = "request_bytes" } }
    # running sum of a rate over the rows above, each lasting so many seconds:
    host_bytes_written_since_purge = { column = "bw", unit = "MiB/s", cumulative_seconds = 1 }

    [columns.context_switches_per_second]        # the same as a table of its own
    column = "ctx"
    unit = "1"
    divided_by = { column = "runtime", unit = "ms" }

    [[rows]]                      # rules in order, later ones win; conditions must all hold
    where = { column = "path", matches = "^bs_4_proc" }
    set = { session_id = "processes" }

    [[rows]]
    where = [{ column = "dir", equals = "read" }, { column = "rw", matches = "write" }]
    exclude = "readers beside a writer"    # kept in the provenance with this reason

    [long]                        # only where a row states one quantity of a run, by its name
    quantity = "quantity"         # column with the name, which becomes a column of `value`s
    value = "value"
    by = ["size", "depth"]        # rows that agree in these columns are one measurement

    [gate]                        # only where Little's law cannot hold; needs a reason
    littles_law = "skip"
    reason = "latencies were read off a plot"

A cell beats a constant, a row rule beats both. A unit may be left out where the field has none or
where the column bears the field's own name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from iojoule.datasets.arrow import columns
from iojoule.datasets.errors import InputError, SchemaVersionError, close_names
from iojoule.datasets.importers.units import COUNT, UNITS, Unit, unit, units_of
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.provenance import unreadable
from iojoule.datasets.schema import COLUMNS

MAP_VERSION = 1
"""Version of the form of column maps; a newer one is refused."""

Word = bool | int | float | str


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Part):
    """Whom the table comes from, for the provenance."""

    citation: str | None = None
    licence: str | None = None
    url: str | None = None


class CsvForm(_Part):
    """How the file is written."""

    delimiter: str = Field(default=",", min_length=1, max_length=1)
    missing: tuple[str, ...] = ("",)


class Factor(_Part):
    """What a column is multiplied or divided by: another field or another column."""

    field: str | None = None
    column: str | None = None
    unit: str = "1"

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if (self.field is None) == (self.column is None):
            raise ValueError("name either a field or a column")
        return self


class ColumnRule(_Part):
    """How one field is read from a table."""

    column: str | None = None
    columns: tuple[str, ...] = ()
    unit: str | None = None
    values: dict[str, Word] | None = None
    default: Word | None = None
    required: bool = False
    times: Factor | None = None
    divided_by: Factor | None = None
    cumulative_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.column is None) == (not self.columns):
            raise ValueError("name either a column or columns to be added")
        if self.values is not None and (self.unit is not None or self.columns):
            raise ValueError("values are words of one column; they have no unit")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The columns whose numbers are added."""
        return self.columns if self.column is None else (self.column,)


class Condition(_Part):
    """A test of one cell."""

    column: str
    equals: str | None = None
    matches: str | None = None

    @field_validator("matches")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if (self.equals is None) == (self.matches is None):
            raise ValueError("say either equals or matches")
        return self

    def holds(self, cell: str) -> bool:
        """Whether a cell passes the test."""
        if self.matches is not None:
            return re.search(self.matches, cell) is not None
        return cell == self.equals


class RowRule(_Part):
    """What is different about the rows that meet all conditions."""

    where: tuple[Condition, ...]
    set: dict[str, Word] = {}
    exclude: str | None = Field(default=None, min_length=1)

    @field_validator("where", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if (self.exclude is None) == (not self.set):
            raise ValueError("say either set or exclude")
        return self


class LongForm(_Part):
    """A table that states one quantity a row: which rows are one measurement."""

    quantity: str
    value: str
    by: tuple[str, ...] = Field(min_length=1)


class Gate(_Part):
    """Whether Little's law is asked of the rows."""

    littles_law: Literal["check", "skip"] = "check"
    reason: str | None = None

    @model_validator(mode="after")
    def _reasoned(self) -> Self:
        if self.littles_law == "skip" and not self.reason:
            raise ValueError('reason: littles_law = "skip" needs one')
        return self


class ColumnMap(_Part):
    """What the columns of a table mean; read it with `load_column_map` or `public_map`."""

    name: str
    schema_version: int
    source: Source = Source()
    csv: CsvForm = CsvForm()
    constants: dict[str, Word] = {}
    columns: dict[str, ColumnRule]
    rows: tuple[RowRule, ...] = ()
    long: LongForm | None = None
    gate: Gate = Gate()

    @field_validator("columns", mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: {"column": v} if isinstance(v, str) else v for k, v in value.items()}


def load_column_map(path: Path | str) -> ColumnMap:
    """Read a column map.

    Raises:
        SchemaVersionError: It is written in a newer form.
        InputError: It is missing, not TOML, names an unknown field, or states a unit that is
            wrong for its field; the message names the file, the place and what would be right.
    """
    path = Path(path)
    try:
        text = read_input_text(path)
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; a column map is a TOML file") from None
    return parse_column_map(text, path.stem, str(path))


def public_maps() -> list[str]:
    """Names of the maps that come with iojoule, one per public data set."""
    folder = files("iojoule.datasets") / "public"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name[-5:] == ".toml")


def public_map(name: str) -> ColumnMap:
    """The map of a public data set by the name of its file, for instance 980pro_fio_randread.

    Raises:
        InputError: There is none of that name; names the closest.
    """
    if name not in public_maps():
        known = public_maps()
        hint = close_names(name, known) or f"; known: {', '.join(known)}"
        raise InputError(f"no public column map {name!r}{hint}")
    resource = files("iojoule.datasets") / "public" / f"{name}.toml"
    return parse_column_map(resource.read_text(encoding="utf-8"), name, f"{name}.toml")


def parse_column_map(text: str, name: str, where: str) -> ColumnMap:
    """Read a map from its text; `where` names it in messages. Raises as `load_column_map`."""
    try:
        raw = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}; see docs/measurements.md") from None
    version = raw.get("schema_version")
    if type(version) is int and version > MAP_VERSION:
        raise SchemaVersionError(
            f"{where}: a column map of version {version}, this iojoule reads up to {MAP_VERSION}; "
            "upgrade iojoule",
            field="schema_version",
        )
    if version != MAP_VERSION:
        raise InputError(
            f"{where}: schema_version is {version!r}; write schema_version = {MAP_VERSION}",
            field="schema_version",
        )
    try:
        column_map = ColumnMap.model_validate({**raw, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {place}: {reason}", field=place) from None
    _check_fields(column_map, where)
    for field, rule in column_map.columns.items():
        stated_unit(field, rule, where)
    return column_map


def map_of_fields(names: Sequence[str], constants: Mapping[str, Word]) -> ColumnMap:
    """The map of a table whose columns bear the names of the fields, in their units.

    Args:
        names: The columns.
        constants: Fields that no column states.

    Raises:
        InputError: A column is no field; names the closest.
    """
    column_map = ColumnMap(
        name="fields",
        schema_version=MAP_VERSION,
        columns={name: ColumnRule(column=name) for name in names},
        constants={name: value for name, value in constants.items() if name not in names},
    )
    _check_fields(column_map, "the table")
    return column_map


def stated_unit(field: str, rule: ColumnRule, where: str) -> Unit | None:
    """The unit of a rule's cells, checked to fit its field; None where the field has no unit.

    Raises:
        InputError: No unit where one is needed, an unknown one, or one of another dimension; the
            message names the column and the units that would be right.
    """
    target_name = columns()[field].unit
    named = ", ".join(rule.names)
    place = f"{where}: columns.{field} (column {named!r})"
    if target_name is None:
        if rule.unit not in (None, "1"):
            raise InputError(f"{place}: {field} has no unit; leave out unit = {rule.unit!r}")
        return COUNT if _is_number(field) else None
    target = UNITS[target_name]
    scale = _scale(rule, place)
    fitting = units_of(target.per(scale).dimension)
    if rule.unit is None:
        if rule.names == (field,) and scale == COUNT:
            return target
        raise InputError(f"{place}: say its unit; units that fit: {', '.join(fitting)}")
    stated = unit(rule.unit, place, fitting)
    if stated.times(scale).dimension != target.dimension:
        raise InputError(
            f"{place}: unit {rule.unit!r} cannot become {target_name}; units that fit: "
            f"{', '.join(fitting)}"
        )
    return stated


def factor_unit(factor: Factor, where: str) -> Unit:
    """The unit of a factor: that of its field, or the one its column states."""
    if factor.column is not None:
        return unit(factor.unit, f"{where} (column {factor.column!r})")
    return UNITS[columns()[factor.field or ""].unit or "1"]


def _scale(rule: ColumnRule, place: str) -> Unit:
    """What the unit of the cells is multiplied by on the way to the field."""
    scale = COUNT
    if rule.times:
        scale = scale.times(factor_unit(rule.times, f"{place}.times"))
    if rule.divided_by:
        scale = scale.per(factor_unit(rule.divided_by, f"{place}.divided_by"))
    return scale.times(UNITS["s"]) if rule.cumulative_seconds else scale


def _is_number(field: str) -> bool:
    return str(columns()[field].arrow_type) in ("double", "int64")


def _check_fields(column_map: ColumnMap, where: str) -> None:
    targets = [("constants", name) for name in column_map.constants]
    targets += [("columns", name) for name in column_map.columns]
    for name, rule in column_map.columns.items():
        factors = (rule.times, rule.divided_by)
        targets += [(f"columns.{name}", f.field) for f in factors if f and f.field is not None]
        if rule.cumulative_seconds and any(factors):
            raise InputError(f"{where}: columns.{name}: a running sum takes no factor")
    for number, row in enumerate(column_map.rows, 1):
        targets += [(f"rows[{number}].set", name) for name in row.set]
    for place, name in targets:
        if name not in COLUMNS:
            raise InputError(
                f"{where}: {place}: unknown field {name!r}{close_names(name, COLUMNS)}", field=name
            )
