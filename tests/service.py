"""`iojoule serve` as a process of its own, on a port of the loopback that stays the same."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path


class ServiceProcess:
    """A service with its workers and everything it keeps.

    Args:
        folder: Where it keeps things.
        options: Of `iojoule serve`.
        environment: None: that of the tests.
    """

    def __init__(
        self, folder: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.port = folder, 0
        self._options, self._environment = ("--state", str(folder), *options), environment
        self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = [sys.executable, "-c", "from iojoule.api.cli import main; main()", "serve"]
        command += [*self._options, "--port", str(self.port)]
        # a file and no pipe: nobody reads it while the service runs, and a full pipe would stop it
        log = self.folder.with_name(f"{self.folder.name}.log")
        with log.open("w") as stream:
            self.process = subprocess.Popen(command, stderr=stream, env=self._environment)
        while self.process.poll() is None:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", log.read_text())
            if found is not None:
                self.port = int(found[1])
                return
            time.sleep(0.02)
        raise AssertionError(log.read_text())

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        self.process.terminate()
        self.process.wait()

    def kill(self) -> None:
        """End it without warning; its workers notice and end too."""
        self.process.kill()
        self.process.wait()
