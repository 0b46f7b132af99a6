"""Programs of a test's own in place of the system's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iojoule.datasets import programs

SYSTEM = (Path("/usr/bin"), Path("/bin"))


def look_in(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Have programs looked for in these folders and nowhere else, by root and by others."""
    monkeypatch.setattr(programs, "FOLDERS", folders)
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
