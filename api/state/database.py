"""The database: SQLite in the state folder, or PostgreSQL for several replicas."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
)
from sqlalchemy.exc import (
    TimeoutError as PoolTimeoutError,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import Float, Integer

from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.tables import REVISION
from iojoule.datasets.errors import InputError, SchemaVersionError

BUSY_SECONDS = 20
"""How long a writer waits for another one; each write takes milliseconds."""

CONNECT_SECONDS = 5
MIGRATION_LOCK = 0x696F6A6F756C65
"""The advisory lock of PostgreSQL under which one replica at a time migrates."""


class now(FunctionElement[float]):  # noqa: N801 - reads like the functions of SQLAlchemy
    """Seconds since 1970 by the database's clock, so that machines need not agree on theirs."""

    type = Float()
    inherit_cache = True


@compiles(now, "sqlite")
def _now_sqlite(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_postgresql(*_: Any, **__: Any) -> str:
    return "extract(epoch from clock_timestamp())::float8"


class today(FunctionElement[int]):  # noqa: N801 - likewise
    """Whole days since 1970 by the database's clock, in UTC."""

    type = Integer()
    inherit_cache = True


@compiles(today, "sqlite")
def _today_sqlite(*_: Any, **__: Any) -> str:
    return "CAST(julianday('now') - 2440587.5 AS INTEGER)"


@compiles(today, "postgresql")
def _today_postgresql(*_: Any, **__: Any) -> str:
    return "floor(extract(epoch from clock_timestamp()) / 86400)::integer"


class Database:
    """Transactions of one database.

    Args:
        url: `sqlite:///PATH` or `postgresql://USER@HOST/NAME`.

    Raises:
        InputError: The URL names no database that is supported.
    """

    def __init__(self, url: str) -> None:
        self.url = _checked(url)
        self.engine = _engine(self.url)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is the embedded one."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads; raises as `write`."""
        with told(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: all of it is durable when the block has ended, or nothing is.

        Raises:
            UnavailableError: The database cannot be reached or is too busy.
            StorageFullError: There is no room.
        """
        with told(self.url), self.engine.execution_options(writes=True).begin() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A transaction that only reads, and sees one moment however long it lasts.

        Raises:
            UnavailableError: The database cannot be reached or is too busy.
        """
        if self.is_sqlite:  # every transaction is one there
            with self.read() as connection:
                yield connection
            return
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with told(self.url), self.engine.execution_options(**options).begin() as connection:
            yield connection

    def migrate(self) -> None:
        """Bring the tables up to date; replicas that start together do so one after the other.

        Raises:
            SchemaVersionError: A newer iojoule wrote this database.
            UnavailableError: It cannot be reached.
        """
        with self.read() as connection:
            if revision_of(connection) == REVISION:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            if revision_of(connection) != REVISION:
                upgrade(connection)

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()


def insert_new(connection: Connection, table: Table, **values: Any) -> bool:
    """Insert a row unless one with its key is there; whether it was inserted.

    Waits for another transaction that is inserting the same key.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    row = dialect.insert(table).values(**values).on_conflict_do_nothing()
    return connection.execute(row.returning(*table.primary_key)).first() is not None


def revision_of(connection: Connection) -> str | None:
    """The newest migration that a database has seen; None: it has no tables of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Bring the tables to a revision; raises SchemaVersionError where a newer iojoule wrote it."""
    # only here: Alembic takes a while to import, and most starts have nothing to migrate
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "iojoule.api.state:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError:
        found = revision_of(connection) if revision == "head" else revision
        raise SchemaVersionError(
            f"the database is of revision {found}, this iojoule knows up to "
            f"{REVISION}; upgrade iojoule, or name another database"
        ) from None


def _checked(url: str) -> URL:
    try:
        made = make_url(url)
    except ArgumentError:
        raise InputError(
            "the database's URL is not understood; write postgresql://USER@HOST/NAME or "
            "sqlite:////PATH"
        ) from None
    if made.drivername in ("postgresql", "postgres"):
        made = made.set(drivername="postgresql+psycopg")
    if made.drivername not in ("sqlite", "postgresql+psycopg"):
        raise InputError(
            f"{made.drivername}: not a database that is supported; write postgresql://USER@HOST/"
            "NAME or sqlite:////PATH"
        )
    return made


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, pool_size=8)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    options = {"connect_timeout": CONNECT_SECONDS, "application_name": "iojoule"}
    try:
        return create_engine(url, connect_args=options, pool_pre_ping=True, pool_size=8)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise InputError(
            "PostgreSQL needs a driver that is not installed: pip install 'iojoule[postgresql]'"
        ) from None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says so
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")  # what was promised outlives a loss of power
    connection.execute("PRAGMA foreign_keys = ON")


def _write_ahead(connection: Any) -> None:
    # SQLite does not wait here as it does elsewhere: of several that open a new database at
    # once, all but one are told at once that it is locked
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    # a writer that first reads would find, too late, that another one was quicker
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def told(url: URL) -> Iterator[None]:
    """Say what fails as one of our own errors."""
    try:
        yield
    except IntegrityError:
        raise
    except DataError as error:
        raise InputError(
            f"the database cannot hold this ({_said(error)}); send text without NUL, and shorter"
        ) from error
    except (DBAPIError, PoolTimeoutError) as error:
        raise _own(url, error) from error


_SQLITE_FULL, _POSTGRESQL_FULL = 13, "53100"


def _own(url: URL, error: Exception) -> Exception:
    original = getattr(error, "orig", None)
    full = (
        getattr(original, "sqlite_errorcode", None) == _SQLITE_FULL
        or getattr(original, "sqlstate", None) == _POSTGRESQL_FULL
    )
    place = url.database if url.get_backend_name() == "sqlite" else url.host or "PostgreSQL"
    if full:
        return StorageFullError(f"the database ({place}) has no room left; nothing was kept")
    return UnavailableError(
        f"the database ({place}) does not answer ({_said(error)}); try again in a moment"
    )


def _said(error: Exception) -> str:
    """The first line of what the driver says."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return said[0] if said else type(error).__name__
