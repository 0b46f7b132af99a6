"""Profiles of drives that only the catalogue knows, with what a finding may ask of them."""

from __future__ import annotations

from iojoule.datasets.catalogue import Drive
from iojoule.datasets.profile import DeviceProfile
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import facts_of
from iojoule.model.prior.host import with_expected_host


def expected_of(drive: Drive) -> DeviceProfile | None:
    """What drives with these facts do, on a host that nobody measured."""
    if drive.drive_class == "emulated":
        return None
    return with_expected_host(build_profile(facts_of(drive)))
