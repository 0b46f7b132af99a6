"""`iojoule serve` as a process of its own, on a free port of the loopback."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self


class Served:
    """A service that keeps its things in a folder; the block ends it.

    Args:
        folder: Its state.
        workers: How many jobs at a time.
        options: More of `iojoule serve`.
    """

    def __init__(self, folder: Path, *options: str, workers: int = 1) -> None:
        self.folder = folder
        self._lines: list[str] = []
        command = [sys.executable, "-c", "from iojoule.api.cli import main; main()", "serve"]
        command += ["--state", str(folder), "--port", "0", "--workers", str(workers), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.url = self._said_url()
        # read on, or the service waits for room in the pipe
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _said_url(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.append(line)
            if (found := re.search(r"listening on (http://\S+)", line)) is not None:
                return found[1]
        raise AssertionError(self.log())

    def _read(self) -> None:
        assert self.process.stderr is not None
        self._lines.extend(self.process.stderr)

    def log(self) -> str:
        """What it wrote to standard error so far."""
        return "".join(self._lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def resident_bytes(self) -> int:
        """Memory of the service's process now; its workers and readers have their own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024

    def left(self) -> list[Path]:
        """Files and folders of uploads that are under way, or were left."""
        return list((self.folder / "incoming").iterdir())

    def kept(self) -> list[Path]:
        """Files that were kept."""
        return list(self.folder.glob("content/??/*"))
