"""Judging an answer by a published figure; the rules are those of docs/validation.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iojoule.datasets.findings import Asked, Direction, Form, Judged

REPEATS = 0.02
"""The thesis' own repeats differ by 1 to 2 % (000, 5.8)."""

SAME = 0.10
"""A prediction within a tenth counts as no difference."""

FACTOR = 2.0
"""An absolute figure has the right magnitude of order within a factor of two."""


@dataclass(frozen=True)
class Spread:
    """A predicted figure and its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What a prediction is worth beside the published figure."""

    predicted: Spread | None
    direction: bool
    magnitude: bool


UNANSWERED = Verdict(None, direction=False, magnitude=False)


def judge(row: Asked, found: Sequence[Spread]) -> Verdict:
    """Take the settings that a finding leaves open together, and judge the result.

    Args:
        row: A finding with a figure.
        found: The prediction for each of its settings.
    """
    one = together(row, found)
    return Verdict(one, direction=_direction(row, one.value), magnitude=_magnitude(row, one))


def judge_order(row: Asked, ranked: Sequence[Sequence[float]]) -> Verdict:
    """Judge a ranking: each neighbouring pair in order, or within 2 % of each other.

    Args:
        row: A ranking.
        ranked: Values by setting, in the published order, for each setting left open.
    """
    right = all(
        first >= second * (1.0 - REPEATS) for values in ranked for first, second in pairwise(values)
    )
    return Verdict(None, direction=right, magnitude=right)


def together(row: Asked, found: Sequence[Spread]) -> Spread:
    """The mean of the settings, in log units but for differences, or their extreme."""
    if row.over == "max":
        return max(found, key=lambda one: one.value)
    if row.over == "min":
        return min(found, key=lambda one: one.value)
    table = np.array([(one.value, one.low, one.high) for one in found])
    if row.form is Form.DIFFERENCE:
        return Spread(*(float(mean) for mean in table.mean(axis=0)))
    return Spread(*(float(mean) for mean in np.exp(np.log(np.maximum(table, 1e-300)).mean(axis=0))))


def _direction(row: Asked, value: float) -> bool:
    published = float(row.published or 0.0)
    if row.direction is Direction.LEVEL:
        top = row.published_high if row.published_high is not None else published
        enough = row.judged is Judged.AT_MOST or value >= published / FACTOR
        little = row.judged is Judged.AT_LEAST or value <= FACTOR * top
        return enough and little
    if row.form is Form.DIFFERENCE:
        return value > 0.0 if row.direction is Direction.UP else value < 0.0
    if row.direction is Direction.SAME:
        return 1.0 / (1.0 + SAME) <= value <= 1.0 + SAME
    if row.direction is Direction.NOT_DOWN:
        return value >= 1.0 - REPEATS
    if row.direction is Direction.NOT_UP:
        return value <= 1.0 + REPEATS
    stated = row.judged in (Judged.AT_LEAST, Judged.AT_MOST)
    small = 0.0 if stated or abs(published - 1.0) >= REPEATS else REPEATS
    return value > 1.0 - small if row.direction is Direction.UP else value < 1.0 + small


def _magnitude(row: Asked, one: Spread) -> bool:
    published = float(row.published or 0.0)
    top = row.published_high if row.published_high is not None else published
    reaches = one.high >= published * (1.0 - 1e-9)
    leaves = one.low <= top * (1.0 + 1e-9)
    if row.judged is Judged.AT_LEAST:
        return reaches
    if row.judged is Judged.AT_MOST:
        return leaves
    return reaches and leaves
