"""What the service says of SSD models."""

from __future__ import annotations

from pydantic import BaseModel, TypeAdapter

from iojoule.api.application.devices import DeviceDetail, DeviceSummary
from iojoule.api.documents.content import Document
from iojoule.api.power_law_answer import PowerLaw

__all__ = ["CARD", "DeviceDetail", "DeviceList", "Document", "PowerLaw"]

CARD = TypeAdapter(Document)


class DeviceList(BaseModel):
    """Every SSD model of the catalogue."""

    iojoule_version: str
    devices: list[DeviceSummary]
