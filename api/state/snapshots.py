"""One moment of a database, given out and taken in: SQLite as a file, PostgreSQL by COPY.

COPY goes through the driver that the service uses anyway, so a backup needs no program of the
server's version, and writing a table takes part in the transaction that makes it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect

from iojoule.api.state import audit
from iojoule.api.state.database import MIGRATION_LOCK, Database, upgrade
from iojoule.api.state.errors import (
    ConflictError,
    DamagedError,
    StorageFullError,
    UnavailableError,
)
from iojoule.api.state.tables import metadata
from iojoule.datasets.errors import InputError

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

LOCK_SECONDS = 20
"""How long a restore waits for those that still use a table."""


def sqlite_file(database: Database) -> Path:
    """Where a database of SQLite is.

    Raises:
        InputError: It is only in memory.
    """
    name = database.url.database
    if not name or name == ":memory:":
        raise InputError("a database in memory cannot be backed up; name one that is a file")
    return Path(name)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database that others may write meanwhile, as of one moment.

    Raises:
        DamagedError: The database is damaged.
        UnavailableError: It cannot be read.
    """
    with (
        _telling(source),
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as one,
        closing(sqlite3.connect(target)) as other,
    ):
        one.backup(other)  # all pages at once: writers of a WAL go on, and need not begin anew
    alone(target, source)


def alone(path: Path, called: Path | None = None) -> None:
    """Let a database be one whole file that nobody else has open, with nothing beside it.

    Args:
        path: The database.
        called: The name under which people know it.

    Raises:
        ConflictError: Somebody has it open.
        DamagedError: It is damaged.
    """
    name = called or path
    with _telling(name), closing(sqlite3.connect(path, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise in_use(str(name)) from None
            raise
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise DamagedError(f"{name}: the database is damaged ({said}); restore it from a backup")


def in_use(name: str) -> ConflictError:
    """What is said where a service has the database open that is to be replaced."""
    return ConflictError(
        f"{name}: the database is in use; stop the service and its workers, then restore"
    )


@contextmanager
def telling_damage(database: Database) -> Iterator[None]:
    """Say that SQLite's file is damaged, where all else is told that it does not answer."""
    try:
        yield
    except UnavailableError as error:
        original = getattr(error.__cause__, "orig", None)
        if getattr(original, "sqlite_errorcode", None) not in _DAMAGE:
            raise
        raise DamagedError(
            f"{database.url.database}: the database is damaged ({original}); restore it from a "
            "backup"
        ) from error


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise StorageFullError(
                f"{path}: there is no room for a copy of the database; make room"
            ) from error
        raise UnavailableError(
            f"{path}: the database does not answer ({error}); check it"
        ) from error
    except sqlite3.DatabaseError as error:
        raise DamagedError(
            f"{path}: the database is damaged ({error}); restore it from a backup"
        ) from error


def columns(connection: Connection) -> dict[str, list[str]]:
    """The columns of our tables that are there, in an order in which they can be loaded."""
    found = inspect(connection)
    return {
        table.name: [column["name"] for column in found.get_columns(table.name)]
        for table in metadata.sorted_tables
        if found.has_table(table.name)
    }


def copied_out(connection: Connection, table: str, names: Sequence[str]) -> Iterator[bytes]:
    """The rows of a table of PostgreSQL as COPY writes them, in UTF-8."""
    with _copying(connection, f"COPY {_named(connection, table, names)} TO STDOUT") as copy:
        yield from map(bytes, copy)


def load_postgresql(
    database: Database,
    revision: str,
    tables: Mapping[str, Sequence[str]],
    rows: Mapping[str, Iterable[bytes]],
    file: str,
) -> None:
    """Put these rows in the place of all that is in our tables: all of it or, if it fails, nothing.

    Args:
        database: Where.
        revision: Of the tables that the rows were in; they are brought up to date.
        tables: Names of the columns of each, in the order of loading.
        rows: What `copied_out` gave of each.
        file: Name of the backup, for the audit log.

    Raises:
        ConflictError: A service uses the database.
        SchemaVersionError: The rows are of a newer iojoule.
        UnavailableError: The database cannot be reached.
    """
    with database.write() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        refuse_used(connection)
        recorded = audit.kept(connection)
        metadata.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
        upgrade(connection, revision)
        for table in tables:  # some migrations insert rows, such as the id of the database
            connection.exec_driver_sql(f"DELETE FROM {_quoted(connection, table)}")
        for table, names in tables.items():
            said = f"COPY {_named(connection, table, names)} FROM STDIN"
            with _copying(connection, said) as copy:
                for piece in rows[table]:
                    copy.write(piece)
        upgrade(connection)
        audit.add_restore(connection, recorded, file)


def refuse_used(connection: Connection) -> None:
    """Refuse a database of PostgreSQL that a service or worker has open; raises ConflictError."""
    others = connection.exec_driver_sql(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'iojoule' AND pid <> pg_backend_pid()"
    ).scalar()
    if others:
        raise in_use(connection.engine.url.database or "PostgreSQL")


@contextmanager
def _copying(connection: Connection, statement: str) -> Iterator[Any]:
    import psycopg  # only here: SQLite needs no driver of PostgreSQL

    connection.exec_driver_sql("SET LOCAL client_encoding = 'UTF8'")
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            yield copy
    except psycopg.Error as error:
        raise UnavailableError(
            f"the database does not answer ({str(error).strip()}); try again in a moment"
        ) from error


def _named(connection: Connection, table: str, names: Sequence[str]) -> str:
    return f"{_quoted(connection, table)} ({', '.join(_quoted(connection, one) for one in names)})"


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(name)
