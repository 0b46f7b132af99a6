"""`iojoule audit`: who changed what a service keeps, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from iojoule.api.cli import console
from iojoule.api.cli.keys import opened
from iojoule.api.cli.serve import DatabaseOption, StateOption


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
    from iojoule.api.state.audit import lines

    seconds = None if since is None else since.replace(tzinfo=UTC).timestamp()
    with opened(state, database) as store, store.database.read() as connection:
        for line in lines(connection, seconds, last):
            console.emit(json.dumps(line, ensure_ascii=False) + "\n")
