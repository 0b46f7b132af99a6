"""Profiles of drives that nobody measured, with what a finding may ask of them."""

from __future__ import annotations

from dataclasses import replace

from iojoule.datasets.catalogue import Drive
from iojoule.datasets.profile import DevicePower, DeviceProfile, Parameter
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import DriveFacts, facts_of
from iojoule.model.prior.host import with_expected_host
from iojoule.model.prior.power import with_published_caps
from iojoule.recommender.findings.peers import cap, typical

MOST_STATES = 3
"""Operational states of a usual drive: full power and two lower ones."""

NO_DRIVE = "none"
"""Device of a finding about a host without any drive."""


def expected_of(
    device: str, drive: Drive | None, without: frozenset[str] = frozenset()
) -> DeviceProfile | None:
    """What drives with these facts do, on a host that nobody measured.

    Args:
        device: Id; a drive that the catalogue does not know is one of its kind in general.
        drive: The catalogue's entry, less what is the finding.
        without: Findings that must not help.
    """
    if drive is not None and drive.drive_class == "emulated":
        return None
    if drive is None:
        facts = DriveFacts(device=device, model=device, sata=False, datacentre=None, xpoint=None)
    else:
        facts = facts_of(drive)
        if drive.interface == "nvme" and not drive.power_states:
            facts = replace(facts, caps_watts=_usual_caps(drive))
    profile = with_expected_host(build_profile(facts))
    if device == NO_DRIVE:
        return _without_drive(profile)
    return with_published_caps(profile, facts, without)


def _usual_caps(drive: Drive) -> list[float]:
    """Caps of the states that its relatives declare, where the drive's own are not known."""
    caps: list[float] = []
    for state in range(MOST_STATES):
        found = typical(drive, cap(state))
        if found is None:
            break
        caps.append(min([found.value, *caps]))
    return caps


def _without_drive(profile: DeviceProfile) -> DeviceProfile:
    """The host alone: a drive that draws nothing."""
    power = profile.device_power
    if power is None:
        return profile
    nothing = DevicePower.model_validate(
        power.model_dump()
        | {
            "parameters": [_none(one) for one in power.parameters],
            "covariance": [[0.0] * len(row) for row in power.covariance],
            "idle_watts": [_none(one) for one in power.idle_watts],
        }
    )
    return profile.model_copy(update={"device_power": nothing})


def _none(one: Parameter) -> Parameter:
    return one.model_copy(update={"value": LEAST_WATTS, "sd": 0.0, "source": "no drive"})


LEAST_WATTS = 1e-9
"""Stands for no power where a logarithm is taken."""
