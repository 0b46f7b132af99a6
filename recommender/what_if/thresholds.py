"""From which value on the answer changes: along each numeric axis, with all others held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from iojoule.datasets.schema import Section
from iojoule.recommender.what_if.sweep import Point, Record
from iojoule.recommender.workload import Free

CLOSE = 0.005
"""A threshold is sought until its two sides are so close, relative to the value."""


NOTHING_MEETS = "nothing meets the SLA"


class Threshold(Section):
    """Where the answer changes along one axis.

    Attributes:
        field: The axis.
        held: The other swept fields, and what they are held at.
        below: Greatest value that still has the answer before; `above` the least with the next.
        before: The answer below, in words; `after` above.
    """

    field: str
    held: dict[str, Any]
    below: float
    above: float
    before: str
    after: str


def answer_of(record: Record) -> str:
    """What is recommended, in a line; the same words mean the same answer."""
    if not record["feasible"]:
        return NOTHING_MEETS
    said = [
        f"{name} {value}"
        for name in Free.model_fields
        if (value := record[f"recommended_{name}"]) is not None
    ]
    if record["cap_kept_by"] is not None:
        said.append(f"cap kept by {record['cap_kept_by']}")
    return ", ".join(said)


def thresholds(
    points: Sequence[Point],
    records: Sequence[Record],
    axes: Sequence[str],
    ask: Callable[[Mapping[str, Any]], Record] | None = None,
) -> list[Threshold]:
    """Every change of the answer between neighbouring values of a numeric axis.

    Args:
        points: What was changed.
        records: What followed, one a point.
        axes: What was swept.
        ask: Answers further points, so that a threshold can be sought between two of them; None
            leaves it at the neighbours.
    """
    found = []
    for field in axes:
        for held, line in _lines(points, records, axes, field):
            swept = {name: value for name, value in held.items() if name in axes}
            for (low, one), (high, other) in pairwise(line):
                for below, above, before, after in _changes(
                    (low, answer_of(one)), (high, answer_of(other)), _asker(field, held, ask)
                ):
                    found.append(
                        Threshold(field=field, held=swept, below=below, above=above,
                                  before=before, after=after)
                    )  # fmt: skip
    return found


Ask = Callable[[float], str]
"""The answer at a value of an axis."""


def _asker(
    field: str, held: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], Record] | None
) -> Ask | None:
    return None if ask is None else lambda value: answer_of(ask({**held, field: value}))


def _changes(
    low: tuple[float, str], high: tuple[float, str], ask: Ask | None
) -> Iterator[tuple[float, float, str, str]]:
    """Every change between two points that differ: where, from what to what.

    Each is sought by halving towards the first value with another answer; then what is left above.
    """
    while low[1] != high[1]:
        found = high
        if ask is not None:
            low, found = _first(low, high, ask)
        yield low[0], found[0], low[1], found[1]
        low = found


def _first(
    low: tuple[float, str], high: tuple[float, str], ask: Ask
) -> tuple[tuple[float, str], tuple[float, str]]:
    """Neighbours as close as is asked for: the last with the answer of `low`, and another one."""
    before = low[1]
    while high[0] - low[0] > CLOSE * abs(high[0]):
        middle = 0.5 * (low[0] + high[0])
        told = ask(middle)
        if told == before:
            low = (middle, told)
        else:
            high = (middle, told)
    return low, high


def _lines(
    points: Sequence[Point], records: Sequence[Record], axes: Sequence[str], field: str
) -> Iterator[tuple[dict[str, Any], list[tuple[float, Record]]]]:
    """The points that differ in one field only, by its rising value."""
    lines: dict[str, tuple[dict[str, Any], list[tuple[float, Record]]]] = {}
    for point, record in zip(points, records, strict=True):
        value = point.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if record["problem"] is not None:
            continue
        held = {name: other for name, other in point.items() if name != field}
        lines.setdefault(repr(sorted(held.items())), (held, []))[1].append((float(value), record))
    for held, line in lines.values():
        yield held, sorted(line, key=lambda each: each[0])
