"""Files that users name are read up to a size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.application.fields import read_conditions
from iojoule.datasets import input_file
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.importers import ImportOptions
from iojoule.datasets.importers.column_map import load_column_map
from iojoule.datasets.importers.csv import run_import
from iojoule.datasets.input_file import read_input, read_input_text
from iojoule.datasets.profile import read_profile
from iojoule.measure.campaign.plan import load_plan
from iojoule.recommender.fleet.document import load_fleet
from iojoule.recommender.request import load_workload

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
