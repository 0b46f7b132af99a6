"""Puts a backup in the place of what a service keeps, or where nothing is kept yet."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import inspect

from iojoule.api.state import audit, snapshots, tables
from iojoule.api.state.archive import SQLITE, Archive, Manifest, opened, table_member
from iojoule.api.state.database import Database
from iojoule.api.state.errors import ConflictError, DamagedError, UnavailableError
from iojoule.api.state.files import ContentStore, telling
from iojoule.api.state.place import IDENTITY, Place
from iojoule.datasets.atomic import sync_folder, write_text_atomically
from iojoule.datasets.errors import InputError

_STAGE = ".restoring-"

# What a new file system holds, and what a restore leaves that was killed before its database was
# in place: files without a database belong to nobody.
_NOTHING = frozenset({"lost+found", "content", "content.lock", "incoming"})


def restore(place: Place, path: Path, *, replace: bool = False) -> Manifest:
    """Bring back what a backup holds: all of it or, if anything fails, nothing.

    Everything is checked, then written beside its place. Files come first: as long as no row names
    them they mean nothing. The database comes last and at one stroke, so who looks finds the old
    state or the new one.

    Args:
        place: Where to; the same kind of database as the backup is of.
        path: The backup.
        replace: Let go of what is kept there; without that it must be empty.

    Returns:
        What was restored.

    Raises:
        ConflictError: Something is kept there and `replace` was not said, or a service runs.
        DamagedError: The backup is not what was written.
        InputError: It is of the other kind of database, or cannot be read.
        SchemaVersionError: A newer iojoule wrote it.
        UnavailableError: Folder or database cannot be used.
        StorageFullError: There is no room.
    """
    database = Database(place.database)
    try:
        with opened(path) as archive:
            kind = "sqlite" if database.is_sqlite else "postgresql"
            if archive.manifest.database != kind:
                raise InputError(
                    f"{path}: a backup of {archive.manifest.database}, and the database named is "
                    f"{kind}; name one of the same kind with --database"
                )
            if not replace:
                _refuse_kept(place, database)
            archive.check()
            _put(place, database, archive)
            return archive.manifest
    finally:
        database.close()


def _refuse_kept(place: Place, database: Database) -> None:
    with telling():
        there = place.folder.iterdir() if place.folder.exists() else ()
        kept = [one for one in there if one.name not in _NOTHING and _STAGE not in one.name]
    if database.is_sqlite:
        file = snapshots.sqlite_file(database)
        kept += [file] if file.exists() else []
    else:
        with database.read() as connection:
            found = inspect(connection)
            kept += [Path(name) for name in tables.metadata.tables if found.has_table(name)]
    if kept:
        raise ConflictError(
            f"{place.folder}: something is kept there already ({kept[0].name}); restore elsewhere, "
            "or say --replace to let go of it"
        )


def _put(place: Place, database: Database, archive: Archive) -> None:
    with _made(place.folder) as made:
        files = ContentStore(place.folder)
        files.prepare()
        with telling():
            place.folder.chmod(0o700)
        with files.sweeping() as alone, _stage(place.folder) as stage:
            if not alone:
                raise snapshots.in_use(str(place.folder))
            for left in place.folder.glob(f"{_STAGE}*"):
                if left != stage:  # of one that was killed
                    shutil.rmtree(left, ignore_errors=True)
            for digest, member in archive.manifest.content.items():
                _unpack(archive, member, stage / digest)
            if database.is_sqlite:
                _put_sqlite(place, snapshots.sqlite_file(database), archive, files, stage, made)
            else:
                _put_postgresql(place, database, archive, files, stage, made)
    with telling():  # else the next start does so
        write_text_atomically(place.folder / IDENTITY, archive.manifest.identity)
    shutil.rmtree(place.folder / "work", ignore_errors=True)  # of jobs that are not there any more


def _put_sqlite(
    place: Place, target: Path, archive: Archive, files: ContentStore, stage: Path, made: _Made
) -> None:
    with telling():
        target.parent.mkdir(parents=True, exist_ok=True)
    with _stage(target.parent) as beside:
        new = beside / SQLITE
        _unpack(archive, SQLITE, new)
        staged = Database(f"sqlite:///{new}")
        try:
            staged.migrate()
            with staged.write() as connection:
                audit.add_restore(connection, _recorded(target), archive.path.name)
        finally:
            staged.close()
        snapshots.alone(new)
        if target.exists():
            _let_go(target)
        _keep_content(archive, files, stage)
        with telling():
            (place.folder / IDENTITY).unlink(missing_ok=True)
            made.in_place = True
            new.replace(target)
            sync_folder(target.parent)


def _recorded(old: Path) -> list[dict[str, Any]]:
    """The audit log of a database that is replaced; none of one that is damaged."""
    if not old.exists():
        return []
    database = Database(f"sqlite:///{old}")
    try:
        with database.read() as connection:
            return audit.kept(connection)
    except UnavailableError:
        return []
    finally:
        database.close()


def _let_go(old: Path) -> None:
    """Nothing of a database may be applied to the one that takes its place."""
    try:
        snapshots.alone(old)
    except DamagedError:  # it may be what makes somebody restore
        for suffix in ("-wal", "-shm", "-journal"):
            with telling():
                old.with_name(f"{old.name}{suffix}").unlink(missing_ok=True)


def _put_postgresql(
    place: Place,
    database: Database,
    archive: Archive,
    files: ContentStore,
    stage: Path,
    made: _Made,
) -> None:
    manifest = archive.manifest
    with database.read() as connection:
        snapshots.refuse_used(connection)
    _keep_content(archive, files, stage)
    with telling():
        (place.folder / IDENTITY).unlink(missing_ok=True)
    rows = {table: archive.pieces(table_member(table)) for table in manifest.columns}
    try:
        snapshots.load_postgresql(
            database, manifest.revision, manifest.columns, rows, archive.path.name
        )
    except UnavailableError:  # nobody knows whether its last word was heard
        made.in_place = True
        raise
    made.in_place = True


def _keep_content(archive: Archive, files: ContentStore, stage: Path) -> None:
    for digest in archive.manifest.content:
        files.keep(stage / digest)


def _unpack(archive: Archive, member: str, target: Path) -> None:
    with telling(), target.open("xb") as stream:
        os.fchmod(stream.fileno(), 0o600)
        for piece in archive.pieces(member):
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """A folder beside what will be replaced, on the same disk; it goes when the block ends."""
    with telling():
        path = folder / f"{_STAGE}{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@dataclass
class _Made:
    """Whether the database may be in its place: then its files stay whatever happens."""

    in_place: bool = False


@contextmanager
def _made(folder: Path) -> Iterator[_Made]:
    """The folder; if the block fails, what was not there before it goes again."""
    with telling():
        above = next(one for one in (folder, *folder.parents) if one.exists())
        new = [one for one in (folder, *folder.parents) if one not in (above, *above.parents)]
        folder.mkdir(parents=True, exist_ok=True)
        before = {one.name for one in folder.iterdir()}
    made = _Made()
    try:
        yield made
    except BaseException:
        if (
            IDENTITY not in before and not made.in_place
        ):  # else files were added that no row names: the next sweep's
            for one in folder.iterdir():
                if one.name not in before and one.name in _NOTHING:
                    shutil.rmtree(one) if one.is_dir() else one.unlink()
            for one in new:
                with suppress(OSError):
                    one.rmdir()
        raise
