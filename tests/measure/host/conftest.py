"""What is set here lies in trees of the tests' own making."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.measure.host import changes, text_file


@pytest.fixture(autouse=True)
def settable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files of a made-up /sys and /etc may be put back, too."""
    monkeypatch.setattr(changes, "SETTABLE", (*changes.SETTABLE, tmp_path))
    monkeypatch.setattr(text_file, "FOLDERS", (*text_file.FOLDERS, tmp_path))
