"""`iojoule key`: the keys of those who may use a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.serve import DatabaseOption, StateOption

if TYPE_CHECKING:
    from iojoule.api.state.api_keys import ApiKey
    from iojoule.api.state.place import State

app = typer.Typer(
    help="Make, list and revoke the keys of those who may use a service.", no_args_is_help=True
)


class ScopeName(StrEnum):
    """What a key allows; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_TITLES = {
    "id": "id", "name": "name", "scope": "scope", "created_at": "created", "revoked_at": "revoked",
}  # fmt: skip


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Whom it is for, 1 to 100 characters.")],
    scope: Annotated[
        ScopeName,
        typer.Option(
            help="read: ask; write: upload and simulate too; admin: calibrate and roll back too."
        ),
    ] = ScopeName.READ,
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Make a key and print it, once: what is kept does not give it back."""
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise typer.BadParameter("--name: 1 to 100 characters that can be printed")
    from iojoule.api.state import api_keys

    with _opened(state, database) as store, store.database.write() as connection:
        made, text = api_keys.create(connection, name, api_keys.Scope(scope.value))
    if output is console.Format.JSON:
        console.emit_json({**_record(made), "key": text})
    elif output is console.Format.CSV:
        console.emit_records([{**_record(made), "key": text}], output, {})
    else:
        console.emit(f"{text}\n")
        console.note(f"key {made.id} ({scope}) is shown this once; send Authorization: Bearer KEY")


@app.command("list")
def list_keys(
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """List the keys, revoked ones too."""
    from iojoule.api.state import api_keys

    with _opened(state, database) as store, store.database.read() as connection:
        found = api_keys.listed(connection)
    console.emit_records([_record(one) for one in found], output, _TITLES)


@app.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As `iojoule key list` shows it.")],
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Let a key open nothing any more; services that run know it within a second."""
    from iojoule.api.state import api_keys

    with _opened(state, database) as store, store.database.write() as connection:
        found = api_keys.revoke(connection, id_)
    console.emit_records([_record(found)], output, _TITLES)


@contextmanager
def _opened(state: Any, database: str | None) -> Iterator[State]:
    from iojoule.api.state.place import Place, State

    store = State(Place.of(state, database))
    store.open()
    try:
        yield store
    finally:
        store.close()


def _record(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id, "name": key.name, "scope": key.scope.value,
        "created_at": _moment(key.created_at), "revoked_at": _moment(key.revoked_at),
    }  # fmt: skip


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
