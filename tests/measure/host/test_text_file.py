"""A file of settings is there, with its content, or not."""

from pathlib import Path

import pytest

from iojoule.measure.errors import HostStateError
from iojoule.measure.host.changes import TextFile
from iojoule.measure.host.journal import HostState


def test_it_is_written_and_taken_away_again(tmp_path: Path) -> None:
    path = tmp_path / "71-rule"
    file = TextFile(str(path))
    with HostState("drive", tmp_path / "journals") as state:
        state.set(file, "a rule\n")
        assert path.read_text() == file.get() == "a rule\n"
    assert not path.exists()


def test_what_was_in_it_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "71-rule"
    path.write_text("mine\n")
    with HostState("drive", tmp_path / "journals") as state:
        state.set(TextFile(str(path)), "a rule\n")
    assert path.read_text() == "mine\n"


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    file = TextFile(str(tmp_path / "absent" / "rule"))
    assert not file.is_there()
    with pytest.raises(HostStateError, match="cannot be written"):
        file.set("a rule\n")
