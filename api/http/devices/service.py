"""Reads the catalogue and the profiles."""

from __future__ import annotations

from iojoule import __version__
from iojoule.api.devices import list_devices, show_device
from iojoule.api.http.devices.schemas import DeviceDetail, DeviceList


def devices() -> DeviceList:
    """Every SSD model, with what its profile covers."""
    return DeviceList(iojoule_version=__version__, devices=list_devices())


def device(name: str) -> DeviceDetail:
    """One SSD model; raises UnknownDeviceError."""
    return show_device(name)
