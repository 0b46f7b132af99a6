"""JSON files of users have one kind of fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import IojouleError
from iojoule.datasets.io_summary import IoSource, parse_summary
from iojoule.datasets.json_text import json_of
from iojoule.datasets.store import read_dataset
from iojoule.measure.campaign.folder import JsonFolder, RunRecord
from iojoule.recommender.workloads.statistics import statistics_summary


def test_a_document_is_read() -> None:
    assert json_of('{"a": [1, null]}') == json_of(b'{"a": [1, null]}') == {"a": [1, None]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff",
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "9" * 5000,
    ],
    ids=["nothing", "half", "no text", "lists in lists", "objects in objects", "long number"],
)
def test_every_fault_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_of(text)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: parse_summary(path.read_text(), "x"),
        lambda path: statistics_summary(IoSource.PROMETHEUS, path.read_text(), "x", "x", None),
        lambda path: statistics_summary(IoSource.SMARTCTL, path.read_text(), "x", "x", None),
        lambda path: JsonFolder(path.parent, "").read(path.name, RunRecord),
        read_dataset,
    ],
    ids=["summary", "prometheus", "smartctl", "campaign", "dataset"],
)
def test_files_nested_without_end_are_refused(read: Callable[[Path], Any], tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(IojouleError):
        read(path)
