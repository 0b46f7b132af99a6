"""GET /devices and /devices/{id}, its power law and its model card."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import TypeAdapter

from iojoule import __version__
from iojoule.api.application import devices
from iojoule.api.application.devices import DeviceDetail
from iojoule.api.http.computed_schemas import DeviceList
from iojoule.api.http.negotiation import JSON_OR_HTML, VARY, html_file, prefers_html
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.served_profiles import Profiles, ServedProfile, ServedProfiles
from iojoule.api.http.workers import Workers
from iojoule.api.power_law_answer import PowerLaw
from iojoule.api.power_laws import power_law
from iojoule.api.reports.document import Document, to_html
from iojoule.datasets.catalogue import load_catalogue

CARDS = 16
"""Model cards cached: each takes seconds to draw, and a few hundred kB."""

_CARD = TypeAdapter(Document)

router = APIRouter(prefix="/devices", tags=["devices"], responses=RESPONSES)

DeviceId = Annotated[str, Path(description="Id, model or alias.", examples=["samsung-980-pro-1tb"])]


def device_id(name: str) -> str:
    """The id of a drive named by id, model or alias; raises UnknownDeviceError."""
    return load_catalogue().get(name).id


@router.get("", summary="Which SSD models are known?")
def list_devices(profiles: Profiles) -> DeviceList:
    """List every SSD model and whether its performance and power can be predicted."""
    listed = devices.list_devices(profiles.published())
    return DeviceList(iojoule_version=__version__, devices=listed)


@router.get("/{id}", summary="What is known of one SSD model?")
def show_device(profiles: Profiles, id: DeviceId) -> DeviceDetail:  # noqa: A002 - the name in the path
    """Show published facts with their sources, and what the profile covers."""
    return devices.show_device(id, profiles.published())


@router.get("/{id}/power-law", summary="How does its power follow from the work?")
def show_power_law(profiles: Profiles, id: DeviceId) -> PowerLaw:  # noqa: A002
    """Show the power law of the drive with its intervals, and the measurements it rests on."""
    return power_law(profiles.profile_of(id))


@router.get(
    "/{id}/model-card",
    summary="What does its profile rest on, and how far does it err?",
    response_model=Document,
    responses=JSON_OR_HTML,
)
async def show_model_card(
    workers: Workers,
    id: DeviceId,  # noqa: A002
    request: Request,
) -> Response:
    """Show the model card section by section; as text/html it is one page to save."""
    if prefers_html(request):
        return html_file(await workers(card_html, id), id)
    return Response(await workers(card_json, id), media_type="application/json", headers=VARY)


def card_json(profiles: ServedProfiles, name: str) -> bytes:
    """The model card of a drive; raises UnknownDeviceError, NoProfileError."""
    return _CARD.dump_json(_card(profiles.of(profiles.device_id(name))))


def card_html(profiles: ServedProfiles, name: str) -> bytes:
    """The model card of a drive as a page; raises UnknownDeviceError, NoProfileError."""
    return to_html(_card(profiles.of(profiles.device_id(name)))).encode()


@lru_cache(maxsize=CARDS)
def _card(served: ServedProfile) -> Document:
    from iojoule.api.reports.model_card import build_card  # draws with matplotlib, slow to import

    return build_card(served.profile)
