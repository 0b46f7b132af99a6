"""What is set here lies in trees of the tests' own making."""

from __future__ import annotations

from pathlib import Path

import pytest

from iojoule.measure.host import host_files
from tests.settable import Below


@pytest.fixture(autouse=True)
def settable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files of a made-up /sys and /etc may be set and put back, too."""
    for name in ("SETTABLE", "OWN"):
        monkeypatch.setattr(host_files, name, (*getattr(host_files, name), Below(tmp_path, "*")))
