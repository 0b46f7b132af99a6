"""What the service says of SSD models."""

from __future__ import annotations

from pydantic import BaseModel

from iojoule.api.devices import DeviceDetail, DeviceSummary

__all__ = ["DeviceDetail", "DeviceList"]


class DeviceList(BaseModel):
    """Every SSD model of the catalogue."""

    iojoule_version: str
    devices: list[DeviceSummary]
