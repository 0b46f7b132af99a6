"""Reads the catalogue and the profiles."""

from __future__ import annotations

from iojoule import __version__
from iojoule.api.devices import list_devices, show_device
from iojoule.api.http.devices.schemas import DeviceDetail, DeviceList
from iojoule.api.http.predictors import ServedProfiles


def devices(served: ServedProfiles) -> DeviceList:
    """Every SSD model, with what its profile covers."""
    return DeviceList(iojoule_version=__version__, devices=list_devices(served.published()))


def device(served: ServedProfiles, name: str) -> DeviceDetail:
    """One SSD model; raises UnknownDeviceError."""
    return show_device(name, served.published())
