"""`iojoule backup` and `iojoule restore`: all that a service keeps, in one file and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.keys import opened
from iojoule.api.cli.serve import DatabaseOption, StateOption
from iojoule.api.state.audit import add, lines
from iojoule.api.state.backup import back_up
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import StorageFullError, UnavailableError
from iojoule.api.state.place import Place, State
from iojoule.api.state.restore import restore as bring_back

if TYPE_CHECKING:
    from iojoule.api.state.archive import Manifest


_TITLES = {
    "backup": "backup",
    "created_at": "made",
    "database": "database",
    "files": "files",
    "bytes": "bytes",
    "iojoule_version": "iojoule",
}


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make.")],
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Write all that a service keeps into one file; it may run and write meanwhile."""
    store = State(Place.of(state, database))
    try:
        made = back_up(store, file)
        try:
            with store.database.write() as connection:
                add(connection, Caller.local(), "backup.make", "state", file=file.name)
        except (UnavailableError, StorageFullError) as error:  # the backup is whole all the same
            console.warn(f"the audit log does not name this backup: {error.message}")
    finally:
        store.close()
    console.emit_records([_record(file, made)], output, _TITLES)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As `iojoule backup` wrote it.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Let go of what is kept there, for good.")
    ] = False,
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Restore a backup, whole or not at all, while no service runs there."""
    found = bring_back(Place.of(state, database), file, replace=replace)
    console.emit_records([_record(file, found)], output, _TITLES)


def _record(file: Path, manifest: Manifest) -> dict[str, Any]:
    return {
        "backup": str(file),
        "created_at": manifest.created_at.isoformat(timespec="seconds"),
        "database": manifest.database,
        "files": len(manifest.files),
        "bytes": sum(one.bytes for one in manifest.files.values()),
        "iojoule_version": manifest.iojoule_version,
    }


def audit(
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
            help="Only from then on, UTC.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the newest N.", show_default=False)
    ] = None,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Write each change as one JSON object a line, the oldest first."""
    seconds = None if since is None else since.replace(tzinfo=UTC).timestamp()
    with opened(state, database) as store, store.database.read() as connection:
        for line in lines(connection, seconds, last):
            console.emit(json.dumps(line, ensure_ascii=False) + "\n")
