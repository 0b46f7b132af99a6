"""Reads versions of profiles and says which one answers."""

from __future__ import annotations

import orjson

from iojoule.api.application.profiles import profile_of
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.profiles.schemas import BROUGHT, KeptProfile, ProfileList
from iojoule.api.state import jobs, profiles
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.place import State
from iojoule.api.state.profiles import Current
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import NoProfileError


def page(store: State, asking: Caller, device: str, limit: int, after: int | None) -> ProfileList:
    """Versions of a device's profile; that which iojoule brings is the oldest.

    Raises:
        UnknownDeviceError: No such drive.
    """
    id_ = load_catalogue().get(device).id
    with store.database.read() as connection:
        current = profiles.shown(connection, id_).number or BROUGHT
        found = profiles.listed(connection, id_, limit, after)
        made_by = [one.job_id for one in found.items if one.job_id is not None]
        readable = jobs.readable(connection, made_by, asking)
    listed = [KeptProfile.of(one, current, readable) for one in found.items]
    if found.next_cursor is None:
        listed += _brought(id_, current)
    return ProfileList(device=id_, current=current, profiles=listed, next_cursor=found.next_cursor)


def _brought(device: str, current: int) -> list[KeptProfile]:
    try:
        return [KeptProfile.brought(device, profile_of(device).profile_version, current)]
    except NoProfileError:
        return []


def document(store: State, device: str, version: int) -> bytes:
    """A version of a profile as it is kept, JSON.

    Raises:
        UnknownDeviceError, NoProfileError: There is none.
        NotFoundError: There is no such version.
        DamagedError: Its file is not what was kept.
    """
    id_ = load_catalogue().get(device).id
    if version == BROUGHT:
        return orjson.dumps(profile_of(id_).model_dump(mode="json"))
    with store.database.read() as connection:
        kept = profiles.version(connection, id_, version)
    return profiles.document(store, kept)


def current(store: State, device: str) -> tuple[str, Current]:
    """The id of a device and which version answers; raises UnknownDeviceError."""
    id_ = load_catalogue().get(device).id
    with store.database.read() as connection:
        return id_, profiles.shown(connection, id_)


def show(
    store: State,
    asking: Caller,
    served: ServedProfiles,
    device: str,
    version: int,
    revision: int,
) -> tuple[str, Current]:
    """Let a version answer from now on, in this process at once.

    Raises:
        UnknownDeviceError: No such drive.
        NotFoundError: No such version.
        ChangedError: Another one was made current since.
    """
    id_ = load_catalogue().get(device).id
    if version == BROUGHT and not _brought(id_, BROUGHT):
        raise NotFoundError(f"iojoule brings no profile for {id_}", field="version")
    with store.database.write() as connection:
        shown = profiles.show(connection, id_, version or None, revision, asking)
    served.refresh(store)
    return id_, shown
