"""`iojoule key`: the keys of those who may use a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iojoule.api.cli import console
from iojoule.api.cli.serve import DatabaseOption, StateOption
from iojoule.api.reports.quantities import size
from iojoule.api.state import api_keys, quotas
from iojoule.api.state.callers import Caller, Limits
from iojoule.api.state.place import Place, State
from iojoule.datasets.importers.units import parse_bytes

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from iojoule.api.state.api_keys import ApiKey


NONE = "none"
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}

ExpiresOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        show_default=False,
        help="After a time (12h, 90d, 8w), or from a date on (2027-01-31, UTC); none: never.",
    ),
]
RateOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Requests a second; none: any."),
]
BurstOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Requests at once; none: of one second."),
]
JobsWaitingOption = Annotated[
    str | None,
    typer.Option(metavar="N", show_default=False, help="Jobs that may wait; none: any."),
]
BytesOption = Annotated[
    str | None,
    typer.Option(
        "--bytes",
        metavar="SIZE",
        show_default=False,
        help="Datasets and results kept, such as 500MiB; none: any.",
    ),
]
ComputeSecondsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N", show_default=False, help="For which jobs may run, each day (UTC); none: any."
    ),
]


def stated(
    expires: str | None,
    rate: str | None,
    burst: str | None,
    jobs_waiting: str | None,
    bytes_: str | None,
    compute_seconds: str | None,
) -> dict[str, Any]:
    """The columns of a key that options state, with their values; `none` lifts one.

    Raises:
        BadParameter: A value is not what it must be; names the option.
    """
    given: tuple[tuple[str, str, str | None, Callable[[str, str], Any]], ...] = (
        ("expires_at", "--expires", expires, _moment),
        ("requests_per_second", "--rate", rate, _number),
        ("burst", "--burst", burst, _count),
        ("jobs_waiting_max", "--jobs-waiting", jobs_waiting, _count),
        ("stored_bytes_max", "--bytes", bytes_, _bytes),
        ("compute_seconds_max", "--compute-seconds", compute_seconds, _number),
    )
    values = {
        column: None if text == NONE else read(option, text)
        for column, option, text, read in given
        if text is not None
    }
    if "requests_per_second" in values and values["requests_per_second"] is None:
        values.setdefault("burst", None)
    return values


def refuse_burst_alone(rate: float | None, burst: int | None) -> None:
    """Return where a burst goes with a rate; raises BadParameter."""
    if burst is not None and rate is None:
        raise typer.BadParameter("--burst limits nothing without --rate; state both")


def _number(option: str, text: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text) or float(text) == 0:
        raise typer.BadParameter(f"{option} {text}: write a number above 0, or none")
    return float(text)


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise typer.BadParameter(f"{option} {text}: write a whole number from 1 on, or none")
    return int(text)


def _bytes(option: str, text: str) -> int:
    value = parse_bytes(text)
    if not value or value >= 1 << 63:
        raise typer.BadParameter(f"{option} {text}: write bytes, KiB, MiB, GiB or TiB, or none")
    return value


def _moment(option: str, text: str) -> float:
    at = datetime.now(UTC)
    form = re.fullmatch(r"([1-9]\d{0,3})([hdw])", text)
    if form:
        return at.timestamp() + int(form[1]) * _SECONDS[form[2]]
    try:
        given = datetime.fromisoformat(text)
        given = given if given.tzinfo else given.replace(tzinfo=UTC)
    except ValueError:
        given = at
    if given <= at:
        raise typer.BadParameter(
            f"{option} {text}: write 12h, 90d, 8w, a date that is to come, or none"
        )
    return given.timestamp()


def limits_shown(limits: Limits) -> str | None:
    """All limits in one cell of a table."""
    rate, burst = limits.requests_per_second, limits.burst
    parts = (
        (rate, f"{rate:g}/s" if rate else ""),
        (burst, f"{burst} at once"),
        (limits.jobs_waiting_max, f"{limits.jobs_waiting_max} jobs"),
        (limits.stored_bytes_max, size(limits.stored_bytes_max or 1)),
        (limits.compute_seconds_max, f"{limits.compute_seconds_max or 0:g} s a day"),
    )
    return ", ".join(text for value, text in parts if value is not None) or None


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
    "id": "id",
    "name": "name",
    "owner": "owner",
    "scope": "scope",
    "created": "created",
    "expires": "expires",
    "used": "last used",
    "limits": "limits",
}

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

    refuse_burst_alone(values.get("requests_per_second"), values.get("burst"))
    with opened(state, database) as store, store.database.write() as connection:
        made, text = api_keys.create(
            connection,
            name,
            api_keys.Scope(scope.value),
            owner=values.pop("owner", None),
            expires_at=values.pop("expires_at", None),
            limits=Limits(**values),
            caller=Caller.local(),
        )
        fields = _fields(connection, made)
    if output is console.Format.JSON:
        console.emit_json({**fields, "key": text})
    elif output is console.Format.CSV:
        console.emit_records([{**fields, "key": text}], output, {})
    else:
        console.emit(f"{text}\n")
        until = f"expires {_utc_text(made.expires_at)}" if made.expires_at else "never expires"
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
    with opened(state, database) as store, store.database.write() as connection:
        revoked = api_keys.revoke(connection, id_, Caller.local())
        row = _row(connection, revoked, output)
    console.emit_records([row], output, _TITLES)


@contextmanager
def opened(state: Any, database: str | None) -> Iterator[State]:
    """What is kept there, brought up to date."""
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
    used = asdict(quotas.used(connection, key.owner))
    return {
        "id": key.id,
        "name": key.name,
        "owner": key.owner,
        "scope": key.scope.value,
        "created_at": _utc_text(key.created_at),
        "expires_at": _utc_text(key.expires_at),
        "last_used_at": _utc_text(key.last_used_at),
        "revoked_at": _utc_text(key.revoked_at),
        **asdict(key.limits),
        **{f"{name}_used": value for name, value in used.items()},
    }


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
    used = _utc_text(key.last_used_at)
    return {
        "id": key.id,
        "name": key.name,
        "owner": key.owner,
        "scope": key.scope.value,
        "created": _day(key.created_at),
        "expires": until,
        "used": used and used[:16].replace("T", " "),
        "limits": limits_shown(key.limits),
    }


def _day(seconds: float | None) -> str | None:
    moment = _utc_text(seconds)
    return moment and moment[:10]


def _utc_text(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
