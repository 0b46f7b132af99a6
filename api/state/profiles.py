"""Versions of device profiles: every one that was published, and which one answers."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from iojoule.api.state import audit
from iojoule.api.state.callers import SERVICE, Caller
from iojoule.api.state.database import insert_new, now
from iojoule.api.state.errors import ChangedError, NotFoundError
from iojoule.api.state.pages import Page, page_of
from iojoule.api.state.place import State
from iojoule.api.state.tables import current_profiles as current
from iojoule.api.state.tables import profile_versions as versions
from iojoule.datasets.profile import DeviceProfile, parse_profile


@dataclass(frozen=True)
class ProfileVersion:
    """A row of the table: a profile of a device by its number, from 1."""

    device: str
    number: int
    profile_version: str
    sha256: str
    job_id: str | None
    created_at: float


@dataclass(frozen=True)
class Current:
    """Which version answers.

    Attributes:
        number: None: the profile that iojoule itself brings.
        revision: Counts how often that changed.
    """

    number: int | None
    revision: int


def _version(row: RowMapping) -> ProfileVersion:
    return ProfileVersion(**row)


def publish(
    connection: Connection, state: State, profile: DeviceProfile, job_id: str | None
) -> ProfileVersion:
    """Keep a profile as the next version of its device and let it answer from now on.

    To be called while files are being kept (`ContentStore.keeping`).

    Args:
        connection: The transaction; nothing of it is seen before it ends.
        state: Where the file goes.
        profile: The profile; it is kept with the name of its version.
        job_id: What made it.
    """
    device = profile.device
    shown = _lock(connection, device)
    newest = connection.scalar(
        select(func.max(versions.c.number)).where(versions.c.device == device)
    )
    number = (newest or 0) + 1
    named = profile.model_copy(update={"profile_version": f"calibration-{number}"})
    text = json.dumps(named.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
    row = {
        "device": device,
        "number": number,
        "profile_version": named.profile_version,
        "sha256": state.files.keep_bytes(text.encode()),
        "job_id": job_id,
    }
    made = connection.execute(
        insert(versions).values(**row, created_at=now()).returning(versions)
    ).mappings()
    version = _version(made.one())
    _show(connection, device, number, shown)
    audit.add(connection, SERVICE, "profile.publish", f"profile/{device}/{number}", job=job_id)
    return version


def _lock(connection: Connection, device: str) -> Current:
    """What answers now; nobody else can change it before the transaction has ended."""
    insert_new(connection, current, device=device, number=None, revision=0)
    row = connection.execute(
        select(current.c.number, current.c.revision)
        .where(current.c.device == device)
        .with_for_update()
    ).one()
    return Current(*row)


def _show(connection: Connection, device: str, number: int | None, before: Current) -> Current:
    shown = Current(number, before.revision + 1)
    connection.execute(
        update(current)
        .where(current.c.device == device)
        .values(number=number, revision=shown.revision)
    )
    return shown


def shown(connection: Connection, device: str) -> Current:
    """Which version of a device answers."""
    row = connection.execute(
        select(current.c.number, current.c.revision).where(current.c.device == device)
    ).first()
    return Current(None, 0) if row is None else Current(*row)


def show(
    connection: Connection,
    device: str,
    number: int | None,
    revision: int,
    caller: Caller = SERVICE,
) -> Current:
    """Let a version answer from now on.

    Args:
        connection: The transaction.
        device: Its id.
        number: The version; None: the profile that iojoule itself brings.
        revision: What `shown` said when this was decided.
        caller: Who decided.

    Raises:
        NotFoundError: There is no such version.
        ChangedError: Another version was made current since.
    """
    if number is not None:
        version(connection, device, number)
    before = _lock(connection, device)
    if before.revision != revision:
        raise ChangedError(
            f"{device}: another version has become current since; GET it, then decide again"
        )
    audit.add(connection, caller, "profile.use", f"profile/{device}/{number or 0}")
    return _show(connection, device, number, before)


def version(connection: Connection, device: str, number: int) -> ProfileVersion:
    """A version by its number.

    Raises:
        NotFoundError: There is none.
    """
    query = select(versions).where(versions.c.device == device, versions.c.number == number)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(
            f"{device} has no profile version {number}; GET /devices/{device}/profiles lists them"
        )
    return _version(row)


def listed(
    connection: Connection, device: str, limit: int, after: int | None
) -> Page[ProfileVersion]:
    """The versions of a device, the newest first."""
    query = select(versions).where(versions.c.device == device)
    return page_of(connection, query, versions.c.number, limit, after, _version)


def all_shown(connection: Connection) -> dict[str, ProfileVersion]:
    """The version that answers for each device where it is not what iojoule brings."""
    query = select(versions).join(
        current,
        (current.c.device == versions.c.device) & (current.c.number == versions.c.number),
    )
    rows = connection.execute(query).mappings()
    return {one.device: one for one in map(_version, rows)}


def document(state: State, kept: ProfileVersion) -> bytes:
    """The file of a version; raises DamagedError and UnavailableError."""
    what = f"profile version {kept.number} of {kept.device}"
    return state.files.read(kept.sha256, what)


def read(state: State, kept: ProfileVersion) -> DeviceProfile:
    """The profile of a version.

    Raises:
        DamagedError, UnavailableError: Its file cannot be read.
        InputError: This iojoule does not read it.
    """
    where = f"{kept.device}, profile version {kept.number}"
    return parse_profile(document(state, kept), where)
