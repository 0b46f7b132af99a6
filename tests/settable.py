"""What is set in tests lies in trees of their own making."""

from __future__ import annotations

from pathlib import Path

from iojoule.measure.host import host_files
from iojoule.measure.host.host_files import HostFiles


class Below(HostFiles):
    """Every file below a folder."""

    def hold(self, path: Path) -> bool:
        """Whether it is one, wherever links lead."""
        return path.resolve().is_relative_to(self.root)


def declare_all_below(folder: Path) -> None:
    """Let every file below a folder be set and put back; for processes of a test's own."""
    host_files.SETTABLE = (*host_files.SETTABLE, Below(folder, "*"))
