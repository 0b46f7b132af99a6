"""GET /devices/{id}/profiles and its versions; GET and PUT /devices/{id}/profiles/current."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Response

from iojoule.api.http.devices.endpoints import DeviceId
from iojoule.api.http.gate import Asking
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.profiles import service
from iojoule.api.http.profiles.schemas import (
    BROUGHT,
    EXAMPLE,
    CurrentProfile,
    ProfileList,
    Rollback,
)
from iojoule.api.http.stored import (
    IfMatch,
    Limit,
    NumberCursor,
    Store,
    number_of,
    off_loop,
    revision_of,
    tag,
)
from iojoule.api.http.strict_json import StrictRoute

router = APIRouter(
    prefix="/devices/{id}/profiles", tags=["profiles"], responses=RESPONSES, route_class=StrictRoute
)

Version = Annotated[
    int, Path(ge=0, le=10**9, description="Number of the version; 0 comes with iojoule.",
              examples=[BROUGHT]),
]  # fmt: skip


@router.get("", summary="Which versions of a profile are there?")
async def list_profiles(
    store: Store,
    asking: Asking,
    id: DeviceId,  # noqa: A002 - the name in the path
    limit: Limit = 50,
    cursor: NumberCursor = None,
) -> ProfileList:
    """List versions of a device's profile, the newest first."""
    return await off_loop(service.page, store, asking, id, limit, number_of(cursor))


@router.get("/current", summary="Which version answers?")
async def show_current(store: Store, id: DeviceId, response: Response) -> CurrentProfile:  # noqa: A002
    """Say which version answers; its ETag is what a change is to be decided on."""
    device, found = await off_loop(service.current, store, id)
    response.headers["ETag"] = tag(found.revision)
    return CurrentProfile(device=device, version=found.number or BROUGHT)


@router.put("/current", summary="Let another version answer")
async def put_current(
    store: Store,
    asking: Asking,
    served: Profiles,
    id: DeviceId,  # noqa: A002
    wanted: Annotated[
        Rollback,
        Body(openapi_examples={"worked": {"summary": "Back to what iojoule brings",
                                          "value": EXAMPLE}}),
    ],
    response: Response,
    decided_on: IfMatch = None,
) -> CurrentProfile:  # fmt: skip
    """Roll back, or forward again; the version that answered before is kept."""
    revision = revision_of(decided_on)
    device, found = await off_loop(
        service.show, store, asking, served, id, wanted.version, revision
    )
    response.headers["ETag"] = tag(found.revision)
    return CurrentProfile(device=device, version=found.number or BROUGHT)


@router.get("/{version}", summary="A version of a profile")
async def show_profile(store: Store, id: DeviceId, version: Version) -> dict[str, object]:  # noqa: A002
    """Give the whole profile, as `--profile` of the command line takes it."""
    content = await off_loop(service.document, store, id, version)
    return Response(content, media_type="application/json")  # type: ignore[return-value]
