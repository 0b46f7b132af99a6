"""GET /devices/{id}/profiles and its versions; GET and PUT /devices/{id}/profiles/current."""

from __future__ import annotations

from typing import Annotated

import orjson
from fastapi import APIRouter, Body, Path, Response

from iojoule.api.application.profiles import profile_of
from iojoule.api.http.access import CurrentCaller
from iojoule.api.http.devices import DeviceId, device_id
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.requests import (
    IfMatch,
    Limit,
    NumberCursor,
    Store,
    StrictRoute,
    cursor_number,
    etag_of,
    off_loop,
    read_store,
    revision_of,
    write_store,
)
from iojoule.api.http.schemas import SHIPPED, CurrentProfile, KeptProfile, ProfileList, Rollback
from iojoule.api.http.served_profiles import Profiles
from iojoule.api.state import jobs, profiles
from iojoule.api.state.callers import Caller
from iojoule.api.state.errors import NotFoundError
from iojoule.api.state.place import State
from iojoule.datasets.errors import NoProfileError

EXAMPLE = {"version": SHIPPED}

router = APIRouter(
    prefix="/devices/{id}/profiles", tags=["profiles"], responses=RESPONSES, route_class=StrictRoute
)

_VERSION = "Number of the version; 0 comes with iojoule."
Version = Annotated[int, Path(ge=0, le=10**9, description=_VERSION, examples=[SHIPPED])]

_SUMMARY = "Back to what iojoule brings"
RollbackBody = Annotated[
    Rollback, Body(openapi_examples={"worked": {"summary": _SUMMARY, "value": EXAMPLE}})
]


@router.get("", summary="Which versions of a profile are there?")
async def list_profiles(
    store: Store,
    caller: CurrentCaller,
    id: DeviceId,  # noqa: A002 - the name in the path
    limit: Limit = 50,
    cursor: NumberCursor = None,
) -> ProfileList:
    """List versions of a device's profile, the newest first."""
    return await off_loop(profile_page, store, caller, id, limit, cursor_number(cursor))


@router.get("/current", summary="Which version answers?")
async def show_current(store: Store, id: DeviceId, response: Response) -> CurrentProfile:  # noqa: A002
    """Say which version is current; a change must send its ETag as If-Match."""
    device = await off_loop(device_id, id)
    current = await read_store(store, profiles.shown, device)
    response.headers["ETag"] = etag_of(current.revision)
    return CurrentProfile(device=device, version=current.number or SHIPPED)


@router.put("/current", summary="Let another version answer")
async def put_current(
    store: Store,
    caller: CurrentCaller,
    served: Profiles,
    id: DeviceId,  # noqa: A002
    wanted: RollbackBody,
    response: Response,
    if_match: IfMatch = None,
) -> CurrentProfile:
    """Roll back, or forward again; the version that was current before is kept."""
    revision = revision_of(if_match)
    device = await off_loop(device_id, id)
    if wanted.version == SHIPPED and not await off_loop(_shipped, device, SHIPPED):
        raise NotFoundError(f"iojoule brings no profile for {device}", field="version")
    version = wanted.version or None
    current = await write_store(store, profiles.show, device, version, revision, caller)
    await off_loop(served.refresh, store)
    response.headers["ETag"] = etag_of(current.revision)
    return CurrentProfile(device=device, version=current.number or SHIPPED)


@router.get("/{version}", summary="A version of a profile")
async def show_profile(store: Store, id: DeviceId, version: Version) -> dict[str, object]:  # noqa: A002
    """Give the whole profile, as `--profile` of the command line takes it."""
    content = await off_loop(profile_json, store, id, version)
    return Response(content, media_type="application/json")  # type: ignore[return-value]


def profile_page(
    store: State, caller: Caller, device: str, limit: int, after: int | None
) -> ProfileList:
    """Versions of a device's profile; the one that ships with iojoule is the oldest.

    Raises:
        UnknownDeviceError: No such drive.
    """
    id_ = device_id(device)
    with store.database.read() as connection:
        current = profiles.shown(connection, id_).number or SHIPPED
        page = profiles.listed(connection, id_, limit, after)
        made_by = [version.job_id for version in page.items if version.job_id is not None]
        readable = jobs.readable(connection, made_by, caller)
    listed = [KeptProfile.of(version, current, readable) for version in page.items]
    if page.next_cursor is None:
        listed += _shipped(id_, current)
    return ProfileList(device=id_, current=current, profiles=listed, next_cursor=page.next_cursor)


def _shipped(device: str, current: int) -> list[KeptProfile]:
    try:
        return [KeptProfile.shipped(device, profile_of(device).profile_version, current)]
    except NoProfileError:
        return []


def profile_json(store: State, device: str, version: int) -> bytes:
    """A version of a profile.

    Raises:
        UnknownDeviceError, NoProfileError: There is none.
        NotFoundError: There is no such version.
        DamagedError: Its file is not what was stored.
    """
    id_ = device_id(device)
    if version == SHIPPED:
        return orjson.dumps(profile_of(id_).model_dump(mode="json"))
    with store.database.read() as connection:
        row = profiles.version(connection, id_, version)
    return profiles.document(store, row)
