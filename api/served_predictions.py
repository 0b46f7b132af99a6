"""Flat questions answered by a service, told as `iojoule predict` tells its own answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from iojoule.api.application.fields import Where, check_names, field_value
from iojoule.api.http.predict.schemas import ROWS_MAX
from iojoule.datasets.errors import InputError, IojouleError
from iojoule.model.evaluate.quantities import ANSWERED, QUANTITIES

if TYPE_CHECKING:
    from iojoule.api.client import Client

_ROW = re.compile(r"/?configurations[/\[](\d+)\]?(/\w+)?: ")


@dataclass(frozen=True)
class ServedAnswers:
    """What a service predicted; attributes and methods as those of `predictions.Answers`."""

    columns: tuple[str, ...]
    told: dict[str, Any]
    defaults_used: dict[str, Any]
    without_effect: list[str]

    quantities = QUANTITIES
    answered = ANSWERED

    def document(self) -> dict[str, Any]:
        """The answers as one document."""
        return {
            **self.told,
            "defaults_used": self.defaults_used,
            "without_effect": self.without_effect,
            "predictions": list(self.records()),
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """One record per question: its fields, the answered, and the evidence."""
        names = (*self.columns, *ANSWERED, "evidence", "evidence_by_quantity")
        for one in self.told["predictions"]:
            yield {name: one[name] for name in names}

    def values(self) -> list[list[float | None]]:
        """One list per column of `answered`."""
        return [[one[name] for one in self.told["predictions"]] for name in ANSWERED]

    @property
    def evidence(self) -> list[str]:
        """What throughput and latency rest on, one word a question."""
        return [one["evidence"] for one in self.told["predictions"]]


def ask_service(
    client: Client,
    device: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    conditions: Mapping[str, Any],
    *,
    where: Where,
    place: str,
) -> ServedAnswers:
    """Have a service predict one row per question; asked in parts where there are many.

    Args:
        client: Of the service.
        device: Id, model or alias of the drive.
        names: Fields of the questions.
        rows: One cell a field; "" means left out.
        conditions: Of the drive, in every question that does not state them itself.
        where: Names row i, counted from 0, in messages.
        place: Names the whole in messages.

    Raises:
        IojouleError: As the service says, at the place of the question here.
    """
    check_names(names, place, (*ANSWERED, "evidence"))
    value = cache(field_value)
    asked = []
    for number, row in enumerate(rows):
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=True)}
        stated = {name: value(name, cell, where(number)) for name, cell in cells.items() if cell}
        asked.append({**conditions, **stated})
    told: dict[str, Any] = {}
    for start in range(0, len(asked), ROWS_MAX):
        try:
            part = client.predict(device, asked[start : start + ROWS_MAX]).model_dump(mode="json")
        except InputError as error:
            raise _placed(error, start, where) from None
        _join(told, part)
    return ServedAnswers(
        columns=tuple(names),
        told=told,
        defaults_used=told["defaults_used"],
        without_effect=[name for name in names if name in told["without_effect"]],
    )


def _join(told: dict[str, Any], part: dict[str, Any]) -> None:
    """Put a part of the answer to what is told already."""
    if not told:
        told |= part
        return
    told["predictions"] += part["predictions"]
    told["defaults_used"] |= part["defaults_used"]
    told["without_effect"] = [
        one for one in told["without_effect"] if one in part["without_effect"]
    ]


def _placed(error: InputError, start: int, where: Where) -> IojouleError:
    """The same error at the place of the question, instead of that in the request."""
    match = _ROW.match(error.message)
    if match is None:
        return error
    named = f"{match[2][1:]}: " if match[2] else ""
    said = f"{where(start + int(match[1]))}: {named}{error.message[match.end() :]}"
    again = type(error)(said, field=error.field)
    again.pointer, again.request_id = error.pointer, error.request_id
    return again
