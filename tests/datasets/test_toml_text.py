import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.application.fields import read_conditions
from iojoule.api.application.fleet import read_servers
from iojoule.api.application.recommend import stated_value
from iojoule.datasets.catalogue import parse_toml
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.findings import parse_paper
from iojoule.datasets.importers.column_map import parse_column_map
from iojoule.datasets.profile.document import parse_profile
from iojoule.datasets.toml_text import toml_of
from iojoule.measure.campaign.plan import parse_plan
from iojoule.model.recipe import parse_recipe
from iojoule.recommender.fleet.document import load_fleet
from iojoule.recommender.request import load_workload

HOSTILE = {"digits": "x = " + "9" * 5000, "lists": "x = " + "[" * 100_000, "date": "x = 2026-99-99"}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_wrong_is_one_error(name: str) -> None:
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
def test_files_are_refused_for_it(read: Callable[[Path], Any], name: str, tmp_path: Path) -> None:
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
