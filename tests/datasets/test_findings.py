"""The frozen list: complete, true to the public table, and unchanged."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.findings import (
    FROZEN_SHA256,
    Asked,
    Form,
    OutOfScope,
    frozen_papers,
    frozen_sha256,
    parse_paper,
)

TABLE = Path(__file__).parents[4] / "shared" / "data" / "published_findings.csv"
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

needs_table = pytest.mark.skipif(not TABLE.is_file(), reason="the public table is not here")

ROWS = [row for paper in frozen_papers() for row in paper.findings]


def _table() -> dict[str, dict[str, str]]:
    with TABLE.open(encoding="utf-8") as stream:
        return {row["fact_id"]: row for row in csv.DictReader(stream)}


def test_is_the_list_that_was_frozen() -> None:
    assert frozen_sha256() == FROZEN_SHA256


def test_every_row_is_listed_once() -> None:
    ids = [row.fact_id for row in ROWS]
    assert len(ids) == len(set(ids)) == 408
    assert sum(isinstance(row, Asked) for row in ROWS) == 318


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@needs_table
def test_covers_the_named_classes_and_observations() -> None:
    wanted = {
        key
        for key, row in _table().items()
        if row["class"] in CLASSES or NAMED.fullmatch(row["finding"])
    }
    assert {row.fact_id for row in ROWS} == wanted


@needs_table
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fact_id)
def test_agrees_with_the_public_table(row: Asked | OutOfScope) -> None:
    stated = _table()[row.fact_id]
    assert row.section == stated["section"]
    assert row.class_ == stated["class"]
    assert row.finding == stated["finding"]
    if isinstance(row, OutOfScope) or row.form is Form.ORDER or row.published is None:
        return
    published = row.published * (1e-9 if row.unit == "ns" else 1.0)
    own = _number(stated["value"]) * UNITS.get(stated["unit"], 1.0)
    known = [own]
    if stated["ratio"]:
        known.append(float(stated["ratio"]))
    if stated["unit"] in ("bool", "class", "rank", "KiB") or own == 0.0:
        known.append(1.0)  # a statement, or no effect at all: the ratio is 1, or bounded by it
    if row.fact_id in ("004-044", "004-045"):
        known.append(1.0 - own)  # a drop
    if stated["unit"] == "%" and row.published_high is not None:
        known.append(1.0 + own)  # an overhead
    assert any(math.isclose(published, one, rel_tol=1e-6) for one in known), (published, known)


def test_bounds_of_the_notes_are_no_equalities() -> None:
    by_id = {row.fact_id: row for row in ROWS if isinstance(row, Asked)}
    assert by_id["000-159"].judged == "up to"
    assert by_id["000-076"].judged == "at least"
    assert by_id["000-182"].judged == "at most"
    assert by_id["004-049"].judged == "up to"


@needs_table
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
    with pytest.raises(InputError, match="000-001"):
        parse_paper(text, "x.toml")


def test_settings_left_open_are_each_asked() -> None:
    row = next(row for row in ROWS if row.fact_id == "000-175")
    assert isinstance(row, Asked)
    pairs = row.pairs()
    assert len(pairs) == 4  # two operations, two patterns
    assert all(one["engine"] == "spdk" and other["engine"] == "libaio" for one, other in pairs)
