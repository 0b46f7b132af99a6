"""Files that users name are read up to a size, and faults of their JSON and TOML are one kind."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.application.fields import read_conditions
from iojoule.api.application.fleet import read_servers
from iojoule.api.application.recommend import stated_value
from iojoule.datasets import input_file
from iojoule.datasets.catalogue import parse_toml
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.findings import parse_paper
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.column_map import load_column_map, parse_column_map
from iojoule.datasets.importers.csv import run_import
from iojoule.datasets.input_file import json_of, read_input, read_input_text, toml_of
from iojoule.datasets.io_summary import IoSource, parse_summary
from iojoule.datasets.profile import read_profile
from iojoule.datasets.profile.document import parse_profile
from iojoule.datasets.store import read_dataset
from iojoule.measure.campaign.folder import JsonFolder, RunRecord
from iojoule.measure.campaign.plan import load_plan, parse_plan
from iojoule.model.recipe import parse_recipe
from iojoule.recommender.fleet.document import load_fleet
from iojoule.recommender.request import load_workload
from iojoule.recommender.workloads.statistics import statistics_summary

ENDLESS = Path("/dev/zero")


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes("a\r\n\N{EURO SIGN}".encode())
    assert read_input(path, 6) == path.read_bytes()
    assert read_input_text(path) == "a\n\N{EURO SIGN}"
    with pytest.raises(OSError, match="larger"):
        read_input(path, 5)


@pytest.mark.parametrize(
    "read",
    [
        read_profile,
        load_workload,
        load_fleet,
        load_column_map,
        lambda path: load_plan(str(path)),
        lambda path: read_conditions(path, {}),
        lambda path: run_import([path], ImportOptions()),
    ],
    ids=["profile", "workload", "fleet", "column map", "plan", "conditions", "csv"],
)
def test_a_file_without_end_is_refused(
    read: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_file, "INPUT_BYTES_MAX", 1 << 20)
    path = tmp_path / "some.toml"
    path.symlink_to(ENDLESS)
    with pytest.raises(IojouleError):
        read(path)


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
def test_every_fault_of_json_is_a_value_error(text: str | bytes) -> None:
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


HOSTILE = {"digits": "x = " + "9" * 5000, "lists": "x = " + "[" * 100_000, "date": "x = 2026-99-99"}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_fault_of_toml_is_one_error(name: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_of(HOSTILE[name])


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "read",
    [
        load_workload,
        load_fleet,
        read_servers,
        lambda path: read_conditions(path, {}),
        lambda path: parse_toml(path.read_text(), "x"),
        lambda path: parse_paper(path.read_text(), "x"),
        lambda path: parse_column_map(path.read_text(), "x", "x"),
        lambda path: parse_plan(path.read_text(), "x"),
        lambda path: parse_recipe(path.read_text(), {}, "x"),
    ],
    ids=[
        "workload",
        "fleet",
        "servers",
        "conditions",
        "catalogue",
        "paper",
        "column map",
        "plan",
        "recipe",
    ],
)
def test_files_of_faulty_toml_are_refused(
    read: Callable[[Path], Any], name: str, tmp_path: Path
) -> None:
    path = tmp_path / "some.toml"
    path.write_text(HOSTILE[name])
    with pytest.raises(IojouleError):
        read(path)


def test_what_is_no_toml_is_a_word() -> None:
    assert stated_value("9" * 5000) == "9" * 5000


@pytest.mark.parametrize("text", [b'{"schema_version": ' + b"9" * 5000 + b"}", b"[" * 100_000])
def test_a_profile_is_refused_for_it(text: bytes) -> None:
    with pytest.raises(IojouleError):
        parse_profile(text, "x")
