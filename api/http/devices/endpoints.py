"""GET /devices and /devices/{id}."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from iojoule.api.http.devices import service
from iojoule.api.http.devices.schemas import DeviceDetail, DeviceList
from iojoule.api.http.predictors import Profiles
from iojoule.api.http.problems import RESPONSES

router = APIRouter(prefix="/devices", tags=["devices"], responses=RESPONSES)

DeviceId = Annotated[str, Path(description="Id, model or alias.", examples=["samsung-980-pro-1tb"])]


@router.get("", summary="Which SSD models are known?")
def list_devices(served: Profiles) -> DeviceList:
    """List every SSD model and whether its performance and power can be predicted."""
    return service.devices(served)


@router.get("/{id}", summary="What is known of one SSD model?")
def show_device(served: Profiles, id: DeviceId) -> DeviceDetail:  # noqa: A002 - the name in the path
    """Show published facts with their sources, and what the profile answers."""
    return service.device(served, id)
