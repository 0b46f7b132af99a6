"""Where the state is, and the one object that stands for it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, select

from iojoule.api.state import audit, idempotency, jobs, quotas, retention, tables
from iojoule.api.state.database import Database
from iojoule.api.state.files import ContentStore, telling
from iojoule.api.state.ids import is_id
from iojoule.datasets.atomic import write_text_atomically
from iojoule.datasets.errors import InputError

DATABASE_VARIABLE = "IOJOULE_DATABASE"
STATE_VARIABLE = "IOJOULE_STATE"


def state_folder() -> Path:
    """Where what is kept lies: $IOJOULE_STATE, else a folder of this user's own."""
    stated = os.environ.get(STATE_VARIABLE)
    if stated:
        return Path(stated)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "iojoule"


IDENTITY = "database.id"
"""The file of a folder that says to which database its files belong."""


@dataclass(frozen=True)
class Place:
    """Where the state is kept.

    Attributes:
        folder: Holds the files and, unless another one is named, the database.
        database: Its URL.
    """

    folder: Path
    database: str

    @classmethod
    def of(cls, folder: Path | None = None, database: str | None = None) -> Self:
        """The place that is stated, else that of the environment, else the user's own.

        Args:
            folder: None takes $IOJOULE_STATE, else `iojoule` below $XDG_STATE_HOME.
            database: None takes $IOJOULE_DATABASE, else SQLite in the folder.
        """
        chosen = (folder or state_folder()).absolute()
        url = database or os.environ.get(DATABASE_VARIABLE)
        return cls(chosen, url or f"sqlite:///{chosen / 'service.sqlite'}")


class State:
    """The database and the files of one place; `open` before use.

    Raises:
        InputError: The database's URL is not understood.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.database = Database(place.database)
        self.files = ContentStore(place.folder)

    def open(self) -> None:
        """Make what is missing and bring the tables up to date.

        Raises:
            SchemaVersionError: A newer iojoule wrote the database.
            InputError: The folder belongs to another database.
            UnavailableError: Folder or database cannot be used.
            StorageFullError: There is no room.
        """
        self.files.prepare()
        with telling():
            self.place.folder.chmod(0o700)
        self.database.migrate()
        self.refuse_files_of_another()

    def refuse_files_of_another(self) -> None:
        """Refuse a folder of another database: a sweep would delete what only that one names.

        Raises:
            InputError: It is one.
            UnavailableError: Folder or database cannot be used.
        """
        with self.database.read() as connection:
            ours = connection.scalars(select(tables.identity.c.id)).one()
        said = self.place.folder / IDENTITY
        with telling():
            if not said.exists():
                write_text_atomically(said, ours)
            theirs = said.read_text(encoding="utf-8")
        if theirs != ours:
            raise InputError(
                f"{self.place.folder}: holds the files of another database; name another folder "
                "with --state, or that database with --database"
            )

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def work_folder(self, job_id: str) -> Path:
        """Where a job keeps what it has computed so far; gone once it has ended."""
        return self.place.folder / "work" / job_id

    def sweep(self, keep_seconds: float | None = None, audit_seconds: float | None = None) -> int:
        """Delete what nothing names any more, unless somebody is just keeping a file.

        Args:
            keep_seconds: How old jobs that have ended and unused datasets may become
                (`retention.forget`); None: they stay.
            audit_seconds: How old lines of the audit log may become; None: they stay.

        Returns:
            How many files and folders went.
        """
        try:
            self._forget(keep_seconds, audit_seconds)
        finally:  # a database without room to delete a row gets it by the files that go
            swept = self._sweep_work()
            with self.files.sweeping() as alone:
                swept += self.files.sweep(self._named()) if alone else 0
        return swept

    def _forget(self, keep_seconds: float | None, audit_seconds: float | None) -> None:
        if keep_seconds is not None:
            retention.forget(self.database, keep_seconds)
        with self.database.write() as connection:
            idempotency.forget_old(connection)
            quotas.forget_old(connection)
            if audit_seconds is not None:
                audit.forget(connection, audit_seconds)

    def _sweep_work(self) -> int:
        """Delete what jobs had computed whose worker was killed after it had ended them."""
        folders = [path for path in (self.place.folder / "work").glob("*") if is_id(path.name)]
        with self.database.read() as connection:
            active = jobs.active_of(connection, [path.name for path in folders])
        ended = [path for path in folders if path.name not in active]
        for path in ended:
            shutil.rmtree(path, ignore_errors=True)
        return len(ended)

    def _named(self) -> set[str]:
        with self.database.read() as connection:
            return set(named_files(connection))


def named_files(connection: Connection) -> dict[str, str]:
    """The hashes that rows name, each with what its file is; of several rows one is told."""
    jobs_, datasets, versions = tables.jobs.c, tables.datasets.c, tables.profile_versions.c
    named = (
        ("the result of job {}", jobs_.result_sha256, (jobs_.id,)),
        ("the data of dataset {}", datasets.data_sha256, (datasets.id,)),
        ("the metadata file of dataset {}", datasets.sidecar_sha256, (datasets.id,)),
        ("profile version {} of {}", versions.sha256, (versions.number, versions.device)),
    )
    return {
        digest: what.format(*by)
        for what, column, names in named
        for digest, *by in connection.execute(select(column, *names).where(column.is_not(None)))
    }
