"""`iojoule key`: the keys of those who may use a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.key_limits import (
    BurstOption,
    BytesOption,
    ComputeSecondsOption,
    ExpiresOption,
    JobsWaitingOption,
    RateOption,
    limits_shown,
    refuse_burst_alone,
    stated,
)
from iojoule.api.cli.serve import DatabaseOption, StateOption

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from iojoule.api.state.api_keys import ApiKey
    from iojoule.api.state.place import State

app = typer.Typer(
    add_completion=False,
    help="Make, list, change and revoke the keys of those who may use a service.",
    no_args_is_help=True,
)


class ScopeName(StrEnum):
    """What a key allows; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


KeyId = Annotated[str, typer.Argument(metavar="ID", help="As `iojoule key list` shows it.")]

_TITLES = {
    "id": "id", "name": "name", "owner": "owner", "scope": "scope", "created": "created",
    "expires": "expires", "used": "last used", "limits": "limits",
}  # fmt: skip

OwnerOption = Annotated[
    str | None,
    typer.Option(
        show_default=False,
        help="Who answers for it; what is made with it belongs to all keys of this owner.",
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What it is for, 1 to 100 characters.")],
    scope: Annotated[
        ScopeName,
        typer.Option(
            help="read: ask; write: upload and simulate too; admin: calibrate, roll back, and see "
            "what belongs to others too."
        ),
    ] = ScopeName.READ,
    owner: OwnerOption = None,
    expires: ExpiresOption = None,
    rate: RateOption = None,
    burst: BurstOption = None,
    jobs_waiting: JobsWaitingOption = None,
    bytes_: BytesOption = None,
    compute_seconds: ComputeSecondsOption = None,
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Make a key and print it, once: what is kept does not give it back. Owner: else the name."""
    _refuse_unprintable("--name", name)
    values = _stated(owner, expires, rate, burst, jobs_waiting, bytes_, compute_seconds)
    from iojoule.api.state import api_keys
    from iojoule.api.state.callers import Caller, Limits

    refuse_burst_alone(values.get("requests_per_second"), values.get("burst"))
    with opened(state, database) as store, store.database.write() as connection:
        made, text = api_keys.create(
            connection, name, api_keys.Scope(scope.value), owner=values.pop("owner", None),
            expires_at=values.pop("expires_at", None), limits=Limits(**values),
            caller=Caller.local(),
        )  # fmt: skip
        fields = _fields(connection, made)
    if output is console.Format.JSON:
        console.emit_json({**fields, "key": text})
    elif output is console.Format.CSV:
        console.emit_records([{**fields, "key": text}], output, {})
    else:
        console.emit(f"{text}\n")
        until = f"expires {_moment(made.expires_at)}" if made.expires_at else "never expires"
        console.note(
            f"key {made.id} ({scope}, {until}) is shown this once; send Authorization: Bearer KEY"
        )


@app.command("list")
def list_keys(
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """List the keys, revoked and expired ones too; JSON and CSV say how much is used as well."""
    from iojoule.api.state import api_keys

    with opened(state, database) as store, store.database.read() as connection:
        rows = [_row(connection, one, output) for one in api_keys.listed(connection)]
    console.emit_records(rows, output, _TITLES)


@app.command()
def change(
    id_: KeyId,
    owner: OwnerOption = None,
    expires: ExpiresOption = None,
    rate: RateOption = None,
    burst: BurstOption = None,
    jobs_waiting: JobsWaitingOption = None,
    bytes_: BytesOption = None,
    compute_seconds: ComputeSecondsOption = None,
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Give a key another owner, expiry or other limits; what is not named stays as it is."""
    values = _stated(owner, expires, rate, burst, jobs_waiting, bytes_, compute_seconds)
    if not values:
        raise typer.BadParameter("name what to change, such as --expires 90d or --rate none")
    from iojoule.api.state import api_keys
    from iojoule.api.state.callers import Caller

    with opened(state, database) as store, store.database.write() as connection:
        changed = api_keys.change(connection, id_, values, Caller.local())
        refuse_burst_alone(changed.limits.requests_per_second, changed.limits.burst)
        row = _row(connection, changed, output)
    console.emit_records([row], output, _TITLES)


@app.command()
def revoke(
    id_: KeyId,
    output: console.FormatOption = console.Format.TABLE,
    state: StateOption = None,
    database: DatabaseOption = None,
) -> None:
    """Let a key open nothing any more; services that run know it within a second."""
    from iojoule.api.state import api_keys
    from iojoule.api.state.callers import Caller

    with opened(state, database) as store, store.database.write() as connection:
        revoked = api_keys.revoke(connection, id_, Caller.local())
        row = _row(connection, revoked, output)
    console.emit_records([row], output, _TITLES)


@contextmanager
def opened(state: Any, database: str | None) -> Iterator[State]:
    """What is kept there, brought up to date."""
    from iojoule.api.state.place import Place, State

    store = State(Place.of(state, database))
    store.open()
    try:
        yield store
    finally:
        store.close()


def _stated(owner: str | None, *options: str | None) -> dict[str, Any]:
    values = stated(*options)
    if owner is not None:
        _refuse_unprintable("--owner", owner)
        values["owner"] = owner
    return values


def _refuse_unprintable(option: str, text: str) -> None:
    if not 1 <= len(text) <= 100 or not text.isprintable() or not text.strip():
        raise typer.BadParameter(f"{option}: 1 to 100 characters that can be printed")


def _fields(connection: Connection, key: ApiKey) -> dict[str, Any]:
    """All that is known of a key, and how much its owner uses of what can be limited."""
    from dataclasses import asdict

    from iojoule.api.state import quotas

    used = asdict(quotas.used(connection, key.owner))
    return {
        "id": key.id, "name": key.name, "owner": key.owner, "scope": key.scope.value,
        "created_at": _moment(key.created_at), "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at), "revoked_at": _moment(key.revoked_at),
        **asdict(key.limits), **{f"{name}_used": value for name, value in used.items()},
    }  # fmt: skip


def _row(connection: Connection, key: ApiKey, output: console.Format) -> dict[str, Any]:
    """What is shown of a key: all, or the cells of its table."""
    if output is not console.Format.TABLE:
        return _fields(connection, key)
    at = datetime.now(UTC).timestamp()
    until = _day(key.expires_at) or "never"
    if key.revoked_at is not None:
        until = f"revoked {_day(key.revoked_at)}"
    elif key.expired(at):
        until = f"expired {until}"
    used = _moment(key.last_used_at)
    return {
        "id": key.id, "name": key.name, "owner": key.owner, "scope": key.scope.value,
        "created": _day(key.created_at), "expires": until,
        "used": used and used[:16].replace("T", " "), "limits": limits_shown(key.limits),
    }  # fmt: skip


def _day(seconds: float | None) -> str | None:
    moment = _moment(seconds)
    return moment and moment[:10]


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
