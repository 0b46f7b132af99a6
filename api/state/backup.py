"""Makes a backup of all that a service keeps, while it runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, select

from iojoule import __version__
from iojoule.api.state import snapshots, tables
from iojoule.api.state.archive import (
    PIECE_BYTES,
    SQLITE,
    Manifest,
    Writer,
    content_member,
    table_member,
    writing,
)
from iojoule.api.state.database import Database, revision_of
from iojoule.api.state.errors import (
    ConflictError,
    DamagedError,
    NotFoundError,
)
from iojoule.api.state.files import damaged, telling
from iojoule.api.state.place import State, named_files
from iojoule.datasets.atomic import write_atomically
from iojoule.datasets.errors import SchemaVersionError

TOLD_MAX = 5
"""Damaged files that are named one by one."""


def back_up(state: State, path: Path) -> Manifest:
    """Write a backup: all that had been accepted when this began, and all of one moment.

    The database is copied first and the files that it names after it. They are never changed once
    a row names them, and none is swept meanwhile, so the two fit together though others write on.

    Args:
        state: What to back up; it need not be open.
        path: The file to make, for its owner alone to read.

    Returns:
        What it holds.

    Raises:
        NotFoundError: Nothing is kept there.
        ConflictError: There is such a file already.
        DamagedError: What is kept is damaged; names it.
        SchemaVersionError: Another iojoule wrote the database.
        InputError: The file cannot be written, or the folder belongs to another database.
        UnavailableError: Folder or database cannot be used.
        StorageFullError: There is no room for the file.
    """
    if path.exists():
        raise ConflictError(f"{path}: there is such a file already; name another one")
    _refuse_nothing(state)
    with (
        writing(path),
        tempfile.TemporaryDirectory(prefix=".backup-", dir=path.parent) as folder,
    ):
        return write_atomically(path, lambda stream: _write(state, stream, path, Path(folder)))


def _refuse_nothing(state: State) -> None:
    """A database that is only looked for must not be made by that."""
    nothing = NotFoundError(
        f"{state.place.folder}: nothing is kept there; name the service's folder with --state, "
        "and its database with --database"
    )
    database = state.database
    if not (state.place.folder / "content.lock").exists() or (
        database.is_sqlite and not snapshots.sqlite_file(database).exists()
    ):
        raise nothing
    with snapshots.telling_damage(database), database.read() as connection:
        found = revision_of(connection)
    if found is None:
        raise nothing
    if found != tables.REVISION:
        raise SchemaVersionError(
            f"the database is of revision {found}, and this iojoule is of {tables.REVISION}; back "
            "up with the iojoule of the service"
        )
    state.refuse_files_of_another()


def _write(state: State, stream: IO[bytes], path: Path, folder: Path) -> Manifest:
    os.fchmod(stream.fileno(), 0o600)
    with closing(Writer(stream, path)) as writer, state.files.keeping():
        return _fill(state, writer, folder)


def _fill(state: State, writer: Writer, folder: Path) -> Manifest:
    if state.database.is_sqlite:
        manifest, named = _sqlite(state, writer, folder / SQLITE)
    else:
        with state.database.snapshot() as connection:
            shape = snapshots.columns(connection)
            for table, names in shape.items():
                rows = snapshots.copied_out(connection, table, names)
                writer.add(table_member(table), rows)
            manifest, named = _seen(connection, "postgresql"), named_files(connection)
            manifest.columns.update(shape)
    _add_content(state, writer, named)
    manifest.files.update(writer.files)
    writer.finish(manifest)
    return manifest


def _sqlite(state: State, writer: Writer, copy: Path) -> tuple[Manifest, dict[str, str]]:
    snapshots.copy_sqlite(snapshots.sqlite_file(state.database), copy)
    database = Database(f"sqlite:///{copy}")
    try:
        with database.read() as connection:
            seen = _seen(connection, "sqlite"), named_files(connection)
    finally:
        database.close()
    snapshots.alone(copy)  # looking into it has made it one with a WAL again
    with copy.open("rb") as stream:
        writer.add(SQLITE, _pieces(stream))
    return seen


def _seen(connection: Connection, database: str) -> Manifest:
    return Manifest.model_validate(
        {
            "iojoule_version": __version__,
            "created_at": datetime.now(UTC),
            "database": database,
            "revision": revision_of(connection),
            "identity": connection.scalars(select(tables.identity.c.id)).one(),
            "columns": {},
            "files": {},
        }
    )


def _add_content(state: State, writer: Writer, named: dict[str, str]) -> None:
    broken: list[DamagedError] = []
    for digest, what in sorted(named.items()):
        try:
            with state.files.opened(digest, what) as stream:
                if writer.add(content_member(digest), _pieces(stream)) != digest:
                    raise damaged(what, digest)
        except DamagedError as error:
            broken.append(error)
    if broken:  # all of them, so that nobody mends one and is told of the next
        told = "; ".join(one.message for one in broken[:TOLD_MAX])
        more = f"; and {len(broken) - TOLD_MAX} more" if len(broken) > TOLD_MAX else ""
        raise DamagedError(f"no backup was made, for what is kept is damaged: {told}{more}")


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while True:
        with telling():
            piece = stream.read(PIECE_BYTES)
        if not piece:
            return
        yield piece
