"""Flat questions to the predictor: rows of workload, state and configuration fields.

Cells may be text (a CSV file) or values (JSON); each is judged by the schema's own models, once a
distinct combination, so that a hundred thousand rows of a sweep take as long as their distinct
values.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.input_file import read_input_text, toml_of
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import SECTIONS, AskedConditions, Section, validation_error

ASKED = ("workload", "configuration", "state", "conditions")
"""Kinds of fields that may stand in a question; conditions widen, or refuse."""

MODELS: dict[str, type[Section]] = {**SECTIONS, "conditions": AskedConditions}
"""What judges the fields of each kind: conditions of a question say what its interval is about."""

PLACES = {name: kind for kind, model in MODELS.items() for name in model.model_fields}
"""Every field name and the kind it belongs to."""

FIELDS = tuple(name for name, kind in PLACES.items() if kind in ASKED)
"""Every field that may stand in a question."""

Where = Callable[[int], str]

_ROW = re.compile(r"row (\d+): ")


@dataclass(frozen=True)
class FieldTable:
    """Rows of cells as text, "" where a field is left out.

    Attributes:
        place: Names the whole in messages, such as a file.
        names: Field of each cell.
        rows: Cells.
        lines: Where each row ends in the file; empty where there is none.
    """

    place: str
    names: list[str]
    rows: list[list[str]]
    lines: list[int]

    def where(self, row: int) -> str:
        """What messages call a row, counted from 0."""
        return f"{self.place}, line {self.lines[row]}" if self.lines else self.place


def check_names(names: Sequence[str], where: str, answered: Iterable[str]) -> None:
    """Refuse fields that the schema does not have or that the answer will hold.

    Args:
        names: The fields of a question.
        where: Names the place in messages, such as a file.
        answered: Fields of the answer, which may not stand in the question.

    Raises:
        InputError: Names the field and the closest known ones.
    """
    reserved = set(answered)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: {name} stands there twice; say it once", field=name)
        seen.add(name)
        if name in reserved or PLACES.get(name) == "observations":
            raise InputError(
                f"{where}: {name} is what a prediction answers, not part of a question; remove it",
                field=name,
            )
        if name not in FIELDS:
            raise unknown_field(name, where)


def unknown_field(name: str, where: str) -> InputError:
    """The error that names the fields closest to an unknown one."""
    meant = close_names(name, FIELDS) or "; leave it out"
    return InputError(f"{where}: unknown field {name!r}{meant}", field=name)


def field_type(name: str) -> Any:
    """The type of a field with its range, for pydantic; without the None of what is unknown."""
    known = MODELS[PLACES[name]].model_fields[name]
    kinds = [kind for kind in get_args(known.annotation) if kind is not NoneType]
    kind: Any = kinds[0] if len(kinds) == 1 else known.annotation
    return Annotated[kind, *known.metadata] if known.metadata else kind


def field_value(name: str, text: str, where: str) -> Any:
    """The value of one field from its text, as the schema types it (words stay text).

    Raises:
        InputError: No such field, or not a value of it.
    """
    if name not in FIELDS:
        raise unknown_field(name, where)
    config = ConfigDict(allow_inf_nan=False)
    adapter: TypeAdapter[Any] = TypeAdapter(field_type(name), config=config)
    try:
        value = adapter.validate_python(text)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"{where}: {name}: {said} (found {text!r})", field=name) from None
    return value.value if isinstance(value, StrEnum) else value


def read_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]], profile: DeviceProfile, where: Where
) -> dict[str, list[Any]]:
    """Turn rows of cells into columns of values, judged by the schema.

    Args:
        names: Checked field names, one a cell.
        rows: Cells; None and "" mean left out.
        profile: Its defaults stand in where a rule between fields needs a value.
        where: Names row i, counted from 0.

    Returns:
        Field -> one value per row, None = left out.

    Raises:
        InputError: An impossible value or combination; the message names row and field.
    """
    columns: dict[str, list[Any]] = {}
    for kind in ASKED:
        own = [(index, name) for index, name in enumerate(names) if PLACES[name] == kind]
        if own:
            columns.update(_read_kind(_Judge(kind, profile), own, rows, where))
    return {name: columns[name] for name in names}


class _Judge:
    """Judges the fields of one kind, each distinct combination once."""

    def __init__(self, kind: str, profile: DeviceProfile) -> None:
        self._model = MODELS[kind]
        self._fallback = {
            name: value
            for name, value in profile.defaults.items()
            if name in self._model.model_fields and self._model.model_fields[name].is_required()
        }
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def values(self, cells: tuple[Any, ...], names: Sequence[str]) -> tuple[Any, ...]:
        """The values behind the cells of a row; raises ValidationError."""
        key = (cells, tuple(map(type, cells)))  # 1, 1.0 and true are equal and not the same
        values = self._known.get(key)
        if values is None:
            given = {
                name: cell.strip() if isinstance(cell, str) else cell
                for name, cell in zip(names, cells, strict=True)
                if not _left_out(cell)
            }
            model = self._model.model_validate(self._fallback | given)
            values = tuple(getattr(model, name) if name in given else None for name in names)
            self._known[key] = values
        return values


def _left_out(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _read_kind(
    judge: _Judge, own: list[tuple[int, str]], rows: Sequence[Sequence[Any]], where: Where
) -> dict[str, list[Any]]:
    places = [index for index, _ in own]
    names = [name for _, name in own]
    found = []
    for number, row in enumerate(rows):
        try:
            found.append(judge.values(tuple([row[index] for index in places]), names))
        except ValidationError as error:
            raise validation_error(error, where(number)) from None
    columns = zip(*found, strict=True) if found else ([] for _ in names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def placed(error: InputError, where: Where) -> InputError:
    """The same error with "row N" replaced by what `where` calls that row."""
    match = _ROW.match(error.message)
    if match is None:
        return error
    place = where(int(match[1]) - 1)
    return type(error)(f"{place}: {error.message[match.end() :]}", field=error.field)


def read_conditions(file: Path | None, options: Mapping[str, Any]) -> AskedConditions:
    """Read a TOML file of conditions and lay the options over it; what is left out is unknown.

    Raises:
        InputError: Missing, not TOML, or no conditions of the schema; names file and field.
    """
    stated: dict[str, Any] = {}
    if file is not None:
        try:
            stated = toml_of(read_input_text(file))
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror}); check the path") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: not TOML: {error}") from None
    try:
        return AskedConditions.model_validate(stated | dict(options))
    except ValidationError as error:
        raise validation_error(error, str(file) if file is not None else "conditions") from None
