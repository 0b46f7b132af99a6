"""CPU and memory power of the emulated host, and the RAPL tree that shows it.

Energy is that of idling, of each completed command and of each byte moved: a simple truth that
measurements must reproduce.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from iojoule.measure.errors import LabError
from iojoule.measure.lab.disk_control import DiskControl

UPDATE_SECONDS = 0.02
RANGE_MICROJOULES = 262_143_328_850
"""Of a counter, as many client processors have it."""
BEFORE_WRAP_JOULES = 400.0
"""So much is left before the counters wrap when the lab begins: half a minute or so."""
_WIDTH = 20


@dataclass(frozen=True)
class Domain:
    """One counter, with its folder below the tree's root."""

    folder: str
    name: str
    idle_watts: float
    command_joules: float
    byte_joules: float

    def joules(self, seconds: float, commands: int, moved: int) -> float:
        """What it counts in that time."""
        return self.idle_watts * seconds + self.command_joules * commands + self.byte_joules * moved


PACKAGE = Domain("intel-rapl:0", "package-0", 8.0, 2e-3, 5e-8)
DOMAINS = (
    PACKAGE,
    Domain("intel-rapl:0/intel-rapl:0:0", "core", 2.0, 1.6e-3, 4e-8),
    Domain("intel-rapl:0/intel-rapl:0:1", "dram", 1.5, 1e-4, 1e-8),
    Domain("intel-rapl:1", "psys", 22.0, 2.5e-3, 7e-8),
)
"""Package contains core; psys contains package and memory, and not the drive."""


def host_joules(seconds: float, commands: int, moved: int) -> dict[str, float]:
    """Joules of the host by the name of the counter, in that time with so much I/O."""
    return {domain.name: domain.joules(seconds, commands, moved) for domain in DOMAINS}


class RaplTree:
    """A powercap tree below `root`, updated by a thread.

    The files keep inodes and length, so that a reader may leave them open.
    """

    def __init__(self, root: Path, control: DiskControl) -> None:
        self.root = root
        self._control = control
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._files: list[int] = []
        self._begin_ns = time.monotonic_ns()

    def start(self) -> None:
        """Make the tree and begin to count."""
        self.build()
        self._thread = threading.Thread(target=self._keep, name="lab-rapl", daemon=True)
        self._thread.start()

    def build(self) -> None:
        """Make the files; flat links beside the nested folders, as in sysfs."""
        for domain in DOMAINS:
            folder = self.root / domain.folder
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "name").write_text(f"{domain.name}\n")
            (folder / "max_energy_range_uj").write_text(f"{RANGE_MICROJOULES}\n")
            (folder / "enabled").write_text("1\n")
            flat = self.root / folder.name
            if flat != folder and not flat.is_symlink():
                flat.symlink_to(domain.folder)
        self._open()

    def close(self) -> None:
        """End the thread; the files stay."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._close_files()

    def missing(self) -> None:
        """Fault: the tree is not there."""
        hidden = self.root.with_name(self.root.name + ".hidden")
        if self.root.exists():
            self.root.rename(hidden)

    def unreadable(self) -> None:
        """Fault: the counters may not be read (root may all the same, and gets EISDIR)."""
        for domain in DOMAINS:
            path = self.root / domain.folder / "energy_uj"
            if path.is_file():
                path.rename(path.with_name(".energy_uj"))
                path.mkdir()

    def heal(self) -> None:
        """End every fault."""
        hidden = self.root.with_name(self.root.name + ".hidden")
        if hidden.exists():
            hidden.rename(self.root)
        for domain in DOMAINS:
            path = self.root / domain.folder / "energy_uj"
            if path.is_dir():
                path.rmdir()
                path.with_name(".energy_uj").rename(path)

    def _open(self) -> None:
        for domain in DOMAINS:
            path = self.root / domain.folder / "energy_uj"
            self._files.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o400))
        self._update()

    def _close_files(self) -> None:
        for file in self._files:
            os.close(file)
        self._files = []

    def _keep(self) -> None:
        while not self._ending.wait(UPDATE_SECONDS):
            self._update()

    def _update(self) -> None:
        try:
            status = self._control.status()
        except LabError:
            return  # the disk has gone, and the lab with it
        seconds = (status["now_ns"] - self._begin_ns) / 1e9
        commands = sum(status[f"{kind}_commands"] for kind in ("read", "write", "other"))
        moved = status["read_bytes"] + status["written_bytes"]
        for file, domain in zip(self._files, DOMAINS, strict=True):
            counted = domain.joules(max(seconds, 0.0), commands, moved) - BEFORE_WRAP_JOULES
            # blanks follow the number: a shorter one must not leave digits of a longer one behind
            text = f"{int(counted * 1e6) % RANGE_MICROJOULES}\n".ljust(_WIDTH)
            os.pwrite(file, text.encode(), 0)
