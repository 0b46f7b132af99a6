"""The points of a plot as CSV: fields with units in their names, intervals and evidence."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iojoule.api.words.configurations import KNOBS
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.recommender.answer import Recommendation, Row
from iojoule.recommender.estimate import Estimate
from iojoule.recommender.fleet.plan import FrontierPoint

if TYPE_CHECKING:
    from iojoule.api.application.fleet import FrontierAnswer
    from iojoule.api.application.what_if import SweepAnswer
    from iojoule.api.plots.front import Measure

Points = tuple[list[str], list[list[Any]]]
"""Names of the columns, and rows."""


def is_table(path: Path) -> bool:
    """Whether the points are asked for and not a picture."""
    return path.suffix.lower() == ".csv"


def write_points(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write points whole or not at all; None becomes an empty cell.

    Raises:
        InputError: The file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(one) for one in row] for row in rows)
    try:
        write_text_atomically(path, text.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def front_points(found: Recommendation, measures: Sequence[Measure]) -> Points:
    """The front, the nearest misses, today's and the recommended configuration.

    Args:
        found: The answer.
        measures: What the axes show.
    """
    fields = dict.fromkeys([*(one.field for one in measures), "capacity_bytes_per_second"])
    rows = [("front", row) for row in found.pareto]
    rows += [("nearest miss", miss.row) for miss in found.nearest_misses]
    if found.current is not None:
        rows.append(("today", found.current))
    if found.recommended is not None:
        rows.append(("recommended", found.recommended))
    header = ["role", *KNOBS, *(f"{name}{end}" for name in fields for end in _ENDS)]
    return header, [[role, *_knobs(row), *_ends(row, fields)] for role, row in rows]


_ENDS = ("", "_low", "_high", "_evidence")


def _knobs(row: Row) -> list[Any]:
    return [getattr(row.configuration, name) for name in KNOBS]


def _ends(row: Row, fields: Sequence[str] | dict[str, None]) -> list[Any]:
    cells: list[Any] = []
    for name in fields:
        one: Estimate | None = getattr(row, name)
        cells += [None] * 4 if one is None else [one.value, one.low, one.high, one.evidence.value]
    return cells


def sweep_points(found: SweepAnswer, shown: str) -> Points:
    """One quantity at each point of a sweep."""
    names = [f"change.{name}" for name in found.axes]
    names += [f"{shown}{end}" for end in _ENDS] + ["feasible"]
    return names, [[each.get(name) for name in names] for each in found.records]


def frontier_points(found: FrontierAnswer) -> Points:
    """What each budget of a fleet buys."""
    names = list(FrontierPoint.model_fields)
    return names, [[getattr(point, name) for name in names] for point in found.points]
