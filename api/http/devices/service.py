"""Reads the catalogue and the profiles."""

from __future__ import annotations

from functools import lru_cache

from iojoule import __version__
from iojoule.api.application.devices import list_devices, show_device
from iojoule.api.documents.content import Document
from iojoule.api.documents.html import to_html
from iojoule.api.http.devices.schemas import CARD, DeviceDetail, DeviceList
from iojoule.api.http.predictors import Served, ServedProfiles
from iojoule.api.power_law_answer import PowerLaw
from iojoule.api.power_laws import power_law

CARDS = 16
"""Model cards kept in memory: each takes seconds to draw, and a few hundred kB."""


def devices(served: ServedProfiles) -> DeviceList:
    """Every SSD model, with what its profile covers."""
    return DeviceList(iojoule_version=__version__, devices=list_devices(served.published()))


def device(served: ServedProfiles, name: str) -> DeviceDetail:
    """One SSD model; raises UnknownDeviceError."""
    return show_device(name, served.published())


def law(served: ServedProfiles, name: str) -> PowerLaw:
    """The power law of a drive; raises UnknownDeviceError, NoProfileError."""
    return power_law(served.profile_of(name))


def card(served: ServedProfiles, name: str) -> bytes:
    """The model card of what answers for a drive; raises UnknownDeviceError, NoProfileError."""
    return CARD.dump_json(_card(served.of(served.device_id(name))))


def card_page(served: ServedProfiles, name: str) -> bytes:
    """Likewise as a page."""
    return to_html(_card(served.of(served.device_id(name)))).encode()


@lru_cache(maxsize=CARDS)
def _card(served: Served) -> Document:
    from iojoule.api.model_card import build_card  # draws with matplotlib, slow to import

    return build_card(served.profile)
