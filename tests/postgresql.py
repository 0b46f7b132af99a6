"""A PostgreSQL server of the tests' own: a folder, a socket in it, nothing on the network."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSIONS = Path("/usr/lib/postgresql")
USER = "iojoule"


def programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None where Debian's package is not installed."""
    found = sorted(VERSIONS.glob("*/bin/pg_ctl"))
    return found[-1].parent if found else None


class PostgresqlServer:
    """A server that is begun anew; `stop` deletes it.

    It refuses to run as root, so then it runs as `postgres`, whom Debian's package has made.
    """

    def __init__(self) -> None:
        programs_ = programs()
        assert programs_ is not None
        self._programs = programs_
        self._as = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="iojoule-pg-", dir="/tmp"))
        if self._as:
            shutil.chown(self.folder, self._as)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
        self._ctl("start", "-w", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """End it at once, as a crash would."""
        self._ctl("stop", "-m", "immediate")

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"t{secrets.token_hex(8)}"
        self._run("createdb", "-h", str(self.folder), "-U", USER, name)
        return f"postgresql://{USER}@/{name}?host={self.folder}"

    def _ctl(self, *arguments: str) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        with (self.folder / "said").open("ab") as said:
            subprocess.run(
                [self._programs / program, *arguments],
                check=True, user=self._as, cwd=self.folder, stdout=said, stderr=said,
                stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
