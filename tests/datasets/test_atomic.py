"""Files are the old ones or the new ones, never a part, and nothing is left beside them."""

from __future__ import annotations

import os
import stat
from io import BufferedRandom
from pathlib import Path

import pytest

from iojoule.datasets.atomic import output_file, write_atomically, write_text_atomically
from iojoule.datasets.errors import InputError


def test_a_text_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    for text in ("one", "zwei \N{EURO SIGN}"):
        write_text_atomically(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_can_be_read_back(tmp_path: Path) -> None:
    def write(stream: BufferedRandom) -> bytes:
        stream.write(b"abc")
        stream.seek(1)
        return stream.read()

    assert write_atomically(tmp_path / "data", write) == b"bc"
    assert (tmp_path / "data").read_bytes() == b"abc"


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old")

    def write(stream: BufferedRandom) -> None:
        stream.write(b"half of the")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_text_atomically(tmp_path / "nowhere" / "note", "text")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path: Path, there: bool) -> None:
    (tmp_path / "kept").mkdir()
    if there:
        (tmp_path / "kept" / "note").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("kept/note")
    write_text_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "kept" / "note").read_text() == "new"
    assert [one.name for one in (tmp_path / "kept").iterdir()] == ["note"]


def test_a_link_is_replaced_where_none_is_followed(tmp_path: Path) -> None:
    link, other = tmp_path / "link", tmp_path / "other"
    other.write_text("old")
    link.symlink_to(other)
    write_atomically(link, lambda stream: stream.write(b"new"), follow=False)
    assert not link.is_symlink()
    assert (link.read_text(), other.read_text()) == ("new", "old")


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path, linked: bool) -> None:
    pipe = path = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    with pytest.raises(InputError, match=path.name), output_file(path):
        write_text_atomically(path, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert path.is_symlink() == linked


@pytest.mark.parametrize("name", ["", "/", "..", "nowhere/note"])
def test_a_path_that_names_no_file_is_an_input_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError), output_file(Path(name)):
        write_text_atomically(Path(name), "text")
    assert not list(tmp_path.iterdir())
