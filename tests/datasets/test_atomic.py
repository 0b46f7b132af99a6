"""Files are the old ones or the new ones, never a part, and nothing is left beside them."""

from __future__ import annotations

from io import BufferedRandom
from pathlib import Path

import pytest

from iojoule.datasets.atomic import write_atomically, write_text_atomically


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
