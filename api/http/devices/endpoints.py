"""GET /devices and /devices/{id}, its power law and its model card."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from iojoule.api.http import reports
from iojoule.api.http.computing import Computed
from iojoule.api.http.devices import service
from iojoule.api.http.devices.schemas import DeviceDetail, DeviceList, Document, PowerLaw
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


@router.get("/{id}/power-law", summary="How does its power follow from the work?")
def show_power_law(served: Profiles, id: DeviceId) -> PowerLaw:  # noqa: A002
    """Show the law of the drive's watts with its intervals, and the measurements it rests on."""
    return service.law(served, id)


@router.get(
    "/{id}/model-card",
    summary="What does its profile rest on, and how far does it err?",
    response_model=Document,
    responses=reports.EITHER,
)
async def show_model_card(
    computed: Computed,
    id: DeviceId,  # noqa: A002
    request: Request,
) -> Response:
    """Show the model card section by section; as text/html it is one page to save."""
    if reports.wanted(request):
        return reports.page(await computed(service.card_page, id), id)
    return Response(
        await computed(service.card, id), media_type="application/json", headers=reports.VARY
    )
