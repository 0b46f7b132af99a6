"""The frozen list: complete, true to the public table, and unchanged."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterable
from importlib import resources
from typing import TypeGuard

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.findings import (
    Asked,
    Form,
    OutOfScope,
    frozen_papers,
    parse_paper,
)
from tests.errors import having
from tests.reference_data import PUBLIC_DATA, needs_public_data

TABLE = PUBLIC_DATA / "published_findings.csv"
CLASSES = {"micro", "interval", "gc", "idle", "apst", "numa"}
NAMED = re.compile(r"O[1-7]|X([1-9]|10)")

UNITS = {
    "ms": 1e-3,
    "us": 1e-6,
    "GiB": 2**30,
    "GiB/s": 2**30,
    "MiB/s": 2**20,
    "MiB/J": 2**20,
    "KiB": 1024,
    "%": 0.01,
    "% of capacity": 0.01,
    "min": 60,
}

ROWS = [row for paper in frozen_papers() for row in paper.findings]


def _table() -> dict[str, dict[str, str]]:
    with TABLE.open(encoding="utf-8") as stream:
        return {row["fact_id"]: row for row in csv.DictReader(stream)}


def test_is_the_list_that_was_frozen_before_any_model_was_judged() -> None:
    folder = resources.files("iojoule.datasets").joinpath("findings")
    papers = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".toml")),
        key=lambda each: each.name,
    )
    digest = hashlib.sha256(b"".join(paper.read_bytes() for paper in papers)).hexdigest()
    assert digest == "5566a0910159be7f2af3ae0bf62ea5234e615e756b5397aa7435e1d1a31c924b"


def test_every_row_is_listed_once() -> None:
    ids = [row.fact_id for row in ROWS]
    assert len(ids) == len(set(ids)) == 408
    assert sum(isinstance(row, Asked) for row in ROWS) == 318


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@needs_public_data
def test_covers_the_named_classes_and_observations() -> None:
    wanted = {
        key
        for key, row in _table().items()
        if row["class"] in CLASSES or NAMED.fullmatch(row["finding"])
    }
    assert {row.fact_id for row in ROWS} == wanted


def _in_si_units(row: Asked) -> float:
    """The published number without the prefixes that the public table writes out."""
    assert row.published is not None
    return row.published * (1e-9 if row.unit == "ns" else 1.0)


def _has_number(row: Asked | OutOfScope) -> TypeGuard[Asked]:
    return isinstance(row, Asked) and row.form is not Form.ORDER and row.published is not None


def _stated_numbers(row: Asked, stated: dict[str, str]) -> list[float]:
    """What the row may hold as its number, by the public table."""
    own = _number(stated["value"]) * UNITS.get(stated["unit"], 1.0)
    numbers = [own]
    if stated["ratio"]:
        numbers.append(float(stated["ratio"]))
    if stated["unit"] in ("bool", "class", "rank", "KiB") or own == 0.0:
        numbers.append(1.0)  # a statement, or no effect at all: the ratio is 1, or bounded by it
    if row.fact_id in ("004-044", "004-045"):
        numbers.append(1.0 - own)  # a drop
    if stated["unit"] == "%" and row.published_high is not None:
        numbers.append(1.0 + own)  # an overhead
    return numbers


@needs_public_data
def test_agrees_with_the_public_table() -> None:
    table, differing = _table(), []
    for row in ROWS:
        stated = table[row.fact_id]
        if (row.section, row.class_, row.finding) != (
            stated["section"],
            stated["class"],
            stated["finding"],
        ):
            differing.append(row.fact_id)
        elif _has_number(row):
            numbers = _stated_numbers(row, stated)
            if not any(math.isclose(_in_si_units(row), one, rel_tol=1e-6) for one in numbers):
                differing.append(row.fact_id)
    assert differing == []


AGREED_SHA256 = {
    "000": "abab8554fbcb9e14",
    "001": "07337a8a78b21fdb",
    "002": "5c4bd60b58b8bd22",
    "003": "4da7e200dd8c834c",
    "004": "7ca18667227d2ce2",
}
"""Paper -> digest of section, class, observation and number of its rows as the table has them."""


def _digests(lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Digest of the lines of each paper, in the order of their identifiers."""
    ordered = sorted(lines)
    return {
        paper: hashlib.sha256(
            "\n".join(line for fact_id, line in ordered if fact_id[:3] == paper).encode()
        ).hexdigest()[:16]
        for paper in AGREED_SHA256
    }


def _line(fact_id: str, stated: tuple[str, str, str], number: float | None) -> tuple[str, str]:
    digits = "" if number is None else f"{number:.5g}"
    return fact_id, "|".join((fact_id, *stated, digits))


def test_is_what_agreed_with_the_public_table() -> None:
    assert (
        _digests(
            _line(
                row.fact_id,
                (row.section, row.class_, row.finding),
                _in_si_units(row) if _has_number(row) else None,
            )
            for row in ROWS
        )
        == AGREED_SHA256
    )


@needs_public_data
def test_the_digests_are_those_of_the_public_table() -> None:
    table, lines = _table(), []
    for row in ROWS:
        stated = table[row.fact_id]
        number = None
        if _has_number(row):
            published = _in_si_units(row)
            numbers = [one for one in _stated_numbers(row, stated) if math.isfinite(one)]
            number = min(numbers, key=lambda one: abs(one - published))
        lines.append(
            _line(row.fact_id, (stated["section"], stated["class"], stated["finding"]), number)
        )
    assert _digests(lines) == AGREED_SHA256


def test_bounds_of_the_notes_are_no_equalities() -> None:
    by_id = {row.fact_id: row for row in ROWS if isinstance(row, Asked)}
    assert by_id["000-159"].judged == "up to"
    assert by_id["000-076"].judged == "at least"
    assert by_id["000-182"].judged == "at most"
    assert by_id["004-049"].judged == "up to"


@needs_public_data
def test_every_up_to_of_the_notes_is_judged_as_one() -> None:
    table = _table()
    for row in ROWS:
        if isinstance(row, Asked) and table[row.fact_id]["note"] == "up to":
            assert row.judged in ("up to", "at most"), row.fact_id


def test_a_ratio_without_its_denominator_is_refused() -> None:
    text = """
    schema_version = 1
    paper = "000"
    citation = "x"
    [[findings]]
    fact_id = "000-001"
    section = "1"
    class = "micro"
    status = "asked"
    device = ["a"]
    quantity = "iops"
    form = "ratio"
    published = 2.0
    judged = "value"
    over = "mean"
    direction = "up"
    configuration = {}
    """
    with pytest.raises(InputError, check=having(field="findings.0.asked")):
        parse_paper(text, "x.toml")


def test_settings_left_open_are_each_asked() -> None:
    row = next(row for row in ROWS if row.fact_id == "000-175")
    assert isinstance(row, Asked)
    pairs = row.pairs()
    assert len(pairs) == 4  # two operations, two patterns
    assert all(one["engine"] == "spdk" and other["engine"] == "libaio" for one, other in pairs)
